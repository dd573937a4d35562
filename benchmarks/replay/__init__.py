"""Policies for the proposal length, replayed on measured rows. See `benchmarks.replay.__main__`."""

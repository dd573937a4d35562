"""The operator's own metrics and those of its models."""

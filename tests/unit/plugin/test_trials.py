"""Trials inside the running table, step by step."""

from live_speculation.schedule import Schedule, Trial
from live_speculation.trials import Interleave


def interleave(*trials: Trial, max_batch: int = 8) -> Interleave:
    return Interleave(Schedule("0" * 12, ((1, 4, 4), (5, 8, 2)), trials), max_batch)


def play(playing: Interleave, batches: list[int]) -> list[int]:
    """K of each step of a run of batch sizes."""
    lengths = []
    for batch in batches:
        lengths.append(playing.lookup[batch])
        playing.stepped(batch)
    return lengths


def test_without_trials_the_table_plays() -> None:
    """The table is what the operator decided."""
    assert play(interleave(), [1, 4, 5, 8, 1]) == [4, 4, 2, 2, 4]


def test_arms_take_turns_between_stretches_of_the_table() -> None:
    """A block of 2 at a share of one half: two steps of the table, two of the arm."""
    playing = interleave(Trial((1, 4), (0, 1), 0.5, 2, 2))

    assert play(playing, [3] * 18) == [4, 4, 0, 0, 4, 4, 1, 1] * 2 + [4, 4]


def test_a_trial_ends_by_itself_after_its_rounds() -> None:
    """A dead operator must not leave an engine on trial for ever."""
    playing = interleave(Trial((1, 4), (0,), 0.5, 1, 2))
    assert playing.progress() == [((1, 4), 2)]

    play(playing, [3] * 4)

    assert playing.progress() == [((1, 4), 0)]
    assert play(playing, [3] * 20) == [4] * 20


def test_blocks_take_the_asked_share_of_the_steps() -> None:
    """The share is what the user allowed to be spent on looking."""
    lengths = play(interleave(Trial((1, 4), (0, 1, 2), 0.1, 20, 10)), [2] * 6000)

    assert sum(length != 4 for length in lengths) == 600


def test_only_steps_in_the_trials_range_count() -> None:
    """A block belongs to one batch bucket; elsewhere the trial waits."""
    playing = interleave(Trial((5, 8), (0,), 0.5, 2, 1))

    assert play(playing, [6, 1, 6, 1, 1, 6, 2, 7, 8]) == [2, 4, 2, 4, 4, 0, 4, 0, 2]


def test_trials_of_two_ranges_run_side_by_side() -> None:
    """Every bucket has its own progress."""
    playing = interleave(Trial((1, 4), (0,), 0.5, 1, 1), Trial((5, 8), (1,), 0.5, 1, 1))

    assert play(playing, [1, 5, 1, 5, 1, 5]) == [4, 2, 0, 1, 4, 2]


def test_a_trial_of_the_whole_share_has_no_stretches() -> None:
    """Share 1 is allowed: arm after arm."""
    playing = interleave(Trial((1, 4), (0, 1), 1.0, 2, 1))

    assert play(playing, [1] * 6) == [0, 0, 1, 1, 4, 4]


def test_a_range_beyond_the_largest_batch_is_cut() -> None:
    """The operator's buckets end at no engine's limit."""
    playing = interleave(Trial((7, 900), (0,), 1.0, 1, 2), Trial((1000, 1001), (1,), 1.0, 1, 1))

    assert play(playing, [8, 7, 8]) == [0, 0, 2]


def test_stopping_puts_the_table_back() -> None:
    """After a failed hook no arm may stay in force."""
    playing = interleave(Trial((1, 4), (0,), 1.0, 50, 2))
    assert playing.lookup[3] == 0

    playing.stop()

    assert play(playing, [3] * 3) == [4] * 3
    assert playing.progress() == [((1, 4), 0)]

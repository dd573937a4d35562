"""One replica out of line: noticed within three windows, kept out, and back once it is in line."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from speculative_operator.tuning.acceptance import Acceptance
from speculative_operator.tuning.page import Counts, Phase, RowKey
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.replicas import Judged, Part, judged
from speculative_operator.tuning.standings import FORGOTTEN, MOST_WATCHED, Replicas, Sign
from speculative_operator.tuning.window import Window, merged
from tests.support.windows import DEAD, NOISY, STEP_MS, Traffic

STALE = (0.40, 0.16, 0.06, 0.02)
WEAK = (0.03, 0.0, 0.0, 0.0)
SLOW = {k: 1.4 * ms for k, ms in STEP_MS.items()}
SOUND = Traffic(NOISY)

Fleet = Sequence[Traffic | None]


class Watch:
    """Windows of a fleet, one after the other. A pod without traffic shows nothing."""

    def __init__(self) -> None:
        self.replicas = Replicas()
        self.known = Acceptance()
        self.kept_out: frozenset[str] = frozenset()
        self.started: dict[str, float] = {}

    def see(self, fleet: Fleet, windows: int = 1, *, chance: random.Random | None = None) -> None:
        for _ in range(windows):
            self.see_windows([each.window({4: 100}, chance) if each else None for each in fleet])

    def see_windows(self, windows: Sequence[Window | None]) -> None:
        pods = [f"pod-{n}" for n in range(len(windows))]
        parts = {
            pod: Part(pod, self.started.get(pod, 0.0), window)
            for pod, window in zip(pods, windows, strict=True)
            if window is not None
        }
        found: Judged = judged(parts, self.replicas, self.known, present=pods, method="eagle3")
        self.replicas, self.kept_out = found
        sound = [part.window for pod, part in parts.items() if pod not in self.kept_out]
        self.known = self.known.after(merged(sound), SEQUENTIAL)

    @property
    def odd(self) -> list[str]:
        return [standing.name for standing in self.replicas.odd]


@pytest.mark.parametrize(
    "odd", [Traffic(DEAD), Traffic(WEAK), Traffic(STALE), Traffic(NOISY, SLOW)]
)
@pytest.mark.parametrize("sound", [1, 2, 3, 7])
def test_the_odd_one_is_named_within_three_windows(odd: Traffic, sound: int) -> None:
    """A stale draft or a slow GPU; with one other replica, by what both had shown before."""
    watch = Watch()
    watch.see([SOUND] * (1 + sound), 5)
    watch.see([odd] + [SOUND] * sound, 3)

    assert watch.odd == ["pod-0"]
    assert watch.replicas.disagreement is None


def test_half_a_bad_window_does_not_delay_the_word() -> None:
    """Faults do not wait for the end of a window."""
    watch = Watch()
    watch.see([SOUND] * 2, 5)
    half = Traffic(tuple(p / 2 for p in NOISY))
    watch.see([half, SOUND])
    watch.see([Traffic(DEAD), SOUND], 2)

    assert watch.odd == ["pod-0"]


def test_its_evidence_is_kept_out_from_the_first_window_on() -> None:
    """Before it has a name it must not be averaged in either."""
    watch = Watch()
    watch.see([SOUND] * 2, 5)
    before = watch.known.rows[4].positions
    for _ in range(10):
        watch.see([Traffic(DEAD), SOUND])
        assert watch.kept_out == {"pod-0"}

    assert watch.known.rows[4].positions == pytest.approx(before)


def test_it_counts_again_once_it_is_in_line() -> None:
    """Nothing is latched: a few sound windows bring it back."""
    watch = Watch()
    watch.see([SOUND] * 3, 3)
    watch.see([Traffic(DEAD), SOUND, SOUND], 50)
    watch.see([SOUND] * 3, 5)

    assert watch.odd == []
    assert watch.kept_out == frozenset()


@pytest.mark.parametrize("replicas", [2, 4])
def test_of_halves_that_disagree_from_the_start_nobody_is_guessed(replicas: int) -> None:
    """Nothing was known before, and both acceptances are what a sound draft may have."""
    watch = Watch()
    watch.see([Traffic(STALE if n % 2 else NOISY) for n in range(replicas)], 20)

    assert watch.odd == []
    assert watch.kept_out == frozenset()
    assert watch.replicas.disagreement is not None
    assert "pod-0, pod-1" in watch.replicas.disagreement


def test_a_draft_that_no_sound_one_resembles_needs_no_memory() -> None:
    """Of two from the start, the one with hardly any acceptance is the odd one."""
    watch = Watch()
    watch.see([Traffic(DEAD), SOUND], 3)

    assert watch.odd == ["pod-0"]


def test_a_change_of_traffic_that_all_see_makes_nobody_odd() -> None:
    """Two replicas get harder prompts at once."""
    watch = Watch()
    watch.see([SOUND] * 2, 10)
    watch.see([Traffic(STALE)] * 2, 10)

    assert watch.odd == []
    assert watch.replicas.disagreement is None


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_noise_makes_nobody_odd(replicas: int) -> None:
    """Prompts and machines differ a little all the time."""
    chance = random.Random(3)
    watch = Watch()
    for _ in range(500):
        watch.see(
            [
                Traffic(
                    tuple(p * chance.gauss(1.0, 0.08) for p in NOISY),
                    {k: ms * chance.gauss(1.0, 0.03) for k, ms in STEP_MS.items()},
                )
                for _ in range(replicas)
            ],
            chance=chance,
        )
        assert watch.odd == []
        assert watch.replicas.disagreement is None


def test_two_odd_of_five_are_both_named() -> None:
    """Most are sound, so most tell."""
    watch = Watch()
    watch.see([Traffic(DEAD), Traffic(NOISY, SLOW), SOUND, SOUND, SOUND], 3)

    assert sorted(watch.odd) == ["pod-0", "pod-1"]


def test_a_fresh_engine_that_accepts_more_is_not_the_odd_one() -> None:
    """Then it is the others that have aged."""
    watch = Watch()
    watch.started["pod-1"] = 3 * 3600.0
    watch.see([Traffic(STALE), None], 5)
    watch.see([Traffic(STALE), SOUND], 5)

    assert watch.odd == []
    assert watch.replicas.disagreement is None


def test_counters_that_one_replica_alone_has_broken_are_its_own() -> None:
    """Silent drafts of one engine are hidden in the sum of all."""
    row = SOUND.row(4, 100)
    row = row._replace(drafts=0, draft_tokens=0, accepted=0, generated=row.requests)
    silent = Window(seconds=5.0, rows={RowKey(4, 4, Phase.DECODE): row})
    watch = Watch()
    watch.see_windows([silent, SOUND.window({4: 100})])
    assert watch.kept_out == {"pod-0"}
    watch.see_windows([silent, SOUND.window({4: 100})])

    assert watch.odd == ["pod-0"]
    assert watch.replicas.odd[0].sign is Sign.SILENCE
    assert "make no drafts" in watch.replicas.odd[0].text


def test_a_replica_alone_is_never_judged() -> None:
    """When the others are gone, it is the fleet."""
    watch = Watch()
    watch.see([SOUND] * 2, 5)
    watch.see([Traffic(DEAD), SOUND], 5)
    watch.see([Traffic(DEAD)])

    assert watch.odd == []
    assert watch.kept_out == frozenset()


def test_a_replica_that_cannot_be_compared_any_more_is_believed_in_the_end() -> None:
    """All traffic goes to it: better its evidence than none for ever."""
    watch = Watch()
    watch.see([SOUND] * 2, 5)
    watch.see([Traffic(DEAD), SOUND], 5)
    watch.see([SOUND, None], FORGOTTEN)
    assert watch.kept_out == {"pod-0"}
    watch.see([SOUND, None])

    assert watch.kept_out == frozenset()


def test_the_text_names_pod_numbers_and_action() -> None:
    """Who reads it should know what to do."""
    watch = Watch()
    watch.see([SOUND] * 3, 2)
    watch.see([Traffic(STALE), SOUND, SOUND], 3)
    watch.see([Traffic(STALE), Traffic(NOISY, SLOW), SOUND], 3)
    texts = {standing.name: standing.text for standing in watch.replicas.odd}

    assert "accepts 0.64 tokens a draft at K=4, the others 1.34" in texts["pod-0"]
    assert "deleting the pod" in texts["pod-0"]
    assert (
        "takes 32.2 ms a step at K=4 and batch up to 4, the others 23.0 ms (+40%)"
        in (texts["pod-1"])
    )


def test_what_is_told_of_a_replica_stays_the_same_text() -> None:
    """Figures that change every window would write the status every window."""
    watch = Watch()
    chance = random.Random(1)
    texts = set()
    watch.see([SOUND] * 3, 2)
    for _ in range(30):
        watch.see([Traffic(STALE), SOUND, SOUND], chance=chance)
        texts |= {standing.text for standing in watch.replicas.odd}

    assert len(texts) == 1


def test_what_is_remembered_is_bounded() -> None:
    """It is part of a state of 16 KiB."""
    watch = Watch()
    fleet = [Traffic(DEAD)] * 30 + [SOUND] * 31
    watch.see(fleet, 4)

    assert len(watch.replicas.standings) == MOST_WATCHED
    assert len(watch.kept_out) == 30


def test_batches_that_differ_are_not_compared() -> None:
    """A replica with larger batches has longer steps."""
    watch = Watch()
    small, large = Traffic(NOISY, batch=4), Traffic(NOISY, SLOW, batch=16)
    watch.see([small, large, small], 5)

    assert watch.odd == []


def test_a_few_drafts_say_nothing() -> None:
    """No evidence is never zero."""
    watch = Watch()
    few = Window(seconds=5.0, rows={RowKey(4, 4, Phase.DECODE): Counts(requests=4, drafts=4)})
    watch.see_windows([few, SOUND.window({4: 100}), SOUND.window({4: 100})])

    assert watch.kept_out == frozenset()


def test_a_replica_of_the_others_is_no_measure_once_it_is_odd() -> None:
    """Of three, one is odd; the second to fall is told by the third and by what was known."""
    watch = Watch()
    watch.see([SOUND] * 3, 5)
    watch.see([Traffic(DEAD), SOUND, SOUND], 3)
    watch.see([Traffic(DEAD), Traffic(STALE), SOUND], 3)

    assert sorted(watch.odd) == ["pod-0", "pod-1"]

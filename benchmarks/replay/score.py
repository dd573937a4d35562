"""What a policy lost in an episode, and in a set of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.replay.episodes import Episode

FINAL = 10
"""Last windows, of which the final regret is."""

CLOSE, RECOVERED, STEADY = 0.02, 0.05, 3
"""K is at the best within 2%; conditions that changed are met again within 5%, three windows on."""

WINDOW_SECONDS = 5.0
"""The shortest window of the product's defaults."""


@dataclass(frozen=True)
class Outcome:
    """One episode. Losses are shares of the goodput that they are measured against.

    regret, final         against the best K of every window, of all windows and of the last
    close                 whether K in force at the end is within 2% of the best
    converged             windows until K in force stayed within 2% for three
    recovered             windows from each change of conditions until K was within 5% for three
    switches              changes of K in force at the same batch size, an hour
    late_switches         the same in the second half of the windows
    against_plain         against autoregressive decoding without speculation in the engine
    against_live_zero     against K=0 live
    """

    group: str
    regret: float
    final: float
    close: bool
    converged: int
    recovered: tuple[int, ...]
    switches: float
    late_switches: float
    against_plain: float
    against_live_zero: float


def outcome(episode: Episode, goodputs: Sequence[float], lengths: Sequence[int]) -> Outcome:
    """`goodputs` as they were played, trials included; `lengths` are the K in force."""
    conditions = episode.conditions
    best = [condition.best for condition in conditions]
    part = [
        condition.goodput[k] / condition.best
        for condition, k in zip(conditions, lengths, strict=True)
    ]
    return Outcome(
        group=episode.group,
        regret=1 - sum(goodputs) / sum(best),
        final=1 - sum(goodputs[-FINAL:]) / sum(best[-FINAL:]),
        close=part[-1] >= 1 - CLOSE,
        converged=_steady_from(part, 1 - CLOSE),
        recovered=tuple(_steady_from(part[at:], 1 - RECOVERED) for at in episode.changes),
        switches=_switches(episode, lengths, 0),
        late_switches=_switches(episode, lengths, len(lengths) // 2),
        against_plain=1 - sum(goodputs) / sum(1 / each.plain_ms for each in conditions),
        against_live_zero=1 - sum(goodputs) / sum(each.goodput[0] for each in conditions),
    )


def _steady_from(part: Sequence[float], least: float) -> int:
    run = 0
    for number, share in enumerate(part):
        run = run + 1 if share >= least else 0
        if run == STEADY:
            return number + 1 - STEADY
    return len(part)


def _switches(episode: Episode, lengths: Sequence[int], begin: int) -> float:
    """An hour, from window `begin` on."""
    last: dict[int, int] = {}
    count = 0
    for number, (condition, k) in enumerate(zip(episode.conditions, lengths, strict=True)):
        count += number >= begin and last.get(condition.batch, k) != k
        last[condition.batch] = k
    return count * 3600 / WINDOW_SECONDS / (len(lengths) - begin)


@dataclass(frozen=True)
class Summary:
    """A policy on a set; percentages but for windows and switches. The fields of `--json`."""

    episodes: int
    mean: float
    p95: float
    worst: float
    worst_group: str
    final: float
    within_2_percent: float
    windows_to_converge: float
    recovery_windows: float | None
    switches_an_hour: float
    late_switches_an_hour: float
    loss_against_autoregressive: float
    worst_loss_against_live_zero: float

    def to_json(self) -> dict[str, object]:
        return {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Of at least one episode."""
    regrets = sorted(each.regret for each in outcomes)
    worst = max(outcomes, key=lambda each: each.regret)
    recovered = [windows for each in outcomes for windows in each.recovered]
    return Summary(
        episodes=len(outcomes),
        mean=100 * statistics.fmean(regrets),
        p95=100 * regrets[min(int(0.95 * len(regrets)), len(regrets) - 1)],
        worst=100 * worst.regret,
        worst_group=worst.group,
        final=100 * statistics.fmean(each.final for each in outcomes),
        within_2_percent=100 * statistics.fmean(each.close for each in outcomes),
        windows_to_converge=statistics.fmean(each.converged for each in outcomes),
        recovery_windows=statistics.fmean(recovered) if recovered else None,
        switches_an_hour=statistics.fmean(each.switches for each in outcomes),
        late_switches_an_hour=statistics.fmean(each.late_switches for each in outcomes),
        loss_against_autoregressive=100 * statistics.fmean(e.against_plain for e in outcomes),
        worst_loss_against_live_zero=100 * max(each.against_live_zero for each in outcomes),
    )

"""The tuner on every measured group, in virtual time: `python -m benchmarks.virtual`.

Each group of the rows (target, method, workload) gets one simulated engine, the operator's own
tuner and 60 windows of steady traffic. Printed: where it ended, and what that loses against the
best live K in noise-free goodput.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from local.simulated_engine.table import REFERENCE_BATCH, Group, read_table
from local.virtual_time.clock import run
from local.virtual_time.scene import Scene

WINDOWS = 60
WITHIN = 0.03
"""Goodput that may be missing at the end for a group to count as settled."""


@dataclass(frozen=True)
class Outcome:
    """How one group ended. `loss` is a share of the best live K's noise-free goodput."""

    group: Group
    started: int
    ended: int
    best: int
    loss: float
    changes: int

    @property
    def settled(self) -> bool:
        """At the best live K or within 3% of it."""
        return self.loss <= WITHIN

    def __str__(self) -> str:
        mark = " " if self.settled else "!"
        return (
            f"{mark} {self.group!s:60} K {self.started} -> {self.ended}, best {self.best}, "
            f"loss {100 * self.loss:4.1f}%, {self.changes} changes"
        )


def play_group(group: Group, *, seed: int = 0) -> Outcome:
    """Plays one group to its end."""
    with tempfile.TemporaryDirectory() as folder:
        return run(_play(group, Path(folder), seed))


async def _play(group: Group, folder: Path, seed: int) -> Outcome:
    scene = Scene(group, folder, seed=seed)
    async with scene.playing():
        scene.send(REFERENCE_BATCH)
        await scene.pass_seconds(WINDOWS * scene.policy.window.least_seconds)
        ended, best = scene.length(REFERENCE_BATCH), scene.best(REFERENCE_BATCH)
        loss = 1 - scene.goodput(ended, REFERENCE_BATCH) / scene.goodput(best, REFERENCE_BATCH)
        return Outcome(
            group=group,
            started=scene.policy.initial,
            ended=ended,
            best=best,
            loss=loss,
            changes=len(scene.view.decisions),
        )


def main() -> None:
    """Prints a line a group and the sum."""
    parser = argparse.ArgumentParser("python -m benchmarks.virtual", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    began = time.monotonic()
    outcomes = []
    for group in read_table():
        outcomes.append(play_group(group, seed=seed))
        print(outcomes[-1], flush=True)
    settled = sum(outcome.settled for outcome in outcomes)
    mean = sum(outcome.loss for outcome in outcomes) / len(outcomes)
    print(
        f"{settled} of {len(outcomes)} groups within {100 * WITHIN:.0f}% of the best live K after "
        f"{WINDOWS} windows; mean loss {100 * mean:.2f}%; {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()

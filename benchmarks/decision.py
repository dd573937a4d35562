"""What a decision costs and how large a state is: `python -m benchmarks.decision`.

A model with traffic at 1, 4, 16 and 64 requests. The usual window has one of these batch sizes, K
in force and one K on trial; the heaviest all of them, each with trials of all K. Printed, not
asserted.
"""

from __future__ import annotations

import platform
import random
import statistics
import time
from collections.abc import Sequence

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.memory import STATE, Memory, to_data
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.page import Counts, Phase, Position, Proposed, RowKey
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.prior import SEQUENTIAL
from speculative_operator.tuning.state import State
from speculative_operator.tuning.window import Window

WINDOWS = 200
CELLS = (1, 4, 16, 64)


def window(lengths: Sequence[int], cells: Sequence[int], chance: random.Random) -> Window:
    """Some K at some batch sizes, with the noise of 40 steps each."""
    rows, positions = {}, {}
    for k in lengths:
        for cell in cells:
            mean = 9.2 + 0.4 * bool(k) + 0.1 * k + 0.05 * cell / 64 + chance.gauss(0, 0.02)
            requests = 40.0 * cell
            accepted = requests * sum(0.7**i for i in range(1, k + 1))
            rows[RowKey(k, cell, Phase.DECODE)] = Counts(
                steps=40,
                seconds=0.4,
                log_us=40 * mean,
                log_us_sq=40 * (mean**2 + 0.01),
                drafts=requests if k else 0,
                draft_tokens=requests * k,
                accepted=accepted,
                generated=requests + accepted,
                requests=requests,
            )
        for at in range(k):
            drafted = 40.0 * sum(cells)
            positions[Position(k, at)] = Proposed(drafted, drafted * 0.7 ** (at + 1))
    return Window(seconds=5.0, rows=rows, positions=positions, trials_over=True)


def measure(choices: tuple[int, ...]) -> None:
    """Prints milliseconds a decision and bytes a state for so many choices."""
    policy = Policy(
        mode=TuningMode.AUTO,
        method="eagle3",
        choices=choices,
        initial=choices[-1],
        max_num_seqs=64,
        fixed=((1, 64, choices[-1]),),
        prior=SEQUENTIAL,
    )
    chance = random.Random(0)
    every = (0, *choices)
    heaviest = [window(every, CELLS, chance) for _ in range(WINDOWS)]
    usual = [
        window((choices[-1], chance.choice(every)), (chance.choice(CELLS),), chance)
        for _ in range(WINDOWS)
    ]
    state, most = spent(heaviest, State(), policy)
    state, least = spent(usual, state, policy)
    size = len(to_data(Memory().with_state("key", state)).data[STATE])
    print(
        f"{len(choices):2} choices, {len(state.buckets)} buckets: {least:.2f} ms a decision on a "
        f"usual window, {most:.2f} on the heaviest, state {size} bytes"
    )


def spent(windows: Sequence[Window], state: State, policy: Policy) -> tuple[State, float]:
    """The state after these windows, and the median of CPU milliseconds a decision."""
    times = []
    for number, seen in enumerate(windows):
        began = time.process_time()
        state = decide(seen, state, policy, Occasion(5.0 * number)).state
        times.append(1000 * (time.process_time() - began))
    return state, statistics.median(times)


def main() -> None:
    """Prints machine and figures."""
    print(f"{platform.machine()}, Python {platform.python_version()}")
    measure((1, 2, 3, 5, 7))
    measure(tuple(range(1, 17)))


if __name__ == "__main__":
    main()

"""What the plugin costs the engine: `python -m benchmarks.plugin`.

Runs the plugin's own hooks around a scheduler that does nothing, with outputs of the size that
vLLM's have, and prints the microseconds that they add to a step, also as a share of a fast GPU
step. Half of the steps run in trial blocks. The aim is below 10 µs, 0.2% of 5 ms.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace

from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import metrics, state_json
from live_speculation.schedule import Schedule, Trial
from live_speculation.vllm_hooks import hook

STEPS = 1_000
REPEATS = 200
CAPACITY = 7
BATCHES = (1, 4, 16, 64, 256)
FAST_STEP_US = 5_000.0


@dataclass(slots=True)
class Tokens:
    """What one request gets of a step."""

    new_token_ids: list[int]


class StandIn:
    """A scheduler whose step is made beforehand."""

    def __init__(self, batch: int) -> None:
        names = [f"request-{number}" for number in range(batch)]
        self.running = names
        self.dynamic_sd_lookup = [CAPACITY] * 1025
        self.output = SimpleNamespace(
            scheduled_new_reqs=[],
            num_scheduled_tokens=dict.fromkeys(names, CAPACITY + 1),
            total_num_scheduled_tokens=batch * (CAPACITY + 1),
            scheduled_spec_decode_tokens={name: [0] * CAPACITY for name in names},
            num_spec_tokens_to_schedule=CAPACITY,
        )
        drafts = SimpleNamespace(
            num_drafts=batch,
            num_draft_tokens=batch * CAPACITY,
            num_accepted_tokens=batch * 3,
            num_draft_tokens_per_pos=[batch] * CAPACITY,
            num_accepted_tokens_per_pos=[batch] * 3 + [0] * (CAPACITY - 3),
        )
        tokens = [Tokens([1, 2, 3, 4]) for _ in names]
        stats = SimpleNamespace(spec_decoding_stats=drafts)
        self.result = {0: SimpleNamespace(outputs=tokens, scheduler_stats=stats)}
        self._batch = batch

    def schedule(self) -> SimpleNamespace:
        self.output.num_spec_tokens_to_schedule = self.dynamic_sd_lookup[self._batch]
        return self.output

    def update_from_output(
        self, scheduler_output: object, model_runner_output: object
    ) -> dict[int, SimpleNamespace]:
        return self.result


def microseconds_a_step(scheduler: StandIn) -> float:
    """The least of REPEATS short runs of STEPS steps, in CPU time: others may use the machine."""
    runs = []
    for _ in range(REPEATS):
        schedule, update = scheduler.schedule, scheduler.update_from_output
        began = time.thread_time()
        for _ in range(STEPS):
            update(schedule(), None)
        runs.append((time.thread_time() - began) / STEPS * 1e6)
    return min(runs)


def hooked(batch: int) -> tuple[StandIn, LiveSpeculation]:
    """A scheduler with the plugin in it, half of its steps in trial blocks."""
    scheduler = StandIn(batch)
    engine = Engine("-", "V1", "mtp", CAPACITY, 1024, frozenset(range(CAPACITY + 1)))
    live = LiveSpeculation(engine)
    trial = Trial((1, 1024), (0, 1, 2, 3, 5), 0.5, 20, 1_000_000)
    live.offer(Schedule("0" * 12, ((1, 1024, CAPACITY),), (trial,)))
    hook(scheduler, live)  # type: ignore[arg-type]
    return scheduler, live


def main() -> None:
    print("plugin: µs that the hooks add to a step (aim: below 10, 0.2% of a 5 ms step)")
    print(f"{'batch':>7} {'µs':>7} {'of 5 ms':>8}   page /state   page /metrics")
    for batch in BATCHES:
        scheduler, live = hooked(batch)
        added = microseconds_a_step(scheduler) - microseconds_a_step(StandIn(batch))
        state, text = state_json(live), metrics(live)
        print(
            f"{batch:>7} {added:>7.1f} {added / FAST_STEP_US:>8.2%}"
            f"   {len(state):>5} bytes   {len(text):>5} bytes"
        )


if __name__ == "__main__":
    main()

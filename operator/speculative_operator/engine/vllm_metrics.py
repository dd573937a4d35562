"""Reads what is needed of vLLM's own `/metrics`, for engines without the plugin.

The page shows acceptance, tokens and the mean time of all steps, but not at which K and batch a
step was made; so such an engine is never tuned live. Its sums stand in one row: the started K (0
without speculation), no batch cell, phase `any`. Only needed lines are parsed: a page is 50 KiB and
up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.tuning.page import (
    Counters,
    Counts,
    Page,
    Phase,
    Position,
    Proposed,
    RowKey,
)

REASON = (
    "the live speculation plugin does not answer: no step times by K, no change of K while serving"
)

START = "process_start_time_seconds"
NAMES = (
    "spec_decode_num_drafts_total",
    "spec_decode_num_draft_tokens_total",
    "spec_decode_num_accepted_tokens_total",
    "spec_decode_num_accepted_tokens_per_pos_total",
    "generation_tokens_total",
    "num_requests_running",
    "num_requests_waiting",
    "inter_token_latency_seconds_sum",
    "inter_token_latency_seconds_count",
    "iteration_tokens_total_count",
)
"""What is needed of vLLM's series, without their prefix `vllm:`."""

_NEEDED = re.compile(
    rf"^(?:vllm:(?P<name>{'|'.join(NAMES)})\{{(?P<labels>[^}}]*)\}}"
    rf"|(?P<start>{START})) (?P<value>\S+)$",
    re.MULTILINE,
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Samples = dict[str, float]


def parse_vllm_metrics(text: str) -> Page:
    """The page, or PageUnreadable.

    Refused: a page that is cut, that holds the numbers of two models (whose sums belong to nobody)
    or one number twice, or a number that no counter can have. The ranks of data parallelism, each
    an `engine` of the page, are added up. An engine that speculates shows its speculative counters
    from its start on: where there are none, it decodes plainly, at K=0. Several API processes show
    no start time; there a restart is only told by counters that went back.
    """
    if not text.endswith("\n"):
        raise PageUnreadable("the page is cut")
    samples, positions = _samples(text)
    for name in ("generation_tokens_total", "num_requests_running"):
        if name not in samples:
            raise PageUnreadable(f"{name} is missing")
    started = samples.get(START, 0.0)
    capacity = len(positions)
    speculates = "spec_decode_num_drafts_total" in samples
    row = _timed(_row(samples) if speculates else _plain_row(samples), samples)
    return Page(
        plugin="",
        vllm="",
        method="",
        capacity=capacity,
        tunable=False,
        reason=REASON,
        hash_read=None,
        hash_in_force=None,
        error="",
        lease=None,
        running=int(samples["num_requests_running"]),
        waiting=int(samples.get("num_requests_waiting", 0.0)),
        idle_seconds=0.0,
        trials=(),
        counters=Counters(
            pid=0,
            started=started,
            rows={RowKey(capacity, None, Phase.ANY): row},
            positions={
                Position(capacity, at): Proposed(row.drafts, accepted)
                for at, accepted in sorted(positions.items())
            },
        ),
    )


def _samples(text: str) -> tuple[Samples, dict[int, float]]:
    """Values by name without its prefix, and accepted tokens by position, over all ranks."""
    samples: Samples = {}
    positions: dict[int, float] = {}
    models: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for match in _NEEDED.finditer(text):
        name, labelled = match["name"] or match["start"], match["labels"] or ""
        if (name, labelled) in seen:
            raise PageUnreadable(f"{name} stands there twice")
        seen.add((name, labelled))
        labels: Mapping[str, str] = dict(_LABEL.findall(labelled))
        value = _value(match["value"], name)
        if match["name"]:
            models.add(labels.get("model_name", ""))
        if name == "spec_decode_num_accepted_tokens_per_pos_total":
            at = _position(labels)
            positions[at] = positions.get(at, 0.0) + value
        else:
            samples[name] = samples.get(name, 0.0) + value
    if len(models) > 1:
        raise PageUnreadable(f"the page is of more than one model: {', '.join(sorted(models))}")
    return samples, positions


def _row(samples: Samples) -> Counts:
    """All sums of the engine. A step without drafts is not counted by vLLM, so a request's share
    of a step is read from the drafts."""
    drafts = samples["spec_decode_num_drafts_total"]
    try:
        return Counts(
            drafts=drafts,
            draft_tokens=samples["spec_decode_num_draft_tokens_total"],
            accepted=samples["spec_decode_num_accepted_tokens_total"],
            generated=samples["generation_tokens_total"],
            requests=drafts,
        )
    except KeyError as error:
        raise PageUnreadable(f"{error.args[0]} is missing") from error


def _plain_row(samples: Samples) -> Counts:
    """Plain decoding: a request gives one token a step."""
    generated = samples["generation_tokens_total"]
    return Counts(generated=generated, requests=generated)


def _timed(row: Counts, samples: Samples) -> Counts:
    """With the times of steps, where vLLM shows them: each request tells of each step after that of
    its first token, so `seconds` are summed over steps and their requests. See `Window.as_played`.
    """
    steps = samples.get("iteration_tokens_total_count")
    requests = samples.get("inter_token_latency_seconds_count")
    seconds = samples.get("inter_token_latency_seconds_sum")
    if steps is None or requests is None or seconds is None:
        return row
    return row._replace(steps=steps, seconds=seconds, requests=requests)


def _value(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise PageUnreadable(f"{name}: {text!r:.40} is no number") from error
    if not math.isfinite(value) or value < 0:
        raise PageUnreadable(f"{name}: no counter can be {text}")
    return value


def _position(labels: Mapping[str, str]) -> int:
    try:
        return int(labels["position"])
    except (KeyError, ValueError) as error:
        raise PageUnreadable("accepted tokens without a position") from error

"""Makes a page of what Prometheus has of a pod: the series that it scraped from the plugin, else
those of vLLM's own page. Pure.

All samples of one scrape have one time, so the page is what stood there at the newest of them: a
series whose last sample is older was not on it. Its values go through the same readers as a page
that comes from the engine itself, and are refused for the same reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from speculative_operator.engine.state_page import KEY_COLUMNS, PROTOCOL, read_state
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.engine.vllm_metrics import NAMES, START, parse_vllm_metrics
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import EDGES, Page

LOOK_BACK_SECONDS = 120
"""An older scrape is none: twice the minute that is usual between two scrapes at most."""

COLUMNS = {
    "steps": "speculation_steps_total",
    "clipped": "speculation_steps_clipped_total",
    "seconds": "speculation_step_seconds_total",
    "log_us": "speculation_step_log_microseconds_total",
    "log_us_sq": "speculation_step_log_microseconds_squared_total",
    "drafts": "speculation_drafts_total",
    "draft_tokens": "speculation_draft_tokens_total",
    "accepted": "speculation_accepted_tokens_total",
    "generated": "speculation_generated_tokens_total",
    "requests": "speculation_request_steps_total",
}
"""The plugin's series by the column of `/state`, by `k`, `batch` and `phase`."""

NUMBERS = {
    "running": "speculation_requests_running",
    "waiting": "speculation_requests_waiting",
    "idle_seconds": "speculation_idle_seconds",
    "started": "speculation_start_time_seconds",
}
DRAFTED, ACCEPTED = "speculation_position_drafted_total", "speculation_position_accepted_total"
PROMPTS, REPEATED = "speculation_prompts_total", "speculation_prompts_repeated_total"
TRIALS, INFO = "speculation_trial_rounds_left", "speculation_info"
TEXTS = ("plugin", "vllm", "method", "reason", "error")
BOOLEANS = ("tunable", "measured")
HASHES = ("hash_read", "hash_in_force")

OF_PLUGIN = frozenset(
    (*COLUMNS.values(), *NUMBERS.values(), DRAFTED, ACCEPTED, PROMPTS, REPEATED, TRIALS, INFO)
)

OF_VLLM = tuple(f"vllm:{name}" for name in NAMES)
OWN_LABELS = ("model_name", "engine", "position")
"""Of vLLM's series; the others come from whoever scrapes."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """The last value of one series, and when it was scraped, in Unix time."""

    labels: Labels
    at: float
    value: str

    @property
    def name(self) -> str:
        return self.labels.get("__name__", "")


def query(namespace: str, pod: str) -> str:
    """What is asked of Prometheus: the samples of the last two minutes with their own times."""
    names = "|".join((*sorted(OF_PLUGIN), START, *OF_VLLM))
    of_pod = f"namespace={json.dumps(namespace)},pod={json.dumps(pod)}"
    return f'{{__name__=~"{names}",{of_pod}}}[{LOOK_BACK_SECONDS}s]'


def samples_of(answer: object) -> tuple[Sample, ...]:
    """The last sample of each series in the answer to such a query; PageUnreadable."""
    try:
        data: Any = answer["data"]  # type: ignore[index]
        if data["resultType"] != "matrix":
            raise PageUnreadable(f"Prometheus answered with a {data['resultType']}, not a matrix")
        return tuple(
            Sample(series["metric"], float(series["values"][-1][0]), str(series["values"][-1][1]))
            for series in data["result"]
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise PageUnreadable(f"no answer of Prometheus: {error!r:.80}") from error


def page_of(samples: Iterable[Sample], now: float) -> Page:
    """The page that was scraped last; EngineSilent where there is none, PageUnreadable where it
    cannot be understood. `now` is Unix time."""
    found = tuple(samples)
    plugin = _last_scrape([sample for sample in found if sample.name in OF_PLUGIN])
    if plugin:
        page = replace(read_state(_state(plugin)), age=_age(plugin, now))
        if page.measured:
            return page
    own = _last_scrape(_of_vllm(found))
    if not own:
        raise EngineSilent(
            f"Prometheus has no sample of this pod in {LOOK_BACK_SECONDS} s: let it scrape the "
            "ports speculation and http of each pod of a model, with the labels namespace and pod"
        )
    of_vllm = replace(parse_vllm_metrics(_text(own)), age=_age(own, now))
    if plugin:
        return replace(of_vllm, plugin=page.plugin, vllm=page.vllm, reason=page.reason)
    return of_vllm


def _last_scrape(samples: Sequence[Sample]) -> list[Sample]:
    newest = max((sample.at for sample in samples), default=0.0)
    return [sample for sample in samples if sample.at == newest]


def _age(samples: Sequence[Sample], now: float) -> float:
    return max(0.0, now - samples[0].at)


# The plugin's page.


def _state(samples: Sequence[Sample]) -> Mapping[str, Any]:
    """The values of `/state`, but for `pid` and `lease`, which no series has."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    info = _one(by_name, INFO).labels
    if "measured" not in info:
        raise PageUnreadable(
            f"the pod's plugin {info.get('plugin', '')} is older than tuning.source: Prometheus: "
            "set the annotation speculation.dev/refresh, or write source: Pods"
        )
    return {
        "protocol": PROTOCOL if info.get("protocol") == str(PROTOCOL) else info.get("protocol"),
        "pid": 0,
        **{name: info.get(name, "") for name in TEXTS},
        **{name: info.get(name) == "true" for name in BOOLEANS},
        **{name: info.get(name) or None for name in HASHES},
        "capacity": _number(info.get("capacity", ""), "capacity"),
        **{key: _value(_one(by_name, name)) for key, name in NUMBERS.items()},
        "prompts": [_value(_one(by_name, name)) for name in (PROMPTS, REPEATED)],
        "trials": [_trial(sample) for sample in by_name.get(TRIALS, ())],
        "edges": list(EDGES),
        "columns": [*KEY_COLUMNS, *COLUMNS],
        "rows": _rows(by_name),
        "positions": _positions(by_name),
    }


def _one(by_name: Mapping[str, Sequence[Sample]], name: str) -> Sample:
    match by_name.get(name, ()):
        case [sample]:
            return sample
        case []:
            raise PageUnreadable(f"{name} is missing")
        case _:
            raise PageUnreadable(f"{name} stands there twice: {_twice()}")


def _twice() -> str:
    return "two jobs of Prometheus scrape this pod; leave one"


def _trial(sample: Sample) -> Mapping[str, Any]:
    edges = [_number(sample.labels.get(name, ""), f"{TRIALS}.{name}") for name in ("low", "high")]
    return {"batch": edges, "rounds_left": _value(sample)}


def _rows(by_name: Mapping[str, Sequence[Sample]]) -> list[list[object]]:
    """One row for each k, batch and phase, with all its columns."""
    sums = {
        column: _by(by_name.get(name, ()), ("k", "batch", "phase"))
        for column, name in COLUMNS.items()
    }
    keys = {key for column in sums.values() for key in column}
    rows: list[list[object]] = []
    for key in sorted(keys):
        k, batch, phase = key
        missing = [COLUMNS[column] for column, values in sums.items() if key not in values]
        if missing:
            raise PageUnreadable(f"{', '.join(missing)} missing at k={k}, batch={batch}, {phase}")
        cell = None if batch == "+Inf" else _number(batch, "batch")
        rows.append([_number(k, "k"), cell, phase, *(values[key] for values in sums.values())])
    return rows


def _positions(by_name: Mapping[str, Sequence[Sample]]) -> list[list[float]]:
    drafted = _by(by_name.get(DRAFTED, ()), ("k", "position"))
    accepted = _by(by_name.get(ACCEPTED, ()), ("k", "position"))
    if drafted.keys() != accepted.keys():
        raise PageUnreadable(f"{DRAFTED} and {ACCEPTED} are not of the same positions")
    return [
        [_number(k, "k"), _number(at, "position"), count, accepted[k, at]]
        for (k, at), count in sorted(drafted.items())
    ]


def _by(samples: Iterable[Sample], names: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Values by some of the labels, which tell the series of one page apart."""
    found: dict[tuple[str, ...], float] = {}
    for sample in samples:
        key = tuple(sample.labels.get(name, "") for name in names)
        if key in found:
            raise PageUnreadable(f"{sample.name} stands there twice: {_twice()}")
        found[key] = _value(sample)
    return found


def _value(sample: Sample) -> float:
    return _number(sample.value, sample.name)


def _number(text: str, where: str) -> float:
    """Whole numbers stay whole; what no counter can be is refused by the page's own reader."""
    try:
        value = float(text)
    except ValueError as error:
        raise PageUnreadable(f"{where}: {text!r:.40} is no number") from error
    return int(value) if value.is_integer() else value


# vLLM's own page.


def _of_vllm(samples: Sequence[Sample]) -> list[Sample]:
    """vLLM's series, and its process's start: other pages of the pod may have one, too."""
    own = [sample for sample in samples if sample.name in OF_VLLM]
    targets = {sample.labels.get("instance") for sample in own}
    starts = [s for s in samples if s.name == START and s.labels.get("instance") in targets]
    return [*own, *starts]


def _text(samples: Iterable[Sample]) -> str:
    """As vLLM's page has it, without the labels of whoever scraped."""
    lines = []
    for sample in samples:
        labels = ",".join(
            f"{name}={json.dumps(sample.labels[name], ensure_ascii=False)}"
            for name in OWN_LABELS
            if name in sample.labels and sample.name != START
        )
        where = f"{{{labels}}}" if labels else ""
        lines.append(f"{sample.name}{where} {sample.value}")
    return "\n".join([*lines, ""])

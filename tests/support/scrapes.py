"""Stands in for Prometheus: keeps what was scraped of pods, and answers as its HTTP API does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from speculative_operator.engine.series import LOOK_BACK_SECONDS, Sample, samples_of

LINE = re.compile(r"^([a-z][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Scrapes:
    """The samples of all series, oldest first."""

    kept: dict[frozenset[tuple[str, str]], list[tuple[float, str]]] = field(default_factory=dict)

    def scrape(self, text: str, at: float, **target: str) -> None:
        """A page that was scraped, with the labels of its target. Empty labels are none."""
        for name, labelled, value in LINE.findall(text):
            labels = {"__name__": name, **target}
            labels |= {label: _unescaped(said) for label, said in LABEL.findall(labelled)}
            key = frozenset((label, said) for label, said in labels.items() if said)
            kept = self.kept.setdefault(key, [])
            kept[:] = [old for old in kept if old[0] >= at - LOOK_BACK_SECONDS]
            kept.append((at, value))

    def answer(self, pod: str, now: float) -> Mapping[str, Any]:
        """To the operator's query for one pod."""
        since = now - LOOK_BACK_SECONDS
        result = [
            {"metric": dict(key), "values": [[at, value] for at, value in values if at >= since]}
            for key, values in self.kept.items()
            if ("pod", pod) in key and values[-1][0] >= since
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    def samples(self, pod: str, now: float) -> tuple[Sample, ...]:
        """The same as the operator reads it."""
        return samples_of(self.answer(pod, now))


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")

"""Goodput by K from the difference of two of the plugin's pages."""

from __future__ import annotations

import json
import math
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

FEWEST_STEPS = 5


@dataclass(frozen=True)
class Goodput:
    """Tokens a second of one engine at one K, over all batches seen, while decoding only."""

    length: int
    tokens_a_second: float
    error: float
    """Standard error, from the spread of the step times."""
    steps: int

    def __str__(self) -> str:
        return f"K={self.length}: {self.tokens_a_second:.0f} ± {self.error:.0f} ({self.steps})"


def page(address: str) -> dict[str, Any]:
    """The plugin's `/state` of the engine at a pod's address."""
    with urllib.request.urlopen(f"http://{address}:9405/state", timeout=10) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def goodput(before: dict[str, Any], after: dict[str, Any]) -> list[Goodput]:
    """By K, smallest first: (tokens a step) ÷ (geometric mean of the step time).

    Cells of several batch sizes are weighted by their steps. Source of the formula: goodput is
    E(K) · requests ÷ T(K); the page's `generated` is E(K) · requests, summed over the timed
    steps.
    """
    names = after["columns"]
    old = {tuple(row[:3]): row for row in before["rows"]}
    by_length: dict[int, list[dict[str, float]]] = defaultdict(list)
    for row in after["rows"]:
        past = old.get(tuple(row[:3]), [*row[:3], *[0] * (len(names) - 3)])
        change = {
            name: value - was for name, value, was in zip(names[3:], row[3:], past[3:], strict=True)
        }
        if row[2] == "decode" and change["steps"] >= FEWEST_STEPS:
            by_length[row[0]].append(change)
    return [_of(length, cells) for length, cells in sorted(by_length.items())]


def _of(length: int, cells: list[dict[str, float]]) -> Goodput:
    steps = sum(cell["steps"] for cell in cells)
    rate = variance = 0.0
    for cell in cells:
        mean = cell["log_us"] / cell["steps"]
        spread = max(0.0, cell["log_us_sq"] / cell["steps"] - mean**2)
        share = cell["steps"] / steps
        here = cell["generated"] / cell["steps"] / (math.exp(mean) / 1e6)
        rate += share * here
        variance += (share * here) ** 2 * spread / cell["steps"]
    return Goodput(length, rate, math.sqrt(variance), int(steps))

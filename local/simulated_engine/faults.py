"""Spoils a page the way that `World.page` asks. Pure: text in, text out."""

from __future__ import annotations

import json
import re
from typing import Any

from local.simulated_engine.world import PageFault

_COUNTER_LINE = re.compile(
    r"^(?:vllm:spec_decode_|speculation_(?:step|draft|acc|gen|pos)).*\n", re.MULTILINE
)
_ACCEPTED_LINE = re.compile(
    r"^((?:vllm:spec_decode_num_accepted_tokens_per_pos_total|speculation_position_accepted_total)"
    r"\{.*\}) \S+$",
    re.MULTILINE,
)
_VALUE = re.compile(r"^((?:vllm|speculation)[^ \n{]*(?:\{.*\})?) \S+$", re.MULTILINE)


class PageUnreachable(OSError):
    """The page is not to be had."""


def spoil_state(text: str, fault: PageFault) -> str:
    """The plugin's JSON page under `fault`."""
    match fault:
        case PageFault.NONE | PageFault.RESET:
            return text
        case PageFault.UNREACHABLE:
            raise PageUnreachable("a test made the page unreachable")
        case PageFault.TRUNCATED:
            return text[: len(text) // 2]
        case PageFault.TWO_MODELS:
            return text + text
        case _:
            return json.dumps(_spoiled(json.loads(text), fault))


def _spoiled(page: dict[str, Any], fault: PageFault) -> dict[str, Any]:
    """The page with other values, or without some."""
    match fault:
        case PageFault.CONTRADICTORY:
            page["positions"] = [[*head, accepted // 2] for *head, accepted in page["positions"]]
        case PageFault.UNMEASURED:
            page |= {"measured": False, "tunable": False, "reason": "this vLLM is not known"}
            page |= dict.fromkeys(_SUMS, ())
        case PageFault.VANISHED:
            return {name: page[name] for name in page if name not in _SUMS}
        case PageFault.NAN:
            first_sum = page["columns"].index("steps")
            for row in page["rows"]:
                row[first_sum:] = [float("nan")] * len(row[first_sum:])
    return page


def spoil_metrics(text: str, fault: PageFault) -> str:
    """A Prometheus page, vLLM's or the plugin's, under `fault`."""
    match fault:
        case PageFault.NONE | PageFault.RESET | PageFault.UNMEASURED:
            return text
        case PageFault.CONTRADICTORY:
            return _ACCEPTED_LINE.sub(r"\g<1>0.0", text)
        case PageFault.UNREACHABLE:
            raise PageUnreachable("a test made the page unreachable")
        case PageFault.TRUNCATED:
            return text[: len(text) // 2]
        case PageFault.TWO_MODELS:
            return text + re.sub(r'model_name="[^"]*"', 'model_name="another"', text)
        case PageFault.VANISHED:
            return _COUNTER_LINE.sub("", text)
        case PageFault.NAN:
            return _VALUE.sub(r"\1 NaN", text)


_SUMS = ("rows", "positions")

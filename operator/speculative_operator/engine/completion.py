"""vLLM's /v1/completions: what is asked for a greedy continuation, and what its answer says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.plan.continuations import LENGTH, Continuation

NUMBERED = "token_id:"
SURE = 99.0
"""Nats between the two best tokens where the engine names only one."""


def asked_of(model: str, prompt: str, *, gaps: bool) -> Mapping[str, Any]:
    """The request. Tokens are wanted by their numbers, since two may be written alike; at the end
    of a text the engine goes on, so that all continuations have one length."""
    asked = {
        "model": model,
        "prompt": prompt,
        "max_tokens": LENGTH,
        "temperature": 0,
        "ignore_eos": True,
    }
    if gaps:
        return {**asked, "logprobs": 2, "return_tokens_as_token_ids": True}
    return {**asked, "return_token_ids": True}


def parse_completion(body: bytes, *, gaps: bool) -> Continuation:
    """The tokens and, if asked for, which was second best to each, and how far behind.
    PageUnreadable."""
    return _sure(body) if gaps else _plain(body)


def _plain(body: bytes) -> Continuation:
    try:
        return Continuation(tuple(int(n) for n in json.loads(body)["choices"][0]["token_ids"]))
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise PageUnreadable("/v1/completions is no answer with token_ids") from error


def _sure(body: bytes) -> Continuation:
    try:
        said = json.loads(body)["choices"][0]["logprobs"]
        tokens = tuple(int(token.removeprefix(NUMBERED)) for token in said["tokens"])
        seconds = tuple(map(_second, said["tokens"], said["top_logprobs"]))
        gaps, runners_up = (tuple(each) for each in zip(*seconds, strict=True))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise PageUnreadable("/v1/completions is no answer with log-probabilities") from error
    if len(tokens) != len(gaps) or not all(map(math.isfinite, gaps)):
        raise PageUnreadable("/v1/completions has no log-probability for each token")
    return Continuation(tokens, gaps, runners_up)


def _second(token: str, best: Mapping[str, float]) -> tuple[float, int]:
    """By how much the second best token was behind, and which it was."""
    others = {other: value for other, value in best.items() if other != token}
    if not others:
        return SURE, int(token.removeprefix(NUMBERED))
    second = max(others, key=lambda other: others[other])
    return float(best[token] - others[second]), int(second.removeprefix(NUMBERED))

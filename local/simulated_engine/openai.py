"""The JSON of the OpenAI-compatible endpoints, as vLLM words it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.simulated_engine.wording import VOCABULARY, count_tokens

SURE, UNLIKELY = -0.01, -6.0
OTHER_TOKEN = "token_id:99"


class RequestInvalid(ValueError):
    """The request cannot be served; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Asked:
    """What one completion request wants."""

    model: str
    prompt: str
    prompt_tokens: int
    limit: int
    stream: bool
    usage: bool
    """A last chunk with the usage."""
    running_usage: bool
    """The usage so far in every chunk."""
    chat: bool
    logprobs: bool
    """What else might have been said at each token, with log-probabilities."""
    token_ids: bool


def read_request(body: object, *, chat: bool, models: tuple[str, ...]) -> Asked:
    """Reads a request body. Raises RequestInvalid with what vLLM's client would be told."""
    if not isinstance(body, Mapping):
        raise RequestInvalid("the body must be a JSON object")
    model = body.get("model", models[0])
    if model not in models:
        raise RequestInvalid(f"The model `{model}` does not exist.", 404)
    prompt = _chat_prompt(body.get("messages")) if chat else body.get("prompt")
    if not isinstance(prompt, str | list) or not prompt:
        raise RequestInvalid("prompt: must be a text or a list of token ids")
    limit = body.get("max_completion_tokens", body.get("max_tokens", 256 if chat else 16))
    if not isinstance(limit, int) or limit < 1:
        raise RequestInvalid(f"max_tokens: must be at least 1, not {limit!r}")
    options = body.get("stream_options") or {}
    return Asked(
        model=model,
        prompt=prompt if isinstance(prompt, str) else json.dumps(prompt),
        prompt_tokens=count_tokens(prompt),
        limit=limit,
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")),
        running_usage=bool(options.get("continuous_usage_stats")),
        chat=chat,
        logprobs=body.get("logprobs") is not None and not chat,
        token_ids=bool(body.get("return_token_ids")) and not chat,
    )


def _chat_prompt(messages: object) -> str:
    if not isinstance(messages, list) or not messages:
        raise RequestInvalid("messages: must be a list of at least one message")
    return "\n".join(f"{message.get('role')}: {message.get('content')}" for message in messages)


def _logprobs(text: str) -> dict[str, Any]:
    """Of an engine that is sure of each word, with tokens by their numbers."""
    tokens = [f"token_id:{number}" for number in _numbers(text)]
    return {
        "tokens": tokens,
        "token_logprobs": [SURE] * len(tokens),
        "top_logprobs": [{token: SURE, OTHER_TOKEN: UNLIKELY} for token in tokens],
        "text_offset": [],
    }


def _numbers(text: str) -> list[int]:
    return [VOCABULARY.index(word) for word in text.split()]


@dataclass(frozen=True)
class Answering:
    """Builds the bodies of one answer."""

    asked: Asked
    identity: str
    created: int
    """Unix time in whole seconds."""

    def whole(self, text: str, generated: int) -> dict[str, Any]:
        """The answer without streaming."""
        content = {"message": {"role": "assistant", "content": text}} if self.asked.chat else {
            "text": text
        }  # fmt: skip
        logprobs = _logprobs(text) if self.asked.logprobs else None
        end = {"logprobs": logprobs, "finish_reason": "length"}
        choice: dict[str, Any] = {"index": 0, **content, **end}
        if self.asked.token_ids:
            choice["token_ids"] = _numbers(text)
        kind = "chat.completion" if self.asked.chat else "text_completion"
        return self._body(kind, [choice]) | {"usage": self._usage(generated)}

    def opening(self) -> dict[str, Any] | None:
        """The chunk before the first token: chat says who speaks."""
        return self._chunk({"role": "assistant", "content": ""}, None) if self.asked.chat else None

    def part(self, text: str, generated: int) -> dict[str, Any]:
        """One step's tokens; `generated` counts them all up to here."""
        last = generated == self.asked.limit
        content: dict[str, Any] = {"content": text} if self.asked.chat else {"text": text}
        chunk = self._chunk(content, "length" if last else None)
        return chunk | {"usage": self._usage(generated)} if self.asked.running_usage else chunk

    def closing(self, generated: int) -> dict[str, Any] | None:
        """The chunk with the usage, for who asked for it."""
        if not self.asked.usage:
            return None
        return self._body(self._chunk_kind, []) | {"usage": self._usage(generated)}

    @property
    def _chunk_kind(self) -> str:
        return "chat.completion.chunk" if self.asked.chat else "text_completion"

    def _chunk(self, content: dict[str, Any], reason: str | None) -> dict[str, Any]:
        shown = {"delta": content} if self.asked.chat else content
        return self._body(
            self._chunk_kind,
            [{"index": 0, **shown, "logprobs": None, "finish_reason": reason}],
        )

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.identity,
            "object": kind,
            "created": self.created,
            "model": self.asked.model,
            "choices": choices,
        }

    def _usage(self, generated: int) -> dict[str, int]:
        prompt = self.asked.prompt_tokens
        return {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }

"""Continuous batching without a model: requests join and leave, every step yields tokens.

Time is an argument. The owner calls `begin(now)`, lets the step's seconds pass, and calls
`complete(now)`: in real time by sleeping, in virtual time by adding.

As in vLLM, K is picked by the number of scheduled requests; the drafts made in a step are verified
in the next one; a request's first step is its prefill and yields one token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from live_speculation.ledger import NO_DRAFTS, Ledger, Outcome, Step
from live_speculation.live import LiveSpeculation
from local.simulated_engine.draft import Draft
from local.simulated_engine.world import PageFault, World

TOKEN_BUDGET = 8192
"""Most prompt tokens in one step; more requests wait, a single longer prompt goes alone."""


class Request:
    """One request in the engine. Times are those of the engine's clock; `generated` is a count.
    `prompt` stands for the prompt's text: equal numbers are equal texts."""

    __slots__ = (
        "arrived", "first_token", "generated", "limit", "prompt", "prompt_tokens", "scheduled",
    )  # fmt: skip

    def __init__(self, prompt_tokens: int, limit: int, arrived: float, *, prompt: int = 0) -> None:
        self.prompt_tokens = prompt_tokens
        self.prompt = prompt
        self.limit = limit
        self.arrived = arrived
        self.scheduled = arrived
        self.first_token = arrived
        self.generated = 0

    @property
    def done(self) -> bool:
        """All tokens that were asked for have been given out."""
        return self.generated >= self.limit


class Completed(NamedTuple):
    """What one step brought."""

    seconds: float
    prompt_tokens: int
    decoded: int
    """Requests that decoded: all that were scheduled but the prefills."""
    generated: int
    outcome: Outcome
    given: Sequence[tuple[Request, int]]
    """Each scheduled request and its new tokens."""
    finished: Sequence[Request]


class _Begun(NamedTuple):
    at: float
    seconds: float
    asked: int
    prompt_tokens: int
    step: Step | None
    decoding: Sequence[Request]
    prefilled: Sequence[Request]


class Engine:
    """One engine core.

    `pick` is the engine's own K by batch size (the start schedule, or its configured K).
    `live` is the plugin's part, or None for an engine without the plugin.
    """

    def __init__(
        self,
        draft: Draft,
        *,
        max_batch: int,
        pick: Callable[[int], int],
        live: LiveSpeculation | None = None,
    ) -> None:
        self.draft = draft
        self.live = live
        self.world = World()
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._max_batch = max_batch
        self._pick = pick
        self._asked = pick(1)
        self._begun: _Begun | None = None

    def load(self) -> tuple[int, int]:
        """Requests (running, waiting)."""
        return len(self.running), len(self.waiting)

    def change(self, wanted: Mapping[str, object]) -> None:
        """New conditions, from the next step on. ValueError: see `World.changed`."""
        before, self.world = self.world, self.world.changed(wanted)
        if self.live is not None:
            self.live.started += before.age - self.world.age
        if self.live is not None and wanted.get("page") == PageFault.RESET:
            self.live.ledger = Ledger()

    def submit(self, request: Request) -> None:
        """Queues a request; it joins the next step that has room."""
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """Forgets a request, whose client has gone."""
        for queue in (self.waiting, self.running):
            if request in queue:
                queue.remove(request)

    def begin(self, now: float) -> float | None:
        """Schedules a step and returns its seconds; None while there is nothing to do."""
        joined = self._join(now)
        batch = len(self.running)
        if not batch:
            return None
        lookup = self.live.table(now) if self.live is not None else None
        length = lookup[batch] if lookup is not None else self._pick(batch)
        step = None
        if self.live is not None:
            for request in joined:
                self.live.prompts.see(request, (request.prompt,))
            step = self.live.scheduled(batch, length, mixed=bool(joined))
        asked, self._asked = self._asked, length
        prompt_tokens = sum(request.prompt_tokens for request in joined)
        decoding = self.running[: batch - len(joined)]
        seconds = self.draft.seconds(asked, batch, prompt_tokens, self.world, now)
        self._begun = _Begun(now, seconds, asked, prompt_tokens, step, decoding, joined)
        return seconds

    def complete(self, now: float) -> Completed:
        """Ends the step that `begin` scheduled."""
        begun = self._begun
        if begun is None:
            raise RuntimeError("no step has begun")
        self._begun = None
        accepted, outcome = self._verify(begun)
        given = []
        finished = []
        generated = 0
        for request, count in zip(begun.decoding, accepted, strict=True):
            left = request.limit - request.generated
            tokens = 1 + count
            if tokens >= left:
                tokens = left
                finished.append(request)
            request.generated += tokens
            generated += tokens
            given.append((request, tokens))
        for request in begun.prefilled:
            request.first_token = now
            request.generated = 1
            generated += 1
            given.append((request, 1))
            if request.limit == 1:
                finished.append(request)
        if finished:
            self.running = [request for request in self.running if not request.done]
        if self.live is not None:
            more = bool(self.running or self.waiting)
            self.live.finished(begun.step, now, generated, outcome, more=more)
        return Completed(
            seconds=now - begun.at,
            prompt_tokens=begun.prompt_tokens,
            decoded=len(begun.decoding),
            generated=generated,
            outcome=outcome,
            given=given,
            finished=finished,
        )

    def _join(self, now: float) -> list[Request]:
        joined: list[Request] = []
        budget = TOKEN_BUDGET
        while self.waiting and len(self.running) < self._max_batch:
            if joined and self.waiting[0].prompt_tokens > budget:
                break
            request = self.waiting.popleft()
            budget -= request.prompt_tokens
            request.scheduled = now
            self.running.append(request)
            joined.append(request)
        return joined

    def _verify(self, begun: _Begun) -> tuple[Sequence[int], Outcome]:
        """Accepted drafts of each decoding request, and the sums that the plugin books."""
        length, drafts = begun.asked, len(begun.decoding)
        if not length or not drafts or self.world.silent:
            return [0] * drafts, NO_DRAFTS
        accepted = self.draft.accepted(length, drafts, self.world)
        accepted_at = [0] * (length + 1)
        for count in accepted:
            accepted_at[count] += 1
        for position in range(length, 0, -1):
            accepted_at[position - 1] += accepted_at[position]
        outcome = Outcome(
            drafts, drafts * length, sum(accepted), [drafts] * length, accepted_at[1:]
        )
        return accepted, outcome

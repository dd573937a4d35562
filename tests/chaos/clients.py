"""Clients of a model that send one request after the other and keep a record of each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import aiohttp

from tests.support.api import until

CLIENTS = 4
TOKENS = 96
PATIENCE = 20.0
"""Seconds for which a request is sent again, as a gateway in front of the model would, before it is
lost."""

PAUSE = 0.25
"""Seconds before a request is sent again."""

LONGEST, CONNECTING = 30.0, 2.0
"""Seconds that one try may take, and its connection: no answer comes from the address of a Service
that is gone."""


@dataclass(frozen=True)
class Asked:
    """One request. `tries` counts how often it was sent, `lost` says why it got no answer."""

    began: float
    tries: int
    lost: str = ""


class Clients:
    """`address` says where the model is; it is asked before each new connection."""

    def __init__(self, model: str, address: Callable[[], str]) -> None:
        self.asked: list[Asked] = []
        self.complaints: list[str] = []
        """Why tries failed, in their order."""
        self._model = model
        self._address = address
        self._under_way: dict[int, float] = {}
        self._stop = threading.Event()
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def sending(self) -> Iterator[Clients]:
        """Until the body is left."""
        thread = threading.Thread(target=lambda: asyncio.run(self._send_all()))
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()

    def since(self, when: float) -> list[Asked]:
        """The requests that began since `when`, once all that began by now have ended."""
        now = time.monotonic()
        until(
            "the requests under way have ended",
            lambda: all(began > now for began in list(self._under_way.values())),
        )
        return [each for each in list(self.asked) if when <= each.began <= now]

    async def _send_all(self) -> None:
        # A kept connection would stay with one pod, however many there are.
        connector = aiohttp.TCPConnector(force_close=True)
        timeout = aiohttp.ClientTimeout(total=LONGEST, sock_connect=CONNECTING)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._client(session) for _ in range(CLIENTS)))

    async def _client(self, session: aiohttp.ClientSession) -> None:
        while not self._stop.is_set():
            number = next(self._numbers)
            self._under_way[number] = time.monotonic()
            self.asked.append(await self._ask(session, number))
            del self._under_way[number]

    async def _ask(self, session: aiohttp.ClientSession, number: int) -> Asked:
        began = self._under_way[number]
        body = {
            "model": self._model,
            "prompt": f"{number} is a number",
            "max_tokens": TOKENS,
            "ignore_eos": True,
        }
        for tries in itertools.count(1):
            url = f"{self._address()}/v1/completions"
            try:
                async with session.post(url, json=body) as answer:
                    answer.raise_for_status()
                    assert (await answer.json())["usage"]["completion_tokens"] == TOKENS
                return Asked(began, tries)
            except (aiohttp.ClientError, TimeoutError) as error:
                self.complaints.append(f"{type(error).__name__}: {error}")
                if time.monotonic() - began > PATIENCE:
                    return Asked(began, tries, self.complaints[-1])
            await asyncio.sleep(PAUSE)
        raise AssertionError("unreachable")

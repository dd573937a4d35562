"""Asks Prometheus for engines' numbers. What goes wrong is no evidence, with what to look at."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from speculative_operator.engine.body import whole
from speculative_operator.engine.series import page_of, query, samples_of
from speculative_operator.engine.unreadable import PageUnreadable
from speculative_operator.errors import EngineSilent
from speculative_operator.tuning.page import Page

TIMEOUT_SECONDS = 10.0
"""For one answer, connection included."""


@dataclass(frozen=True)
class PrometheusSettings:
    """Where Prometheus is.

    url         without `/api/v1`; a path before it is kept
    token_file  holds the bearer token, and is read anew for each query, since tokens change
    ca_file     certificates that an https address is checked by, read anew when the file changes;
                None for the system's
    """

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None


class Prometheus:
    """Reads the pages of pods as Prometheus has scraped them."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        settings: PrometheusSettings,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`clock` gives Unix time."""
        self._session = session
        self._settings = settings
        self._url = f"{settings.url.rstrip('/')}/api/v1/query"
        self._trusted: tuple[int, ssl.SSLContext] | None = None
        self._clock = clock

    async def read(self, namespace: str, pod: str) -> Page:
        """The page of a pod at its last scrape, with its age; EngineSilent where there is none."""
        body = await self._ask(query(namespace, pod))
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise PageUnreadable(f"{self._url}: no JSON: {body[:80]!r}") from error
        return page_of(samples_of(answer), self._clock())

    async def _ask(self, asked: str) -> bytes:
        """The body of a good answer, or EngineSilent."""
        try:
            async with (
                asyncio.timeout(TIMEOUT_SECONDS),
                self._session.post(
                    self._url,
                    data={"query": asked},
                    headers=self._headers(),
                    ssl=self._trust(),
                    allow_redirects=False,
                ) as answer,
            ):
                body = await whole(answer.content)
        except PageUnreadable as error:
            raise PageUnreadable(f"{self._url}: {error}") from error
        except TimeoutError as error:
            raise EngineSilent(f"{self._url}: no answer within {TIMEOUT_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, aiohttp.http.HttpProcessingError, OSError) as error:
            raise EngineSilent(f"{self._url}: {type(error).__name__}: {error}") from error
        if answer.status in (401, 403):
            raise EngineSilent(f"{self._url} answered {answer.status}: {self._about_token()}")
        if answer.status != 200:
            raise EngineSilent(f"{self._url} answered {answer.status}: {body[:200]!r}")
        return body

    def _trust(self) -> ssl.SSLContext:
        """Made once for each state of the file; OSError where it holds no certificates."""
        path = self._settings.ca_file
        changed = path.stat().st_mtime_ns if path is not None else 0
        if self._trusted is None or self._trusted[0] != changed:
            self._trusted = changed, ssl.create_default_context(cafile=path)
        return self._trusted[1]

    def _headers(self) -> dict[str, str]:
        if self._settings.token_file is None:
            return {}
        return {"Authorization": f"Bearer {self._settings.token_file.read_text().strip()}"}

    def _about_token(self) -> str:
        """What to look at when it is refused."""
        if self._settings.token_file is None:
            return "name the Secret of its token in the chart's monitoring.prometheus.tokenSecret"
        return f"it refuses the token in {self._settings.token_file}"

"""A real browser without a window: opens one page and says what became of it.

Chromium is driven by its own protocol (Chrome DevTools), over the aiohttp that is here anyway.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
"""None where this machine has none."""

START_SECONDS = 60.0

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-port=0",
)

LAYOUT = """(() => {
  const boxes = [...document.querySelectorAll("svg, table, p, h1, h2")].map(e => {
    const box = e.getBoundingClientRect();
    return [e.tagName.toLowerCase(), box.left, box.top, box.right, box.bottom];
  });
  return {boxes, wide: document.documentElement.scrollWidth, view: window.innerWidth};
})()"""


@dataclass(frozen=True)
class Opened:
    """`requests` are the addresses that the page wanted, itself left out; `errors` what the browser
    complained of. `boxes` are (tag, left, top, right, bottom) of what is shown, in pixels, `width`
    what the page takes of the `view`. `picture` is a PNG of the whole page."""

    requests: list[str]
    errors: list[str]
    boxes: list[tuple[str, float, float, float, float]]
    width: int
    view: int
    picture: bytes


async def opened(page: Path, *, width: int) -> Opened:
    """A page from a file, in a view of so many pixels."""
    async with _browser() as tab:
        for domain in ("Page", "Network", "Log", "Runtime"):
            await tab.ask(f"{domain}.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await tab.ask("Emulation.setDeviceMetricsOverride", **size)
        await tab.ask("Page.navigate", url=page.as_uri())
        await tab.until("Page.loadEventFired")
        layout = await tab.ask("Runtime.evaluate", expression=LAYOUT, returnByValue=True)
        shot = await tab.ask("Page.captureScreenshot", captureBeyondViewport=True)
        seen = layout["result"]["value"]
        return Opened(
            requests=[url for url in tab.wanted() if url != page.as_uri()],
            errors=tab.complaints(),
            boxes=[tuple(box) for box in seen["boxes"]],
            width=seen["wide"],
            view=seen["view"],
            picture=base64.b64decode(shot["data"]),
        )


class _Tab:
    """One tab's socket. Events are kept until somebody asks."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._events: list[dict[str, Any]] = []

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while (message := await self._socket.receive_json()).get("id") != self._number:
            self._events.append(message)
        if "error" in message:
            raise AssertionError(f"{method}: {message['error']}")
        result: dict[str, Any] = message["result"]
        return result

    async def until(self, event: str) -> None:
        """Waits for an event."""
        while all(seen["method"] != event for seen in self._events):
            self._events.append(await self._socket.receive_json())

    def wanted(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            each["params"]["request"]["url"]
            for each in self._events
            if each["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Errors of the page, and whatever it logs."""
        about = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
        return [json.dumps(e["params"]) for e in self._events if e["method"] in about]


@contextlib.asynccontextmanager
async def _browser() -> AsyncIterator[_Tab]:
    """A browser with a profile of its own, and its first tab."""
    with tempfile.TemporaryDirectory() as profile:
        process = await asyncio.create_subprocess_exec(
            str(PROGRAM),
            *FLAGS,
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with aiohttp.ClientSession() as session:
                port = await asyncio.wait_for(_port(process), START_SECONDS)
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = await answer.json(content_type=None)
                address = next(t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page")
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    yield _Tab(socket)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _port(process: asyncio.subprocess.Process) -> int:
    """Where it listens, as it says once it does."""
    assert process.stderr is not None
    async for line in process.stderr:
        if b"DevTools listening on ws://" in line:
            return int(line.decode().split("/")[2].rsplit(":", 1)[1])
    raise AssertionError("the browser ended before it listened")

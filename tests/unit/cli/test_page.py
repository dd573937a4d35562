"""`docs/cli.md` shows what the commands print; a test of tests/e2e compares it on a cluster."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from speculative_operator.api.status import ModelStatus
from speculative_operator.cli.explain import show
from speculative_operator.cli.options import Settings
from speculative_operator.cli.replay import show_replay
from speculative_operator.cli.source import Found, record_of
from tests.support.pages import DOCS, blocks
from tests.support.recorded import END, RecordedModel
from tests.support.typed import shape

SHOWN = {
    block.typed.split()[2]: block.shown
    for block in blocks(DOCS / "cli.md")
    if block.language == "console"
}


@pytest.mark.parametrize("command", ["explain", "replay"])
def test_the_page_shows_the_columns_and_headings_that_are_printed(
    command: str, recorded: RecordedModel
) -> None:
    """A page that was written once and never compared shows another program."""
    found = Found(
        "default/qwen", ModelStatus.read(recorded.model["status"]), record_of(recorded.memory)
    )
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False)
    if command == "explain":
        show(found, now=END + 12, console=console)
    else:
        show_replay(found, Settings(minimum_gain=1.0), console)

    assert len(shape(SHOWN[command])) > 2
    assert shape(SHOWN[command]) <= shape(out.getvalue())

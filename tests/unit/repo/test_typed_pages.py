"""The comparison of what a page shows with what a shell printed finds what it should."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.api import until
from tests.support.pages import blocks
from tests.support.typed import shape, typed

TABLE = "NAME   READY   K\ntiny   True    4\n"
EXPLAINED = """default/qwen  Speculative, K=4
Tuned: Measuring. K=4 at most traffic; others are being
tried.
Last decisions

  when      what
 ───────────────────
  47 s ago  K 6 -> 4
"""


def test_of_a_table_the_columns_count() -> None:
    """Its rows are another model's on each cluster."""
    assert shape(TABLE) == {("NAME", "READY", "K")}


def test_of_a_text_columns_headings_and_labels_count() -> None:
    """Numbers, times and what follows a label are measured anew each time."""
    assert shape(EXPLAINED) == {("Tuned",), ("Last", "decisions"), ("when", "what")}


@pytest.mark.parametrize(("printed", "differs"), [("NAME AGE", True), ("NAME READY", False)])
def test_an_answer_without_what_the_page_shows_is_found(
    printed: str, differs: bool, tmp_path: Path
) -> None:
    """A column that was renamed is an error of the page."""
    page = tmp_path / "page.md"
    page.write_text(
        f"```console run\n$ echo {printed}\nNAME READY\ntiny True\n```\n\n```sh gpu\nfalse\n```\n"
    )

    differences = [line.rpartition(": ")[2] for line in typed(page, tmp_path).differences()]

    assert differences == (["NAME READY"] if differs else [])


def test_a_page_that_takes_too_long_leaves_nothing_behind(tmp_path: Path) -> None:
    """What it has put into the background would hold the next page's ports."""
    page, known = tmp_path / "page.md", tmp_path / "pid"
    page.write_text(f"```sh run\nsleep 600 &\necho $! > {known}\nwait\n```\n")

    with pytest.raises(AssertionError, match=r"page\.md after 1 s"):
        typed(page, tmp_path, timeout=1)

    gone = Path(f"/proc/{known.read_text().strip()}/cmdline")
    until("the background is gone", lambda: not gone.exists() or not gone.read_bytes())


def test_each_block_has_its_own_answer(tmp_path: Path) -> None:
    """One without a newline at its end, as JSON of a server, or none at all."""
    page = tmp_path / "page.md"
    typed_in = ("printf '{}'", "true", "echo last")
    page.write_text("\n\n".join(f"```sh run\n{command}\n```" for command in typed_in))

    assert list(typed(page, tmp_path).answers.values()) == ["{}", "", "last\n"]


def test_the_first_command_that_fails_ends_a_page(tmp_path: Path) -> None:
    """Later ones would say something about a state that the page does not have."""
    page = tmp_path / "page.md"
    page.write_text("```sh run\nfalse\n```\n\n```sh run\necho later\n```\n")

    with pytest.raises(AssertionError, match=r"page\.md") as found:
        typed(page, tmp_path)

    assert "later" not in str(found.value)
    assert len(list(blocks(page))) == 2


def test_what_was_started_in_the_background_ends_with_its_page(tmp_path: Path) -> None:
    """A page that fails between `&` and `kill` would hold the test's output open for ever."""
    page = tmp_path / "page.md"
    page.write_text("```sh run\nsleep 600 &\n```\n\n```sh run\nfalse\n```\n")

    with pytest.raises(AssertionError, match=r"page\.md"):
        typed(page, tmp_path, timeout=20)

    page.write_text("```sh run\nsleep 600 &\nkill %1\n```\n")
    assert typed(page, tmp_path, timeout=20).text() == ""

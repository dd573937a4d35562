"""The pages that users read, and what stands in their fenced blocks.

A fence says what its block is, and a block of commands says who runs it:

```sh run        a test, on the local cluster, all blocks of a page in their order
```sh gpu        nobody here: it needs AMD's hardware
```sh outside    nobody here: it needs a registry, a hub or a controller of somebody else
```sh long       nobody in a test: it takes longer than tests have
```console …     the same four, with `$ ` before what is typed and the answer below: its shape is
                 compared where it is run
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PAGES = (CHECKOUT / "README.md", *sorted(DOCS.rglob("*.md")))
SHELL = frozenset({"sh", "console"})
MARKS = frozenset({"run", "gpu", "outside", "long"})


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` counts from 1; `mark` is what follows the language."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"

    @property
    def typed(self) -> str:
        """What a reader types: of a console, the lines after `$ `."""
        if self.language != "console":
            return self.text
        return "".join(
            line.removeprefix("$ ")
            for line in self.text.splitlines(keepends=True)
            if line.startswith("$ ")
        )

    @property
    def shown(self) -> str:
        """What the page says that comes back: of a console, the other lines."""
        return "".join(
            line for line in self.text.splitlines(keepends=True) if not line.startswith("$ ")
        )


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page but directives of the site, in order."""
    for token in MarkdownIt().parse(page.read_text()):
        if token.type == "fence" and not token.info.startswith("{"):
            assert token.map is not None
            language, _, mark = token.info.strip().partition(" ")
            yield Block(page, token.map[0] + 1, language, mark, token.content)


def inline(page: Path) -> Iterator[str]:
    """What stands between single backquotes, in tables too."""
    for token in MarkdownIt().enable("table").parse(page.read_text()):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


def shell_blocks() -> tuple[Block, ...]:
    """All that is to be typed, on all pages."""
    return tuple(block for page in PAGES for block in blocks(page) if block.language in SHELL)

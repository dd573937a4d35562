"""The site is built without a warning, every link in it leads somewhere, and it is sufficient."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.pages import CHECKOUT, DOCS

SPHINX = Path(sys.executable).with_name("sphinx-build")
LOADED = ("script", "img", "link", "source", "iframe", "object")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    strictly = ("--quiet", "--fail-on-warning", "--keep-going", "--nitpicky", "--fresh-env")
    done = subprocess.run(
        [SPHINX, *strictly, DOCS, folder], capture_output=True, text=True, check=False, cwd=CHECKOUT
    )
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What points somewhere in a page, as (element, target), and what can be pointed at."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[tuple[str, str]] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"href", "src", "data"} and value is not None:
                self.references.append((tag, value))
            if name == "id" and value is not None:
                self.anchors.add(value)


@cache
def read(file: Path) -> Page:
    page = Page()
    page.feed(file.read_text())
    return page


def is_broken(page: Path, site: Path, target: str) -> bool:
    """Whether a link within the site leads nowhere, its fragment included."""
    parts = urlsplit(target)
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not file.is_relative_to(site) or not file.is_file():
        return True
    if not parts.fragment or file.suffix != ".html":
        return False
    return unquote(parts.fragment) not in read(file).anchors


def test_every_link_within_the_site_leads_somewhere(site: Path) -> None:
    """Anchors too: a heading that was renamed is a dead end elsewhere."""
    broken = [
        f"{page.relative_to(site)}: {target}"
        for page in site.rglob("*.html")
        for _, target in read(page).references
        if not urlsplit(target).scheme and target != "#" and is_broken(page, site, target)
    ]

    assert not broken


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """It is read on machines without a network, and tells nobody who reads it."""
    outside = [
        f"{page.relative_to(site)}: {target}"
        for page in site.rglob("*.html")
        for element, target in read(page).references
        if element in LOADED and urlsplit(target).netloc
    ]
    styles = [
        str(style.relative_to(site))
        for style in site.rglob("*.css")
        if "@import" in style.read_text() or "url(http" in style.read_text()
    ]

    assert not outside
    assert not styles


def test_every_page_can_be_reached_from_the_first(site: Path) -> None:
    """By the navigation that stands on each page."""
    first = site / "index.html"
    linked = {(site / unquote(urlsplit(to).path)).resolve() for _, to in read(first).references}
    pages = {site / page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}

    assert pages <= {first, *linked}

"""The README, the docs and the examples say what is true."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from speculative_operator.api.conditions import Reason
from speculative_operator.api.resource import SpeculativeModelSpec
from tests.support.pages import CHECKOUT, PAGES, blocks

WRITTEN = tuple(page for page in PAGES if page.parent.name != "reference")
"""The pages that are not generated."""
EXAMPLES = sorted((CHECKOUT / "examples").glob("*.yaml"))
ROOTS = (CHECKOUT, CHECKOUT / "operator" / "speculative_operator")
FOLDERS = {path.name for root in ROOTS for path in root.iterdir() if path.is_dir()}
TARGET = re.compile(r"^([a-z][a-z-]*):(.*)$", re.MULTILINE)


def makefile() -> str:
    return (CHECKOUT / "Makefile").read_text()


def commands(page: Path) -> Iterator[str]:
    """Inline code, which may be a command; blocks are read by test_docs_commands.py."""
    yield from re.findall(r"`([^`\n]+)`", page.read_text())


def named(page: Path) -> Path:
    return page.relative_to(CHECKOUT)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_make_command_in_a_page_exists(page: Path) -> None:
    """A reader types what a page says, often as the first thing of all."""
    targets = {name for name, _ in TARGET.findall(makefile())}
    asked = {
        match[1] for line in commands(page) if (match := re.match(r"(?:\$ )?make ([a-z-]+)", line))
    }

    assert asked <= targets


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_python_module_in_a_page_exists(page: Path) -> None:
    """The same for `python -m`."""
    asked = {
        match[1]
        for line in commands(page)
        for match in re.finditer(r"python3? -m ((?:local|tools|benchmarks)[\w.]*)", line)
    }

    assert not [module for module in asked if importlib.util.find_spec(module) is None]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_in_a_page_leads_somewhere(page: Path) -> None:
    """Links within the repository break when a file moves."""
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())

    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_path_in_a_page_exists(page: Path) -> None:
    """A map of the code is worth something only while it is right."""
    paths = [
        code
        for code in re.findall(r"`([\w./-]+)`", page.read_text())
        if code.partition("/")[0] in FOLDERS and code.upper() != code and "ROOM" not in code
    ]

    assert not [path for path in paths if not any((root / path).exists() for root in ROOTS)]


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_a_page_has_one_sentence_a_line(page: Path) -> None:
    """So a changed sentence is one changed line."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lists_and_tables = re.compile(r"[|#]|- |\d+\. ")
    lines = [line for line in prose.splitlines() if not lists_and_tables.match(line)]

    assert not [line for line in lines if re.search(r"[a-z`)]\. [A-Z]", line)]


def test_every_reason_of_a_condition_is_explained() -> None:
    """A user with a condition that is not True looks its reason up."""
    text = (CHECKOUT / "docs" / "troubleshooting.md").read_text()
    explained = re.findall(r"^### ([A-Z][A-Za-z]+)$", text, re.MULTILINE)

    assert sorted(explained) == sorted(reason.value for reason in Reason)


def test_every_public_command_says_in_a_line_what_it_does() -> None:
    """`make help` is made from these lines."""
    silent = [
        name
        for name, rest in TARGET.findall(makefile())
        if " ## " not in rest and name != "prerequisites"
    ]

    assert not silent


@pytest.mark.parametrize("example", EXAMPLES, ids=named)
def test_every_example_is_a_model_of_ours(example: Path) -> None:
    """Examples are what users start from."""
    models = [
        document
        for document in yaml.safe_load_all(example.read_text())
        if document and document["kind"] == "SpeculativeModel"
    ]

    assert models
    for model in models:
        SpeculativeModelSpec.model_validate(model["spec"])


def test_the_readme_shows_the_columns_that_kubectl_prints() -> None:
    """The block is what a user compares the own terminal with."""
    crd = yaml.safe_load((CHECKOUT / "crds" / "speculation.dev_speculativemodels.yaml").read_text())
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"].upper() for column in columns if not column.get("priority")]
    block = next(b for b in blocks(CHECKOUT / "README.md") if "kubectl get spm" in b.text)

    assert block.text.splitlines()[1].split() == ["NAME", *shown]

"""What holds for every file of the project, whatever room it is in."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
MOST_LINES = 400
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?$")

# Spelt in pieces, so that this file passes its own test.
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:" + "|".join(["work", "root", "tmp/team"]) + r")/")
REGISTRY_HOSTS = re.compile(
    r"\b(?:"
    + "|".join(
        host.replace("~", r"\.")
        for host in ("pypi~org", "files~pythonhosted~org", "proxy~golang~org", "deb~debian~org")
    )
    + r")\b"
)


def files() -> tuple[Path, ...]:
    """Every file that git tracks, or would with `git add`."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    paths = (CHECKOUT / name for name in listed.stdout.split("\0") if name)
    return tuple(path for path in paths if path.is_file())


def python_files(folder: str = "") -> tuple[Path, ...]:
    return tuple(
        path
        for path in files()
        if path.suffix == ".py"
        and path.is_relative_to(CHECKOUT / folder)
        and not GENERATED.search(path.name)
    )


def lines_with(pattern: re.Pattern[str]) -> Iterator[str]:
    for path in files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                yield f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()[:100]}"


def functions(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("see " + "/ro" + "ot/x", True),
        ("/tmp/te" + "am/x", True),
        ("https://example.com/wo" + "rk/page", False),
        ("docs/work/page", False),
    ],
)
def test_a_path_of_one_machine_is_told_from_an_address(line: str, found: bool) -> None:
    """A check that finds nothing must be known to find something."""
    assert bool(MACHINE_PATHS.search(line)) is found


def test_no_file_names_a_folder_of_the_machine_that_it_was_written_on() -> None:
    """Such a path works for its author and for nobody else."""
    assert not list(lines_with(MACHINE_PATHS))


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is a setting of the machine: many have a mirror of their own."""
    assert not list(lines_with(REGISTRY_HOSTS))


def test_every_module_can_be_read_in_one_sitting() -> None:
    """A module that grew past this holds more than one idea."""
    lengths = {path: len(path.read_text().splitlines()) for path in python_files()}
    too_long = {str(path.relative_to(CHECKOUT)): n for path, n in lengths.items() if n > MOST_LINES}

    assert not too_long


def test_every_test_says_why_it_is_there() -> None:
    """The name of a test is the fact; its docstring is the reason that somebody cares."""
    silent = [
        f"{path.relative_to(CHECKOUT)}:{test.lineno}: {test.name}"
        for path in python_files("tests")
        for test in functions(ast.parse(path.read_text()))
        if test.name.startswith("test_") and not ast.get_docstring(test)
    ]

    assert not silent


def test_every_module_says_what_it_is_for() -> None:
    """The first line of a file answers why it exists."""
    silent = [
        str(path.relative_to(CHECKOUT))
        for path in python_files()
        if path.name != "__init__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]

    assert not silent


def test_nothing_is_left_to_be_done_later() -> None:
    """An open end belongs into an issue, where somebody finds it."""
    marks = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")

    assert not list(lines_with(marks))


@pytest.mark.parametrize("lock", ["requirements-dev.txt", "images/operator/requirements.txt"])
def test_the_lock_pins_every_package_by_its_content(lock: str) -> None:
    """An image built tomorrow must hold what was tested today."""
    text = (CHECKOUT / lock).read_text().replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]

    assert pins
    assert not [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin]

"""What the pages tell a reader to type can be typed.

Blocks marked `run` are executed by tests/e2e/test_quick_start_on_node.py and test_docs_on_node.py;
of all the others at least the commands are known to the very programs that they name.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from local import binaries
from speculative_operator.cli.options import COMMANDS, read_options
from tests.e2e import test_docs_on_node, test_quick_start_on_node
from tests.support.pages import CHECKOUT, MARKS, PAGES, SHELL, Block, blocks, inline, shell_blocks
from tests.support.shell import UNKNOWN, Command, commands

READ_ELSEWHERE = frozenset({"yaml", "promql"})
ANSWERS = "text"
COMMON = frozenset(
    {"awk", "base64", "cat", "cd", "curl", "cut", "date", "echo", "exit", "export", "getent", "git"}
    | {"grep", "jq", "kill", "pip", "pipx", "pkill", "sed", "sleep", "sort", "source", "tee"}
    | {"uniq"}
)
"""What a Debian or a Python brings along: their flags are as old as the hills."""


NOT_HERE = frozenset({"docker", "kind"})
"""Programs of a reader's machine that cannot be asked."""

OWN_NAMES = {"kubectl speculation", *(f"kubectl speculation {name}" for name in COMMANDS)}
"""Within the text, what is only named and not to be typed."""


@cache
def _completions(program: Path | str, *words: str) -> frozenset[str]:
    """What a program of the cobra family offers after `words`."""
    answer = subprocess.run(
        [program, "__complete", *words], capture_output=True, text=True, check=False
    ).stdout
    return frozenset(line.split("\t")[0] for line in answer.splitlines())


def _cobra(program: Path | str) -> Callable[[Command], str | None]:
    """A check of subcommand and flags by the program itself."""

    def complaint(command: Command) -> str | None:
        path: list[str] = []
        for word in command.words:
            if word.startswith("-") or word not in _completions(program, *path, ""):
                break
            path.append(word)
        if not path:
            return "no subcommand that the program knows"
        known = _completions(program, *path, "-") | _completions(program, *path, "--")
        strange = [flag for flag in command.flags if flag not in known]
        return f"unknown flags {', '.join(strange)}" if strange else None

    return complaint


def _kubectl(command: Command) -> str | None:
    if command.words[0] == "speculation":
        return _own(command.words[1:])
    return _cobra(binaries.folder() / "kubectl")(command) or _missing_file(command)


def _missing_file(command: Command) -> str | None:
    """Files of the checkout that are to be applied are there."""
    pairs = zip(command.words, (*command.words[1:], ""), strict=True)
    named = [value for flag, value in pairs if flag in {"-f", "--filename"}]
    missing = [
        name for name in named
        if name.startswith("examples/") and UNKNOWN not in name and not (CHECKOUT / name).exists()
    ]  # fmt: skip
    return f"no such file: {', '.join(missing)}" if missing else None


def _own(words: tuple[str, ...]) -> str | None:
    """By the parser of `kubectl speculation`."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            read_options(words, {})
    except SystemExit as end:
        return told.getvalue() if end.code else None
    return None


def _make(command: Command) -> str | None:
    targets = re.findall(r"^([a-z][a-z-]*):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    asked = [word for word in command.words if "=" not in word]
    strange = sorted(set(asked) - set(targets))
    return f"no such target: {', '.join(strange)}" if strange else None


def _python(command: Command) -> str | None:
    if command.words[0] != "-m":
        return "only `python -m` is checked"
    if command.words[1] in {"venv", "pip"} or importlib.util.find_spec(command.words[1]):
        return None
    return f"no module {command.words[1]}"


CHECKS: Mapping[str, Callable[[Command], str | None]] = {
    "buildah": _cobra("buildah"),
    "helm": _cobra(binaries.folder() / "helm"),
    "kubectl": _kubectl,
    "make": _make,
    "python": _python,
    "python3": _python,
    ".venv/bin/python": _python,
}


def _complaint(command: Command) -> str | None:
    if check := CHECKS.get(command.program):
        return check(command)
    known = command.program in COMMON | NOT_HERE or UNKNOWN in command.program
    return None if known else "no check knows this program"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    """Else a command could stand in the docs that nobody ever tried."""
    strange = [
        f"{block}: ```{block.language} {block.mark}"
        for block in blocks(page)
        if not (
            (block.language in SHELL and block.mark in MARKS)
            or block.language in READ_ELSEWHERE
            or (block.language == ANSWERS and not block.mark)
        )
    ]

    assert not strange


def test_what_is_marked_to_be_run_is_run() -> None:
    """A mark alone tries nothing."""
    assert {block.page for block in shell_blocks() if block.mark == "run"} == {
        *test_quick_start_on_node.EXECUTED,
        *test_docs_on_node.EXECUTED,
    }


@pytest.mark.parametrize("block", shell_blocks(), ids=str)
def test_the_programs_know_the_commands_of_a_block(block: Block) -> None:
    """A flag that was renamed is found here, not by a reader."""
    found = commands(block.typed)
    complaints = {str(command): said for command in found if (said := _complaint(command))}

    assert found, "nothing is typed in it"
    assert not complaints


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_the_programs_know_the_commands_within_the_text(page: Path) -> None:
    """They are typed as well, and nobody marks them."""
    typed = [code for code in inline(page) if re.match(r"(kubectl|helm|make) [a-z]", code)]
    complaints = {
        str(command): said
        for code in typed
        for command in commands(code)
        if code not in OWN_NAMES and (said := _complaint(command))
    }

    assert not complaints


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kubectl get spm --no-such-flag", "unknown flags --no-such-flag"),
        ("kubectl gte spm", "no subcommand"),
        ("kubectl apply -f examples/none.yaml", "no such file"),
        ("kubectl speculation explain", "required: NAME"),
        ("helm install x y --wiat", "unknown flags --wiat"),
        ("make no-such-thing", "no such target"),
        ("python -m local.nothing", "no module"),
        ("frobnicate --now", "no check knows this program"),
        ("x=$(kubectl get --oops) && echo $x | helm oops", "unknown flags --oops"),
    ],
)
def test_a_wrong_command_is_found(line: str, said: str) -> None:
    """A check that finds nothing must be known to find something."""
    first = next(told for command in commands(line) if (told := _complaint(command)))

    assert said in first


def test_what_is_no_shell_is_refused() -> None:
    """A quote that is not closed would swallow what a reader types next."""
    with pytest.raises(ValueError, match="quote"):
        commands("echo 'a")

"""The reference page of `kubectl speculation`, made from its argument parser."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from speculative_operator.cli.options import COMMANDS, argument_parser, sentence

INTRODUCTION = """\
# Commands

Every command and flag; [the command](../cli.md) shows what they print.
Data goes to standard output, what is wrong to standard error with exit code 1.
A call that means nothing ends with 2.
No command changes anything in the cluster.
"""


def cli_reference() -> str:
    """The page as Markdown."""
    parser = argument_parser({})
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    parts = [_command(name, commands.choices[name]) for name in COMMANDS]
    return "\n".join([INTRODUCTION, *parts])


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    head = (
        f"## {name}\n",
        f"{sentence(name)}\n",
        "| argument | meaning |",
        "|---|---|",
    )
    rows = (f"| `{given}` | {meaning} |" for given, meaning in _arguments(parser))
    return "\n".join((*head, *rows, ""))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """How each is written, and what it means."""
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        value = str(action.metavar or action.dest.upper())
        words = [f"{option} {value}" for option in action.option_strings[-1:]]
        short = action.option_strings[:-1]
        written = ", ".join([*short, *words]) or (value if action.required else f"[{value}]")
        yield written, str(action.help).replace("|", "\\|")

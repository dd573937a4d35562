"""Runs inside vLLM's own environment: which options its parser has, and which ones are reached.

From standard input: a list of argument lists. To standard output: `options` (every spelling that
the parser has -> the setting it changes) and `changed` (for each argument list the settings that
differ from the defaults; null where the parser refuses it).
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.utils.argparse_utils import FlexibleArgumentParser

PARSER = make_arg_parser(FlexibleArgumentParser())


def changed(arguments: list[str]) -> list[str] | None:
    """The settings that the arguments change, or None where the parser refuses them."""
    default = vars(PARSER.parse_args(["model"]))
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            space = vars(PARSER.parse_args(["model", *arguments]))
        except SystemExit:
            return None
    return sorted(name for name, value in space.items() if repr(value) != repr(default[name]))


if __name__ == "__main__":
    options = {name: action.dest for action in PARSER._actions for name in action.option_strings}
    lists = json.load(sys.stdin)
    json.dump({"options": options, "changed": [changed(each) for each in lists]}, sys.stdout)

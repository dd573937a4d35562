"""An engine that ends before it serves, with the last words of a real one.

SIMULATED_END     the words; without it the engine serves
SIMULATED_END_IF  it ends only if it is started with this part of `--speculative-config`, or with
                  any if it is `speculation`; without it, always
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from live_speculation import termination

CONFIG_FLAG = "--speculative-config"
ANY_PART = "speculation"


def end_if_asked(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Exits with status 1, after writing as the plugin does, if this start is to fail."""
    words = environment.get("SIMULATED_END")
    if words and _concerns(environment.get("SIMULATED_END_IF"), arguments):
        termination.write_first(log, words)
        sys.exit(words)


def _concerns(part: str | None, arguments: Sequence[str]) -> bool:
    if part is None:
        return True
    if CONFIG_FLAG not in arguments:
        return False
    config = arguments[arguments.index(CONFIG_FLAG) + 1]
    return part == ANY_PART or f'"{part}"' in config

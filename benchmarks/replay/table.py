"""Tables of the docs from the figures of runs: `python -m benchmarks.replay.table FILE…`.

Each FILE is what `python -m benchmarks.replay --json FILE` wrote. For each of them one table: a row
a policy and way to measure, a column a set, in a cell mean / p95 / worst percent lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def table(sets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    policies = list(dict.fromkeys(policy for found in sets.values() for policy in found))
    yield f"| | {' | '.join(sets)} |"
    yield f"|---|{'---|' * len(sets)}"
    for policy in policies:
        cells = (_cell(found.get(policy)) for found in sets.values())
        yield f"| {policy} | {' | '.join(cells)} |"


def _cell(figures: Mapping[str, Any] | None) -> str:
    if figures is None:
        return ""
    return f"{figures['mean']:.2f} / {figures['p95']:.1f} / {figures['worst']:.1f}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser("python -m benchmarks.replay.table", description=__doc__)
    parser.add_argument("file", type=Path, nargs="+", help="written by --json")
    for path in parser.parse_args().file:
        body = json.loads(path.read_text())
        print(f"{path.name}, {body['seeds']} seeds")
        print("\n".join(table(body["sets"])) + "\n")


if __name__ == "__main__":
    main()

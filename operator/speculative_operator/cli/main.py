"""`kubectl speculation`: reads, tells, and changes nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from speculative_operator.cli.options import Options, read_options
from speculative_operator.cli.source import Found, from_file
from speculative_operator.errors import OperatorError

MISSING = "is not installed: from a checkout: pip install '.[cli]'"


def main() -> None:
    """The console script. Data goes to stdout, what is wrong to stderr with exit code 1."""
    options = read_options(sys.argv[1:], os.environ)
    try:
        run(options)
    except OperatorError as error:
        sys.exit(f"error: {error}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        sys.exit(f"error: the package {package} {MISSING}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(options: Options) -> None:
    """Each command imports what it draws with: none needs all of it."""
    if options.command == "version":
        from speculative_operator.cli.version import show_versions  # noqa: PLC0415

        asyncio.run(show_versions(options))
        return
    found = _found(options)
    match options.command:
        case "explain":
            from speculative_operator.cli.explain import show  # noqa: PLC0415

            show(found, now=time.time())
        case "replay":
            from speculative_operator.cli.replay import show_replay  # noqa: PLC0415

            show_replay(found, options.settings)
        case "report":
            from speculative_operator.cli.report import write_report  # noqa: PLC0415

            write_report(found, options.output, now=time.time())


def _found(options: Options) -> Found:
    if options.file is not None:
        return from_file(options.file)
    from speculative_operator.cli.cluster import find  # noqa: PLC0415

    return asyncio.run(find(options))


if __name__ == "__main__":
    main()

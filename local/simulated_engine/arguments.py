"""Reads the command line of `vllm serve`: what shapes the simulation, and tolerantly all else."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass

Ranges = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Speculation:
    """The part of `--speculative-config` that matters here."""

    method: str
    length: int
    """The configured K."""
    schedule: Ranges | None
    """`num_speculative_tokens_per_batch_size`, as vLLM takes it."""


@dataclass(frozen=True)
class Arguments:
    """A server as it was asked for."""

    model: str
    served_names: tuple[str, ...]
    host: str
    port: int
    max_batch: int
    shutdown_timeout: float
    """Seconds that running requests may go on after SIGTERM."""
    api_key: str | None
    data_parallel: int
    speculation: Speculation | None


def parse_arguments(argv: Sequence[str]) -> Arguments:
    """`argv` without the program's name. Exits with status 2 on what vLLM could not read either.

    Flags that the simulation does not know are accepted and ignored, with their values.
    """
    parser = argparse.ArgumentParser("vllm", allow_abbrev=False)
    serve = parser.add_subparsers(required=True).add_parser("serve", allow_abbrev=False)
    serve.add_argument("model")
    serve.add_argument("--served-model-name", nargs="+")
    serve.add_argument("--host", default="0.0.0.0")
    serve.add_argument("--port", type=int, default=8000)
    serve.add_argument("--max-num-seqs", type=int, default=256)
    serve.add_argument("--shutdown-timeout", type=float, default=0.0)
    serve.add_argument("--api-key")
    serve.add_argument("--data-parallel-size", "-dp", type=int, default=1)
    serve.add_argument("--speculative-config", "-sc", type=_speculation)
    known, _ = parser.parse_known_args([_dashed(argument) for argument in argv])
    return Arguments(
        model=known.model,
        served_names=tuple(known.served_model_name or (known.model,)),
        host=known.host,
        port=known.port,
        max_batch=known.max_num_seqs,
        shutdown_timeout=known.shutdown_timeout,
        api_key=known.api_key,
        data_parallel=known.data_parallel_size,
        speculation=known.speculative_config,
    )


def _dashed(argument: str) -> str:
    """`--max_num_seqs=4` is `--max-num-seqs=4` for vLLM."""
    flag, equals, value = argument.partition("=")
    return flag.replace("_", "-") + equals + value if flag.startswith("--") else argument


def _speculation(text: str) -> Speculation:
    try:
        config = json.loads(text)
        ranges = config.get("num_speculative_tokens_per_batch_size")
        return Speculation(
            method=config["method"],
            length=int(config["num_speculative_tokens"]),
            schedule=None
            if ranges is None
            else tuple((int(low), int(high), int(length)) for low, high, length in ranges),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise argparse.ArgumentTypeError(
            f"not a speculative config ({type(error).__name__}: {error}): {text}"
        ) from error

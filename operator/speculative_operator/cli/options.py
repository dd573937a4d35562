"""What the user types."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from speculative_operator import __version__
from speculative_operator.api.tuning import MOST_LOSS_PERCENT, MOST_TRIAL_PERCENT

COMMANDS = {
    "explain": "why K is what it is: a table and a chart in the terminal",
    "report": "the same and more as a page of plots that opens offline",
    "replay": "what the policy would have decided on the recorded windows with other settings",
    "version": "version of this command and of the operators in the cluster",
}

SAVED = frozenset({"report", "replay"})
"""Commands that a saved ConfigMap is enough for."""

REPORT = Path("report.html")


@dataclass(frozen=True)
class Settings:
    """What replay changes; None where the recorded setting holds. Shares, not percent."""

    minimum_gain: float | None = None
    throughput_loss: float | None = None
    trial_share: float | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Options:
    """One call.

    command     one of COMMANDS
    name        the model's; empty for version, and for a file
    namespace   None for that of the kubeconfig's context; for version, for all
    kubeconfig  as in the variable KUBECONFIG
    file        a saved tuning ConfigMap instead of the cluster, if any
    output      where the report goes; REPORT where nothing is said
    """

    command: str
    name: str
    namespace: str | None
    kubeconfig: str
    context: str | None
    file: Path | None = None
    output: Path = REPORT
    settings: Settings = Settings()


def read_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Ends the process with a message when the arguments mean nothing."""
    parser = argument_parser(environment)
    flags = parser.parse_args(arguments)
    given = vars(flags)
    if flags.command in SAVED and not flags.name and not flags.file:
        flags.parser.error("name a model, or a saved ConfigMap by -f")
    return Options(
        command=flags.command,
        name=given.get("name") or "",
        namespace=flags.namespace,
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        file=given.get("file"),
        output=given.get("output") or REPORT,
        settings=Settings(
            minimum_gain=given.get("minimum_gain"),
            throughput_loss=given.get("max_throughput_loss"),
            trial_share=given.get("trial_share"),
            low=given.get("min"),
            high=given.get("max"),
        ),
    )


def sentence(command: str) -> str:
    """What a command tells, where it stands alone."""
    meaning = COMMANDS[command]
    return f"{meaning[0].upper()}{meaning[1:]}."


def argument_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """All commands and their flags."""
    parser = argparse.ArgumentParser(
        prog="kubectl speculation", description="Tells why a SpeculativeModel plays its K."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(name, help=meaning, description=sentence(name))
        command.set_defaults(parser=command)
        saved = name in SAVED
        if name != "version":
            optional = "?" if saved else None
            command.add_argument("name", metavar="NAME", nargs=optional, help="the model")
        where = "all of them" if name == "version" else "that of the context"
        command.add_argument("-n", "--namespace", help=f"by default {where}")
        command.add_argument("--context", help="of the kubeconfig; by default the current one")
        command.add_argument(
            "--kubeconfig",
            default=environment.get("KUBECONFIG") or "~/.kube/config",
            help="by default $KUBECONFIG, else ~/.kube/config",
        )
        if saved:
            command.add_argument(
                "-f",
                "--file",
                type=Path,
                help="a saved ConfigMap NAME-tuning, YAML or JSON, instead of the cluster",
            )
    _report_flags(commands.choices["report"])
    _replay_flags(commands.choices["replay"])
    return parser


def _report_flags(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o", "--output", type=Path, default=REPORT, help=f"the HTML file; {REPORT} by default"
    )


def _replay_flags(command: argparse.ArgumentParser) -> None:
    for flag, most, meaning in (
        ("--minimum-gain", 100, "another spec.tuning.minimumGainPercent"),
        (
            "--max-throughput-loss",
            MOST_LOSS_PERCENT,
            "objective Latency with this maxThroughputLossPercent; 0 is objective Throughput",
        ),
        ("--trial-share", MOST_TRIAL_PERCENT, "another spec.tuning.trialSharePercent"),
    ):
        command.add_argument(flag, type=_Percent(most), metavar="PERCENT", help=meaning)
    for flag in ("min", "max"):
        command.add_argument(
            f"--{flag}", type=int, metavar="K", help=f"another spec.tuning.bounds.{flag}"
        )


@dataclass(frozen=True)
class _Percent:
    """Reads up to `most` percent as a share."""

    most: int

    def __call__(self, text: str) -> float:
        try:
            percent = float(text.removesuffix("%"))
        except ValueError:
            percent = math.nan
        if not 0 <= percent <= self.most:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {self.most}")
        return percent / 100

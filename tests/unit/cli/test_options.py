"""What the user types."""

from __future__ import annotations

from pathlib import Path

import pytest

from speculative_operator import __version__
from speculative_operator.cli.options import REPORT, Settings, read_options


def test_flags_are_those_of_kubectl() -> None:
    """-n, --context and --kubeconfig, and the variable."""
    arguments = ["explain", "qwen", "-n", "prod", "--context", "x"]
    options = read_options(arguments, {"KUBECONFIG": "a:b"})

    assert (options.command, options.name, options.namespace) == ("explain", "qwen", "prod")
    assert (options.context, options.kubeconfig) == ("x", "a:b")
    assert read_options(["explain", "qwen"], {}).kubeconfig == "~/.kube/config"


def test_settings_of_replay_are_percentages_and_lengths() -> None:
    """As in the spec; what is not named stays as it was recorded."""
    given = ["--minimum-gain", "10", "--max-throughput-loss=3%", "--max=5"]
    options = read_options(["replay", "qwen", *given], {})

    assert options.settings == Settings(minimum_gain=0.10, throughput_loss=0.03, high=5)
    assert read_options(["replay", "qwen"], {}).settings == Settings()


def test_a_report_goes_into_a_file() -> None:
    """A page in the terminal helps nobody."""
    assert read_options(["report", "qwen", "-o", "x.html"], {}).output == Path("x.html")
    assert read_options(["report", "-f", "saved.yaml"], {}).output == REPORT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["explain"], "NAME"),
        (["report"], "name a model, or a saved ConfigMap by -f"),
        (["replay", "qwen", "--minimum-gain", "lots"], "--minimum-gain"),
        (["replay", "qwen", "--minimum-gain", "101"], "--minimum-gain"),
        (["replay", "qwen", "--max-throughput-loss", "51"], "'51' is no number from 0 to 50"),
    ],
)
def test_a_call_that_means_nothing_says_what_is_missing(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, as of every command."""
    with pytest.raises(SystemExit) as ended:
        read_options(arguments, {})

    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "replay"])
def test_a_command_without_a_model_shows_its_own_usage(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of all commands does not say what this one takes."""
    with pytest.raises(SystemExit):
        read_options([command], {})

    assert capsys.readouterr().err.startswith(f"usage: kubectl speculation {command} ")


def test_it_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    """It must fit the operator's."""
    with pytest.raises(SystemExit) as ended:
        read_options(["--version"], {})

    assert ended.value.code == 0
    assert capsys.readouterr().out.strip() == __version__

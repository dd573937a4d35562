"""`kubectl speculation` as pip and pipx install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from speculative_operator import __version__
from speculative_operator.tuning.memory import VERSION
from tests.support.console import InstalledCli, install_cli


@pytest.fixture(scope="module")
def speculation(tmp_path_factory: pytest.TempPathFactory) -> InstalledCli:
    folder = tmp_path_factory.mktemp("cli")
    return install_cli(folder / "venv", folder / "no-kubeconfig")


def test_kubectl_finds_the_installed_command_and_it_tells_its_version(
    speculation: InstalledCli,
) -> None:
    """Also where no cluster can be reached: that is what one looks for then."""
    told = speculation("version")

    assert told.stdout == f"kubectl speculation  {__version__}, memory format {VERSION}\n"
    assert told.stderr.startswith("error: there is no kubeconfig")
    assert told.returncode == 1


def test_the_extra_brings_what_the_commands_draw_with(
    speculation: InstalledCli, tmp_path: Path
) -> None:
    """What is missing shows only once a command is used."""
    (tmp_path / "saved.yaml").write_text("kind: ConfigMap\n")

    told = speculation("report", "-f", str(tmp_path / "saved.yaml"))

    assert told.returncode == 1
    assert "is not installed" not in told.stderr
    assert "saved.yaml" in told.stderr

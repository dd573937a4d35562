"""`kubectl speculation` as pip and pipx install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from speculative_operator import __version__
from speculative_operator.cli.version import line
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

    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0].split() == ["kubectl", "speculation", __version__]
    assert "operator             unknown: there is no kubeconfig" in told.stdout


def test_the_extra_brings_what_the_commands_draw_with(
    speculation: InstalledCli, tmp_path: Path
) -> None:
    """What is missing shows only once a command is used."""
    (tmp_path / "saved.yaml").write_text("kind: ConfigMap\n")

    told = speculation("report", "-f", str(tmp_path / "saved.yaml"))

    assert told.returncode == 1
    assert "is not installed" not in told.stderr
    assert "saved.yaml" in told.stderr


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (__version__, f"{__version__} in prod, image registry/operator:1"),
        ("0.0.9", "0.0.9 in prod, image registry/operator:1: take the command of the same version"),
    ],
)
def test_an_operator_of_another_version_is_named(version: str, told: str) -> None:
    """The two share a format of memory, which may change between versions."""
    deployment = {
        "metadata": {
            "name": "speculative-operator",
            "namespace": "prod",
            "labels": {"app.kubernetes.io/version": version},
        },
        "spec": {"template": {"spec": {"containers": [{"image": "registry/operator:1"}]}}},
    }

    assert line(deployment) == told

"""What the operator's process is told by flags and environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from speculative_operator.api.runtime import PullPolicy
from speculative_operator.controller.options import DEFAULT_PORT, DEFAULT_WORKERS, read_options
from speculative_operator.engine.prometheus import PrometheusSettings

IMAGES = {"SPM_ENGINE_IMAGE": "engine:1", "SPM_PLUGIN_IMAGE": "plugin:1"}


def test_two_images_are_enough() -> None:
    """All else has a value that serves one operator for the whole cluster."""
    options = read_options([], IMAGES)

    assert (options.namespaces, options.kubeconfig) == ((), None)
    assert (options.workers, options.port) == (DEFAULT_WORKERS, DEFAULT_PORT)
    assert options.log_level == "INFO"
    assert options.settings.engine_image == "engine:1"
    assert options.settings.plugin_image == "plugin:1"
    assert options.settings.plugin_pull_policy is PullPolicy.IF_NOT_PRESENT


@pytest.mark.parametrize("missing", sorted(IMAGES))
def test_a_missing_image_is_named(missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A model's pods would fail long after, and far from here."""
    with pytest.raises(SystemExit):
        read_options([], {**IMAGES, missing: ""})

    assert f"set {missing}: the images that pods of models run" in capsys.readouterr().err


def test_namespaces_come_with_commas() -> None:
    """As the chart writes them; a comma too many is no namespace without a name."""
    assert read_options(["--namespaces=a,b,"], IMAGES).namespaces == ("a", "b")


def test_a_prometheus_is_known_by_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    """Without one a model that asks for it is told so; a token alone would be sent nowhere."""
    assert read_options([], IMAGES).prometheus is None

    found = read_options(
        ["--prometheus-url=http://here:9090", "--prometheus-token-file=token"], IMAGES
    )
    assert found.prometheus == PrometheusSettings("http://here:9090", Path("token"), None)

    with pytest.raises(SystemExit):
        read_options(["--prometheus-token-file=token"], IMAGES)
    assert "set --prometheus-url, too" in capsys.readouterr().err


def test_flags_say_how_it_runs() -> None:
    """Outside of a cluster too."""
    options = read_options(
        ["--kubeconfig=here", "--workers=2", "--port=9", "--log-level=debug"], IMAGES
    )

    assert options.kubeconfig == Path("here")
    assert (options.workers, options.port, options.log_level) == (2, 9, "DEBUG")


def test_the_plugin_is_copied_unless_its_image_is_to_be_mounted() -> None:
    """Older clusters cannot mount an image."""
    assert not read_options([], IMAGES).settings.plugin_image_volume
    assert read_options(["--plugin-image-volume"], IMAGES).settings.plugin_image_volume


def test_a_word_that_is_no_level_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With those that are."""
    with pytest.raises(SystemExit):
        read_options(["--log-level=loud"], IMAGES)

    assert "'debug', 'info', 'warning'" in capsys.readouterr().err


def test_the_pod_says_who_leads_and_where() -> None:
    """The Lease's holder is a pod that can be looked at."""
    lease = read_options(
        [],
        {
            **IMAGES,
            "SPM_LEASE_NAMESPACE": "system",
            "SPM_LEASE_NAME": "lease",
            "SPM_POD_NAME": "operator-1",
        },
    ).lease

    assert (lease.namespace, lease.name, lease.identity) == ("system", "lease", "operator-1")


def test_outside_of_a_pod_the_host_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two developers must not both think that they hold the Lease."""
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")

    assert read_options([], IMAGES).lease.identity == "laptop"

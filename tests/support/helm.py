"""The real helm, on this checkout's chart."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import yaml

from local import binaries, install
from local.access import ClusterAccess
from tests.support.kubectl import Answer

CHART, RELEASE, RELEASE_NAMESPACE = install.CHART, install.RELEASE, install.NAMESPACE
"""As the local cluster has them."""
REPLICAS: int = yaml.safe_load((CHART / "values.yaml").read_text())["replicas"]
"""Operators that the chart installs."""

HOOK = "helm.sh/hook"

Manifest = dict[str, Any]


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> Answer:
    """One call, whatever comes of it."""
    program = binaries.folder() / "helm"
    assert program.exists(), "there is no helm: run: make setup"
    finished = subprocess.run(
        [program, *arguments, "--values=-"] if values is not None else [program, *arguments],
        input=json.dumps(values) if values is not None else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Answer(finished.returncode == 0, finished.stdout, finished.stderr)


def on(access: ClusterAccess) -> tuple[str, str]:
    """Helm's flags for the cluster under test."""
    return f"--kubeconfig={access.kubeconfig}", f"--kube-context={access.context}"


def render(*flags: str, **values: Any) -> Answer:
    """The chart's manifests as text, or helm's complaint."""
    where = f"--namespace={RELEASE_NAMESPACE}"
    return helm("template", RELEASE, str(CHART), where, *flags, values=values)


def rendered(**values: Any) -> tuple[Manifest, ...]:
    """The chart's manifests, which must be to be had."""
    answer = render(**values)
    assert answer.done, answer.complaint
    return tuple(document for document in yaml.safe_load_all(answer.output) if document)


def of_kind(manifests: tuple[Manifest, ...], *kinds: str) -> tuple[Manifest, ...]:
    """Of the release; what `helm test` makes is apart."""
    return tuple(
        manifest
        for manifest in manifests
        if manifest["kind"] in kinds and HOOK not in manifest["metadata"].get("annotations", {})
    )


def of_the_test(manifests: tuple[Manifest, ...]) -> dict[str, Manifest]:
    """What `helm test` makes, by kind."""
    return {
        manifest["kind"]: manifest
        for manifest in manifests
        if manifest["metadata"].get("annotations", {}).get(HOOK) == "test"
    }

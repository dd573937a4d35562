"""The CRD under a group of its own, which no operator on the cluster watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tests.conftest import RUN_LABEL
from tests.support.kubectl import Kubectl
from tools.generate import CRD


@dataclass(frozen=True)
class CopiedKind:
    """Our kind in another group: the same schema, rules, columns and subresources."""

    group: str
    version: str
    kind: str
    resource: str

    def model(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object of the copied kind."""
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.kind,
            "metadata": {"name": name},
            "spec": spec,
        }


@pytest.fixture(scope="session")
def copied_kind(kubectl: Kubectl, run: str) -> Iterator[CopiedKind]:
    """The committed CRD created anew on the real API server, deleted afterwards."""
    crd = yaml.safe_load(CRD.read_text())
    group = f"test-{run}.{crd['spec']['group']}"
    resource = f"{crd['spec']['names']['plural']}.{group}"
    crd["spec"]["group"] = group
    crd["metadata"] = {"name": resource, "labels": {RUN_LABEL: run}}
    kubectl("create", "-f", "-", objects=(crd,))
    kubectl("wait", "--for=condition=Established", f"crd/{resource}", "--timeout=30s")
    kubectl("get", resource, "--all-namespaces")
    (version,) = crd["spec"]["versions"]
    yield CopiedKind(group, version["name"], crd["spec"]["names"]["kind"], resource)
    kubectl("delete", "crd", resource, "--wait=false")

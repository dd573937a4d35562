"""Which cluster tests and benchmarks talk to.

`KUBECONFIG` is ignored: people have production there. Only `SPM_TEST_KUBECONFIG` together with
`SPM_TEST_CONTEXT` select another cluster than this checkout's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local import machine
from local.kubeconfig import CONTEXT
from local.layout import KUBECONFIG

KUBECONFIG_VARIABLE = "SPM_TEST_KUBECONFIG"
CONTEXT_VARIABLE = "SPM_TEST_CONTEXT"


class ClusterAccessError(RuntimeError):
    """No cluster can be reached as things are; the message says what to do."""


@dataclass(frozen=True)
class ClusterAccess:
    """A cluster to test on. Nodes and control plane may be broken only where `is_local`."""

    kubeconfig: Path
    context: str
    is_local: bool


def cluster_access(environment: Mapping[str, str] = os.environ) -> ClusterAccess:
    """The selected cluster. Raises `ClusterAccessError`, or `NotRunningError` for the local one."""
    chosen = environment.get(KUBECONFIG_VARIABLE), environment.get(CONTEXT_VARIABLE)
    match chosen:
        case (str(kubeconfig), str(context)) if kubeconfig and context:
            if not Path(kubeconfig).is_file():
                raise ClusterAccessError(f"{KUBECONFIG_VARIABLE}: there is no file {kubeconfig}")
            return ClusterAccess(Path(kubeconfig), context, is_local=False)
        case (None | "", None | ""):
            if not machine.in_its_network(machine.require()):
                raise ClusterAccessError(
                    "outside the local cluster's network: "
                    "put `python -m local.cluster enter --` in front of the command"
                )
            return ClusterAccess(KUBECONFIG, CONTEXT, is_local=True)
    raise ClusterAccessError(
        f"{KUBECONFIG_VARIABLE} and {CONTEXT_VARIABLE} select a cluster only together: set both"
    )

"""A second checkout's cluster beside the first one, and what is left of it after `down`."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from local import access, kubectl, machine
from tests.support.second_cluster import SecondCluster, second_cluster

FIXED_PATHS = (
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/log/pods",
    "/var/log/containers",
    "/run/containerd",
    "/run/xtables.lock",
    "/etc/cni/net.d",
)
NAMESPACES = ("net", "mnt", "pid")


def _processes() -> Iterator[Path]:
    yield from (entry for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def _read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _namespaces_of(process: Path) -> frozenset[str]:
    try:
        return frozenset(str((process / "ns" / kind).readlink()) for kind in NAMESPACES)
    except OSError:
        return frozenset()


def _fixed_paths() -> frozenset[str]:
    return frozenset(path for path in FIXED_PATHS if Path(path).exists())


@dataclass(frozen=True)
class Afterwards:
    """What was seen of the second cluster while it ran, for the search after its end."""

    checkout: Path
    cgroup: str
    namespaces: frozenset[str]
    pod_phase: str
    same_address_pods: int
    fixed_paths_before: frozenset[str]


def _pause_pod(cluster: SecondCluster) -> str:
    image = cluster.python("from local import images; print(images.reference(images.PAUSE))")
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "second"},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": image,
                        "imagePullPolicy": "Never",
                        "resources": {"limits": {"amd.com/gpu": "1"}},
                    }
                ]
            },
        }
    )


@pytest.fixture(scope="module")
def afterwards(tmp_path_factory: pytest.TempPathFactory) -> Afterwards:
    """A second cluster that has run a pod and is down again, while the first one went on."""
    if not access.cluster_access().is_local:
        pytest.skip("starts a cluster of its own on this machine")
    checkout = tmp_path_factory.mktemp("checkout")
    fixed = _fixed_paths()
    with second_cluster(checkout) as second:
        manifest = checkout / "pod.json"
        manifest.write_text(_pause_pod(second))
        second("kubectl", "create", "--filename", str(manifest))
        second("kubectl", "wait", "--for=condition=Ready", "pod/second", "--timeout=120s")
        phase = second("kubectl", "get", "pod", "second", "--output=jsonpath={.status.phase}")
        state = json.loads((checkout / ".state" / "machine.json").read_text())
        supervisor = Path(f"/proc/{state['pid']}")
        inside = [process for process in _processes() if _in_tree(process, supervisor)]
        namespaces = frozenset().union(*(_namespaces_of(process) for process in inside))
        ours = _namespaces_of(Path("/proc/self")) | _namespaces_of(Path("/proc/1"))
        pods = kubectl.run(
            machine.require(), "get", "pods", "--field-selector=metadata.name=second", "-o", "name"
        )
    return Afterwards(
        checkout=checkout,
        cgroup=second.python("from local import layout; print(layout.NAME)"),
        namespaces=namespaces - ours,
        pod_phase=phase,
        same_address_pods=len(pods.split()),
        fixed_paths_before=fixed,
    )


def _in_tree(process: Path, supervisor: Path) -> bool:
    """Whether a process belongs to the supervisor's process namespace."""
    try:
        return (process / "ns" / "pid").readlink() == (supervisor / "ns" / "pid").readlink()
    except OSError:
        return False


def test_a_pod_runs_in_a_second_checkouts_cluster(afterwards: Afterwards) -> None:
    """Same addresses, paths and ports: only namespaces of its own let two clusters run."""
    assert afterwards.pod_phase == "Running"


def test_the_first_cluster_does_not_see_the_second_ones_pods(afterwards: Afterwards) -> None:
    """Both API servers have the same URL: a leak would let one answer for the other."""
    assert afterwards.same_address_pods == 0


def test_the_first_cluster_outlives_the_end_of_the_second(afterwards: Afterwards) -> None:
    """`down` of one checkout must end nothing of another."""
    assert afterwards.checkout.exists()

    assert kubectl.run(machine.require(), "get", "--raw", "/readyz") == "ok"


def test_no_process_of_it_is_left(afterwards: Afterwards) -> None:
    """A shim or pod that outlives its cluster holds memory and mounts for ever."""
    mark = str(afterwards.checkout)

    left = [
        _read(process / "cmdline")
        for process in _processes()
        if mark in _read(process / "cmdline") or afterwards.namespaces & _namespaces_of(process)
    ]

    assert left == []


def test_no_mount_of_it_is_left(afterwards: Afterwards) -> None:
    """A mount left behind keeps the state folder from being deleted."""
    mark = str(afterwards.checkout)

    left = [line for line in _read(Path("/proc/self/mountinfo")).splitlines() if mark in line]

    assert left == []


def test_no_network_namespace_of_it_is_left(afterwards: Afterwards) -> None:
    """Named namespaces and those of pods stay until somebody deletes them."""
    named = Path("/run/netns")

    left = [
        entry.name
        for entry in (named.iterdir() if named.exists() else ())
        if entry.name.startswith("cni-") or f"net:[{entry.stat().st_ino}]" in afterwards.namespaces
    ]

    assert left == []


def test_no_socket_or_state_of_it_is_left(afterwards: Afterwards) -> None:
    """The state folder is empty, and no socket lies anywhere in the checkout."""
    sockets = [
        path for path in afterwards.checkout.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)
    ]

    assert sockets == []
    assert list((afterwards.checkout / ".state").iterdir()) == []


def test_no_cgroup_folder_of_it_is_left(afterwards: Afterwards) -> None:
    """The kernel keeps an empty cgroup until it is removed; thousands slow the machine down."""
    cgroups = Path("/sys/fs/cgroup")

    left = [*cgroups.glob(f"*/{afterwards.cgroup}"), *cgroups.glob(afterwards.cgroup)]

    assert left == []


def test_no_folder_of_the_machine_was_made(afterwards: Afterwards) -> None:
    """Kubelet, containerd and CNI insist on fixed paths: the machine's own stay untouched."""
    assert _fixed_paths() == afterwards.fixed_paths_before

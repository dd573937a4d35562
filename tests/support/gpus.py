"""How many GPUs the local node offers, as tests set it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from local import devices
from tests.support.api import KubernetesApi, until


def offer(api: KubernetesApi, count: int) -> None:
    """So many GPUs on the node, all healthy, once its status says so."""
    devices.mark_healthy()
    devices.set_count(count)
    wait_offered(api, count)


def wait_offered(api: KubernetesApi, count: int) -> None:
    """Once the node's status says that pods may have so many."""
    until(
        f"the node offers {count} GPUs",
        lambda: api.all("Node", None)[0]["status"]["allocatable"].get("amd.com/gpu") == str(count),
        timeout=60,
    )


@contextmanager
def restored() -> Iterator[None]:
    """Afterwards there are all GPUs again, and healthy."""
    try:
        yield
    finally:
        devices.mark_healthy()
        devices.set_count(devices.DEFAULT_COUNT)

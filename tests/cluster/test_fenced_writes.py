"""A write of who has lost the Lease, at the real API server: what was seen before is not enough."""

from __future__ import annotations

import pytest

from local.access import ClusterAccess
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.client import CONFLICT, Client, Refused
from speculative_operator.cluster.connection import load
from speculative_operator.cluster.manifests import Manifest, Reference
from tests.support.api import KubernetesApi


async def test_a_late_schedule_gets_409_and_changes_nothing(
    cluster: ClusterAccess, api: KubernetesApi, namespace: str
) -> None:
    """The leader of today has written since the late one looked."""
    where = Reference("ConfigMap", namespace, "schedule")
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": where.name, "namespace": namespace},
        "data": {"schedule.json": "first"},
    }
    async with Client(await load(cluster.kubeconfig, cluster.context)) as client:
        late, cache = Children(client, Cache()), Cache()
        late.cache.put(await client.create(manifest))
        cache.put({**manifest, "metadata": (await client.read(where) or {})["metadata"]})
        seen, seen_by_the_leader = late.cache.get(where), cache.get(where)
        assert seen is not None
        assert seen_by_the_leader is not None
        await Children(client, cache).change(
            seen_by_the_leader, {"data": {"schedule.json": "leader"}}
        )

        with pytest.raises(Refused) as refused:
            await late.change(seen, {"data": {"schedule.json": "late"}})

    found = api.get("ConfigMap", namespace, where.name)
    assert refused.value.status == CONFLICT
    assert found is not None
    assert found["data"] == {"schedule.json": "leader"}

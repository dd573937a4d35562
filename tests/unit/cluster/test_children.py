"""Keeping children: only ours, only when something differs, and what each refusal means."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest

from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.client import (
    CONFLICT,
    INVALID,
    TOO_MANY_REQUESTS,
    Client,
    Refused,
)
from speculative_operator.cluster.manifests import Manifest, Reference, reference_of
from speculative_operator.cluster.repairs import MOST_REPAIRS, WITHIN_SECONDS, Repairs
from speculative_operator.errors import ClusterFault, Contested, ModelInvalid, NotAllowed, NotOurs

OWNER = {"kind": "SpeculativeModel", "name": "qwen", "uid": "m1", "controller": True}


def service(owner: dict[str, Any] | None = OWNER, **spec: Any) -> Manifest:
    """A Service as it is rendered."""
    metadata: dict[str, Any] = {"name": "qwen", "namespace": "prod", "labels": {"a": "1"}}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP", **spec}}


class ApiServer:
    """Keeps objects and versions as an API server does, and notes what was sent."""

    def __init__(self) -> None:
        self.objects: dict[Reference, Manifest] = {}
        self.sent: list[str] = []
        self.refusal: Refused | None = None
        self.mutation: dict[str, Any] = {}
        self._version = 0

    def put(self, manifest: Manifest) -> Manifest:
        """Stores an object as somebody wrote it."""
        self._version += 1
        uid = manifest["metadata"].get("uid") or f"uid-{self._version}"
        stored = copy.deepcopy(manifest)
        stored["metadata"] |= {"uid": uid, "resourceVersion": str(self._version)}
        stored["spec"] |= self.mutation
        self.objects[reference_of(manifest)] = stored
        return copy.deepcopy(stored)

    async def create(self, manifest: Manifest) -> Manifest:
        self.sent.append("create")
        if self.refusal is not None:
            raise self.refusal
        if reference_of(manifest) in self.objects:
            raise Refused("POST", CONFLICT, "AlreadyExists", "exists")
        return self.put(manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        self.sent.append("apply")
        live = self.objects[reference_of(manifest)]
        assert manifest["metadata"]["uid"] == live["metadata"]["uid"]
        return self.put({**live, "spec": {**live["spec"], **manifest["spec"]}})

    async def evict(self, metadata: dict[str, Any]) -> None:
        self.sent.append(f"evict {metadata['uid']}")
        if self.refusal is not None:
            raise self.refusal

    async def merge(
        self, kind: str, metadata: Manifest, change: Manifest, *, version: int | None = None
    ) -> Manifest:
        self.sent.append("merge")
        live = self.objects[Reference(kind, metadata["namespace"], metadata["name"])]
        if version is not None and live["metadata"]["resourceVersion"] != str(version):
            raise Refused("PATCH", CONFLICT, "Conflict", "the object has been modified")
        return self.put({**live, "spec": {**live["spec"], **change["spec"]}})

    async def find(self, reference: Reference) -> Manifest | None:
        self.sent.append("find")
        return copy.deepcopy(self.objects.get(reference))

    async def book_fields(self, live: Manifest, entries: list[Manifest]) -> Manifest:
        self.sent.append("book")
        return self.put({**live, "metadata": {**live["metadata"], "managedFields": entries}})


@pytest.fixture
def server() -> ApiServer:
    """One without objects."""
    return ApiServer()


@pytest.fixture
def children(server: ApiServer) -> Children:
    """The verbs over that server."""
    return Children(cast(Client, server), Cache())


async def test_an_object_that_is_not_there_is_created(
    children: Children, server: ApiServer
) -> None:
    """In one request."""
    assert await children.keep(service()) is True
    assert server.sent == ["create"]


async def test_an_object_that_is_as_it_should_be_is_left(
    children: Children, server: ApiServer
) -> None:
    """A second reconcile of an unchanged model sends nothing."""
    await children.keep(service())

    assert await children.keep(service()) is False
    assert server.sent == ["create"]


async def test_an_edited_object_is_applied_to_once(children: Children, server: ApiServer) -> None:
    """And what the edit added stays."""
    await children.keep(service())
    live = server.objects[reference_of(service())]
    edited = server.put({**live, "spec": {"type": "NodePort", "theirs": True}})
    children.cache.put(edited)

    assert [await children.keep(service()), await children.keep(service())] == [True, False]
    assert server.sent == ["create", "apply"]
    assert server.objects[reference_of(service())]["spec"] == {"type": "ClusterIP", "theirs": True}


@pytest.mark.parametrize(
    ("owner", "holder"),
    [
        (None, "nobody that this operator knows"),
        (
            {"kind": "Deployment", "name": "gateway", "uid": "x", "controller": True},
            "Deployment prod/gateway",
        ),
        ({**OWNER, "name": "other", "uid": "m2"}, "SpeculativeModel prod/other"),
    ],
)
async def test_a_foreign_object_of_the_name_is_never_applied_to(
    children: Children, server: ApiServer, owner: dict[str, Any] | None, holder: str
) -> None:
    """The message says whose it is and what to do."""
    server.put(service(owner))

    with pytest.raises(NotOurs) as refused:
        await children.keep(service(type="LoadBalancer"))

    assert str(refused.value) == (
        f"Not applying Service prod/qwen: it belongs to {holder}. "
        "Rename this model or remove that Service."
    )
    assert "apply" not in server.sent


async def test_a_child_of_a_deleted_model_of_the_name_is_waited_for(
    children: Children, server: ApiServer
) -> None:
    """The garbage collector is on its way; that is no conflict."""
    server.put(service({**OWNER, "uid": "the-deleted-one"}))

    with pytest.raises(ClusterFault, match="still being removed"):
        await children.keep(service())


async def test_our_own_object_that_was_not_seen_is_taken_in(
    children: Children, server: ApiServer
) -> None:
    """Somebody took the label away that the watch selects by."""
    server.put(service(type="NodePort"))

    assert await children.keep(service()) is True
    assert server.objects[reference_of(service())]["spec"]["type"] == "ClusterIP"


async def test_what_a_webhook_sets_anew_is_no_endless_repair(
    children: Children, server: ApiServer
) -> None:
    """Somebody has to exempt the object; fighting helps nobody."""
    server.mutation = {"type": "LoadBalancer"}

    with pytest.raises(NotOurs, match=r"something sets spec\.type anew"):
        await children.keep(service())


async def test_an_object_that_the_api_server_refuses_is_the_users_to_mend(
    children: Children, server: ApiServer
) -> None:
    """It comes from the spec: retrying cannot cure it."""
    server.refusal = Refused("POST", INVALID, "Invalid", "spec.ports: Required value")

    with pytest.raises(ModelInvalid, match=r"refuses Service prod/qwen: spec\.ports: Required"):
        await children.keep(service())


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (400, "BadRequest", 'strict decoding error: unknown field "spec.nodePortt"'),
        (400, "BadRequest", "json: cannot unmarshal string into Go struct field"),
        (500, "", "failed to create typed patch object (prod/qwen): expected list, got string"),
    ],
)
async def test_a_manifest_that_does_not_fit_its_kind_is_the_users_to_mend(
    children: Children, server: ApiServer, status: int, reason: str, words: str
) -> None:
    """Only what users lay over a pod can be so, and sending it again cannot cure it."""
    server.refusal = Refused("POST", status, reason, words)

    with pytest.raises(ModelInvalid) as refused:
        await children.keep(service())

    assert str(refused.value) == f"The API server refuses Service prod/qwen: {words}"


async def test_what_is_forbidden_is_told_in_the_api_servers_words(
    children: Children, server: ApiServer
) -> None:
    """The resource is sound; whoever set the quota or the policy must hear of it."""
    server.refusal = Refused("POST", 403, "Forbidden", "exceeded quota")

    with pytest.raises(NotAllowed) as forbidden:
        await children.keep(service())

    assert str(forbidden.value) == "The API server forbids Service prod/qwen: exceeded quota"


async def test_an_api_server_in_trouble_is_a_fault_that_passes(
    children: Children, server: ApiServer
) -> None:
    """Nobody has to act; the next try may find it well."""
    server.refusal = Refused("POST", 503, "ServiceUnavailable", "overloaded")

    with pytest.raises(ClusterFault, match="overloaded"):
        await children.keep(service())


async def test_a_changed_service_may_drop_fields(children: Children, server: ApiServer) -> None:
    """The API server books a creation as an update, whose fields would stay for ever."""
    await children.keep(service())
    booked = {"manager": "speculative-operator", "operation": "Update", "fieldsV1": {"f:a": {}}}
    live = server.objects[reference_of(service())]
    live["metadata"]["managedFields"] = [booked]

    await children.keep(service(type="NodePort"))

    assert server.sent == ["create", "find", "book", "apply"]
    (entry,) = server.objects[reference_of(service())]["metadata"]["managedFields"]
    assert entry["operation"] == "Apply"


def annotated(*names: str) -> Manifest:
    """A Service with annotations."""
    made = service()
    annotations = {"annotations": dict.fromkeys(names, "1")} if names else {}
    return {**made, "metadata": {**made["metadata"], **annotations}}


def booked(*names: str, manager: str) -> Manifest:
    """A writer's entry in managedFields."""
    owned: Manifest = {"f:annotations": {f"f:{name}": {} for name in names}}
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:metadata": owned}}


@pytest.mark.parametrize(("manager", "sent"), [("speculative-operator", True), ("kubectl", False)])
async def test_an_annotation_that_is_rendered_no_longer_is_dropped_if_it_was_ours(
    children: Children, server: ApiServer, manager: str, sent: bool
) -> None:
    """Also after a restart: who has set it stands in the object. It is looked up once."""
    live = server.put(annotated("old"))
    live["metadata"]["managedFields"] = [booked("old", manager=manager)]
    server.objects[reference_of(live)] = live
    children.cache.put(live)

    assert await children.keep(annotated()) is sent
    assert server.sent == (["find", "book", "apply"] if sent else ["find"])
    server.sent.clear()

    assert await children.keep(annotated()) is False
    assert server.sent == []


class Clock:
    """Time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_who_undoes_each_repair_is_named_and_not_fought(server: ApiServer) -> None:
    """Two writers that act on each other's events would fill etcd; a minute later it is tried."""
    clock = Clock()
    children = Children(cast(Client, server), Cache(), Repairs(clock))
    theirs = {"manager": "an-autoscaler", "operation": "Update", "time": "2026-08-23T10:00:00Z"}
    for _ in range(MOST_REPAIRS):
        await children.keep(service())
        live = server.objects[reference_of(service())]
        live["metadata"]["managedFields"] = [theirs]
        children.cache.put(server.put({**live, "spec": {**live["spec"], "type": "NodePort"}}))
    server.sent.clear()

    with pytest.raises(Contested) as contested:
        await children.keep(service())

    assert str(contested.value) == (
        "Service prod/qwen: an-autoscaler changes spec.type again whenever it is put right. "
        "Let an-autoscaler leave this Service alone."
    )
    assert "apply" not in server.sent
    clock.now = WITHIN_SECONDS
    assert await children.keep(service()) is True


async def test_who_deletes_each_new_one_is_not_fought(
    children: Children, server: ApiServer
) -> None:
    """A tool that prunes what it did not make answers each creation."""
    for _ in range(MOST_REPAIRS):
        await children.keep(service())
        gone = server.objects.pop(reference_of(service()))
        children.cache.remove(reference_of(service()), gone["metadata"]["uid"])

    with pytest.raises(Contested, match="somebody deletes it again whenever it is made"):
        await children.keep(service())


async def test_a_write_that_failed_is_no_repair(children: Children, server: ApiServer) -> None:
    """An API server in trouble is not a fight with somebody."""
    server.refusal = Refused("POST", 503, "ServiceUnavailable", "overloaded")
    for _ in range(2 * MOST_REPAIRS):
        with pytest.raises(ClusterFault):
            await children.keep(service())

    server.refusal = None

    assert await children.keep(service()) is True


async def test_changes_of_our_own_are_no_repairs(children: Children) -> None:
    """A rollout scales one Deployment many times in a minute."""
    for port in range(3 * MOST_REPAIRS):
        assert await children.keep(service(port=port)) is True


async def test_a_pod_is_ended_as_a_drain_would_and_to_be_forbidden_it_is_no_fault(
    children: Children, server: ApiServer
) -> None:
    """Whoever set the budget or the webhook is told so in the API server's words; a fault would cut
    off the rest of the pass, status included."""
    assert await children.end("prod", "qwen-0", "p1") is None
    assert server.sent == ["evict p1"]

    for status, words in (
        (TOO_MANY_REQUESTS, "Cannot evict pod as it would violate the pod's disruption budget."),
        (403, 'admission webhook "drains.example.com" denied the request: not now'),
        (500, "This pod has more than one PodDisruptionBudget, which is not supported."),
    ):
        server.refusal = Refused("POST", status, "", words)
        assert await children.end("prod", "qwen-0", "p1") == words

    server.refusal = Refused("POST", 500, "", "no leader")
    with pytest.raises(ClusterFault):
        await children.end("prod", "qwen-0", "p1")


async def test_a_change_of_what_was_seen_overwrites_nothing_newer(
    children: Children, server: ApiServer
) -> None:
    """An operator that stood still must not undo what another one has decided since."""
    children.cache.put(server.put(service()))
    seen = children.cache.get(reference_of(service()))
    assert seen is not None
    server.put({**service(), "metadata": server.objects[seen.reference]["metadata"]})

    with pytest.raises(Refused) as refused:
        await children.change(seen, {"spec": {"type": "NodePort"}})

    assert refused.value.status == CONFLICT
    assert server.objects[seen.reference]["spec"]["type"] == "ClusterIP"


async def test_one_change_after_the_other_needs_no_watch(
    children: Children, server: ApiServer
) -> None:
    """The answer to the first one is what the second one is made from."""
    children.cache.put(server.put(service()))
    for port in (1, 2):
        seen = children.cache.get(reference_of(service()))
        assert seen is not None
        await children.change(seen, {"spec": {"port": port}})

    assert server.objects[reference_of(service())]["spec"]["port"] == 2

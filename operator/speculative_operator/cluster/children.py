"""Keeping a model's objects as they are rendered: only ours, and only when something differs.

An object that we do not see is created, never applied: the API server then refuses a name that is
taken, so nothing of somebody else's is ever changed. An object that we see is compared with what
is rendered and, where it differs, applied to on the condition that it is still the one we saw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from speculative_operator.api.names import FIELD_MANAGER
from speculative_operator.cluster.cache import Cache, Copy
from speculative_operator.cluster.client import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    TOO_MANY_REQUESTS,
    Client,
    Refused,
)
from speculative_operator.cluster.compare import first_difference
from speculative_operator.cluster.manifests import (
    MODEL,
    Manifest,
    Reference,
    controller_of,
    reference_of,
)
from speculative_operator.cluster.ownership import as_applied, owned_annotations
from speculative_operator.cluster.repairs import Repairs, last_writer
from speculative_operator.errors import ClusterFault, Contested, ModelInvalid, NotAllowed, NotOurs

DROPPING_FIELDS: Final = frozenset({"Service"})
"""Kinds of which a manifest may lack what an earlier one had. The others only change values."""

TWO_BUDGETS: Final = "more than one PodDisruptionBudget"
"""How the API server calls a pod that it therefore never evicts; its status is 500."""

UNTYPED: Final = "failed to create typed patch object"
"""How server-side apply calls a manifest that does not fit the kind's schema; its status is 500."""


@dataclass(frozen=True)
class Children:
    """The verbs with which one operator keeps objects, over the API and its watched copies."""

    client: Client
    cache: Cache
    repairs: Repairs = field(default_factory=Repairs)

    async def keep(self, manifest: Manifest) -> bool:
        """Makes the object what the manifest says; False when it was so already.

        Raises NotOurs, also where somebody undoes each repair; NotAllowed; ModelInvalid where the
        API server refuses what was rendered, which only the user can mend; ClusterFault.
        """
        reference, rendered = reference_of(manifest), hash(json.dumps(manifest))
        if self.cache.agrees(reference, rendered):
            return False
        try:
            changed = await self._keep(reference, manifest, rendered)
        except Refused as refusal:
            raise _blamed(refusal, reference) from refusal
        self.cache.agree(reference, rendered)
        return changed

    async def patch(self, kind: str, manifest: Manifest, change: Manifest) -> None:
        """Merges a change into an object that we see, such as a label of a pod; gone is fine."""
        try:
            self.cache.put(await self.client.merge(kind, manifest["metadata"], change))
        except Refused as refusal:
            if refusal.status not in (NOT_FOUND, CONFLICT):
                raise

    async def change(self, copy: Copy, change: Manifest) -> None:
        """Merges a change into an object as it was seen. Raises Refused where it is another one by
        now: somebody else has written it, perhaps the operator that leads since."""
        metadata = copy.manifest()["metadata"]
        self.cache.put(
            await self.client.merge(copy.reference.kind, metadata, change, version=copy.version)
        )

    async def patch_status(self, model: Reference, status: Manifest) -> None:
        """Makes the model's status this one; whatever was in it besides goes."""
        manifest = {
            "apiVersion": MODEL.api_version,
            "kind": MODEL.kind,
            "metadata": {"namespace": model.namespace, "name": model.name},
            "status": status,
        }
        self.cache.put(await self.client.apply(manifest, subresource="status"))

    async def remove(self, copy: Copy) -> None:
        """Deletes an object of ours that is needed no longer."""
        reference = copy.reference
        metadata = {"namespace": reference.namespace, "name": reference.name, "uid": copy.uid}
        await self.client.delete(reference.kind, metadata)
        self.cache.drop(reference, copy.uid)

    async def end(self, namespace: str, name: str, uid: str) -> str | None:
        """Evicts a pod. Its copy stays until it has ended: it holds its GPUs until then. Where a
        PodDisruptionBudget, a webhook or a missing right forbids it, nothing is done, and the rest
        of the pass goes on: the API server's words."""
        try:
            await self.client.evict({"namespace": namespace, "name": name, "uid": uid})
        except Refused as refusal:
            forbidden = refusal.status in (BAD_REQUEST, FORBIDDEN, INVALID, TOO_MANY_REQUESTS)
            if not forbidden and TWO_BUDGETS not in refusal.message:
                raise
            return refusal.message
        return None

    async def _keep(self, reference: Reference, manifest: Manifest, rendered: int) -> bool:
        copy = self.cache.get(reference)
        live = copy.manifest() if copy is not None else await self._create(reference, manifest)
        if live is None:
            return True
        _refuse_foreign(reference, manifest, live)
        path = first_difference(manifest, live)
        repair = self.cache.rendered_so(reference, rendered)
        if path is not None and repair and self.repairs.too_many(reference):
            raise await self._contested(reference, path)
        differs = path is not None
        more = differs or _annotations(live) - _annotations(manifest)
        dropping = reference.kind in DROPPING_FIELDS
        if more and dropping and not repair:
            differs |= await self._book_fields(reference, manifest)
        if not differs:
            return False
        identity = {**manifest["metadata"], "uid": live["metadata"]["uid"]}
        answer = await self.client.apply({**manifest, "metadata": identity})
        if repair:
            self.repairs.made(reference)
        self._take_in(reference, manifest, answer)
        return True

    async def _contested(self, reference: Reference, path: str) -> Contested:
        live = await self.client.find(reference)
        who = (last_writer(live, FIELD_MANAGER) if live is not None else None) or "somebody"
        return Contested(
            f"{reference}: {who} changes {path} again whenever it is put right. "
            f"Let {who} leave this {reference.kind} alone."
        )

    async def _create(self, reference: Reference, manifest: Manifest) -> Manifest | None:
        """None once created, else the object that has the name and was not seen."""
        if self.repairs.too_many(reference):
            raise Contested(
                f"{reference}: somebody deletes it again whenever it is made. "
                f"Let them leave this {reference.kind} alone."
            )
        try:
            answer = await self.client.create(manifest)
        except Refused as refusal:
            if refusal.reason != "AlreadyExists":
                raise
        else:
            self.repairs.made(reference)
            self._take_in(reference, manifest, answer)
            return None
        unseen = await self.client.find(reference)
        if unseen is None:
            raise ClusterFault(f"{reference} is being deleted by somebody")
        return unseen

    async def _book_fields(self, reference: Reference, manifest: Manifest) -> bool:
        """Lets the next apply drop what an earlier manifest had; True where annotations are so."""
        live = await self.client.find(reference)
        if live is None:
            return False
        entries = live["metadata"].get("managedFields", [])
        if (booked := as_applied(entries)) is not None:
            await self.client.book_fields(live, booked)
        return bool(owned_annotations(entries) - _annotations(manifest))

    def _take_in(self, reference: Reference, manifest: Manifest, answer: Manifest) -> None:
        """What became of a write. Raises Contested where somebody changes it on its way."""
        self.cache.put(answer)
        if (path := first_difference(manifest, answer)) is not None:
            raise Contested(
                f"{reference}: something sets {path} anew whenever it is written. "
                f"Exempt this object from the admission webhook or policy that does so."
            )


def _refuse_foreign(reference: Reference, manifest: Manifest, live: Manifest) -> None:
    wanted, owner = controller_of(manifest), controller_of(live)
    if owner is not None and wanted is not None and owner["uid"] == wanted["uid"]:
        return
    if owner is not None and wanted is not None and _same_name(owner, wanted):
        raise ClusterFault(f"{reference} of a deleted model of this name is still being removed")
    holder = (
        f"it belongs to {owner['kind']} {reference.namespace}/{owner['name']}"
        if owner is not None
        else "it belongs to nobody that this operator knows"
    )
    raise NotOurs(
        f"Not applying {reference}: {holder}. Rename this model or remove that {reference.kind}."
    )


def _annotations(manifest: Manifest) -> set[str]:
    return set(manifest["metadata"].get("annotations") or ())


def _same_name(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["kind"], one["name"]) == (other["kind"], other["name"])


def _blamed(refusal: Refused, reference: Reference) -> Exception:
    """Who has to act: the user, where the object itself is refused; whoever set a quota or a
    policy, where it is forbidden; else nobody but time."""
    if refusal.status in (BAD_REQUEST, INVALID) or UNTYPED in refusal.message:
        return ModelInvalid(f"The API server refuses {reference}: {refusal.message}")
    if refusal.status == FORBIDDEN:
        return NotAllowed(f"The API server forbids {reference}: {refusal.message}")
    return refusal

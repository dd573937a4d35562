"""Requests to the API server over plain JSON objects, and their faults as our own.

Each verb is one request. Typed models would drop fields that they do not know and cost more time
than the request.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
from kubernetes.aio.client import Configuration

from speculative_operator.api.names import FIELD_MANAGER
from speculative_operator.cluster.connection import bearer_token, session
from speculative_operator.cluster.manifests import RESOURCES, Manifest, Reference
from speculative_operator.errors import ClusterFault

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

ESCAPED: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""What Go's encoder escapes; none of it means anything outside of JSON's strings."""

BY_US: Final = {"fieldManager": FIELD_MANAGER}
STRICT: Final = {**BY_US, "fieldValidation": "Strict"}
"""A field that the API server does not know is refused, not dropped without a word."""
PAGE: Final = 500
"""Objects in one answer to a listing."""

BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
CONFLICT: Final = 409
INVALID: Final = 422
TOO_MANY_REQUESTS: Final = 429


class Refused(ClusterFault):
    """The API server answered with an error; `status` is HTTP's, `reason` the server's word."""

    def __init__(self, what: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{what}: {message or reason} ({status})")
        self.status = status
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class Request:
    """One request, before it is sent."""

    method: str
    kind: str
    place: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.place}"


Answered = Callable[[str, str, int], None]
"""Told of each answered request: its method, the kind of object, and HTTP's status."""


class Client:
    """One connection pool to the API server."""

    def __init__(self, configuration: Configuration, answered: Answered = lambda *_: None) -> None:
        self._configuration = configuration
        self._answered = answered
        self._session = session(configuration)
        self._before_write: Callable[[], None] = lambda: None

    def guarded(self, before_write: Callable[[], None]) -> Self:
        """The same connections, with a call before each write, which it stops by an exception."""
        other = copy.copy(self)
        other._before_write = before_write
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def create(self, manifest: Manifest) -> Manifest:
        """A new object; raises Refused with status CONFLICT when the name is taken."""
        kind, place = manifest["kind"], _collection(manifest["kind"], manifest["metadata"])
        return await self._send(Request("POST", kind, place, STRICT, manifest))

    async def apply(self, manifest: Manifest, *, subresource: str = "") -> Manifest:
        """Server-side apply with force: what the manifest holds becomes ours and so.

        A status is not checked strictly: the CRD may be older than the operator.
        """
        kind, place = manifest["kind"], _place(manifest["kind"], manifest["metadata"])
        if subresource:
            place = f"{place}/{subresource}"
        query = {**(BY_US if subresource else STRICT), "force": "true"}
        return await self._send(Request("PATCH", kind, place, query, manifest, APPLY_PATCH))

    async def merge(
        self,
        kind: str,
        metadata: Mapping[str, Any],
        change: Manifest,
        *,
        version: int | None = None,
    ) -> Manifest:
        """A JSON merge patch of the object that `metadata` names, if it still has that UID, and,
        where one is given, still this version: else refused with CONFLICT."""
        same = {"uid": metadata["uid"]}
        if version is not None:
            same["resourceVersion"] = str(version)
        body = {**change, "metadata": {**change.get("metadata", {}), **same}}
        place = _place(kind, metadata)
        return await self._send(Request("PATCH", kind, place, BY_US, body, MERGE_PATCH))

    async def book_fields(self, live: Manifest, entries: list[Manifest]) -> Manifest:
        """Sets who owns which field of an object, unless it has changed since it was read."""
        metadata = live["metadata"]
        change = [
            {
                "op": "test",
                "path": "/metadata/resourceVersion",
                "value": metadata["resourceVersion"],
            },
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        ]
        place = _place(live["kind"], metadata)
        return await self._send(Request("PATCH", live["kind"], place, BY_US, change, JSON_PATCH))

    async def replace(self, manifest: Manifest) -> Manifest:
        """A full update, refused with CONFLICT when the object has changed since it was read."""
        kind, place = manifest["kind"], _place(manifest["kind"], manifest["metadata"])
        return await self._send(Request("PUT", kind, place, BY_US, manifest))

    async def delete(self, kind: str, metadata: Mapping[str, Any]) -> None:
        """Deletes the object of that UID, its dependents in the background; gone is fine."""
        options = {
            "propagationPolicy": "Background",
            "preconditions": {"uid": metadata["uid"]},
        }
        try:
            await self._send(Request("DELETE", kind, _place(kind, metadata), {}, options))
        except Refused as refusal:
            if refusal.status not in (NOT_FOUND, CONFLICT):
                raise

    async def evict(self, metadata: Mapping[str, Any]) -> None:
        """Ends the pod of that UID as a drain would; gone is fine. Raises Refused with status
        TOO_MANY_REQUESTS where a PodDisruptionBudget forbids it."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "deleteOptions": {"preconditions": {"uid": metadata["uid"]}},
        }
        try:
            place = f"{_place('Pod', metadata)}/eviction"
            await self._send(Request("POST", "Pod", place, BY_US, eviction))
        except Refused as refusal:
            if refusal.status not in (NOT_FOUND, CONFLICT):
                raise

    async def read(self, reference: Reference) -> Manifest | None:
        """One object, or None."""
        metadata = {"namespace": reference.namespace, "name": reference.name}
        try:
            return await self._send(
                Request("GET", reference.kind, _place(reference.kind, metadata))
            )
        except Refused as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise

    async def find(self, reference: Reference) -> Manifest | None:
        """One object, or None, by listing: needs no right to get."""
        place = RESOURCES[reference.kind].path(reference.namespace)
        query = {"fieldSelector": f"metadata.name={reference.name}"}
        listing = await self._send(Request("GET", reference.kind, place, query))
        return next(({**item, "kind": reference.kind} for item in listing["items"] or ()), None)

    async def list_metadata(
        self, kind: str, namespace: str | None, selector: str
    ) -> list[Manifest]:
        """The metadata of all objects of a kind that the label selector matches."""
        query = {"labelSelector": selector} if selector else {}
        items = self._pages(
            Request("GET", kind, RESOURCES[kind].path(namespace), query, accept=METADATA_ONLY)
        )
        return [{"kind": kind, "metadata": item["metadata"]} async for item in items]

    async def select(
        self, kind: str, query: Mapping[str, str], namespace: str | None = None
    ) -> list[Manifest]:
        """All objects of a kind that the selectors in `query` match; None: in all namespaces."""
        items = self._pages(Request("GET", kind, RESOURCES[kind].path(namespace), query))
        return [item async for item in items]

    async def _pages(self, request: Request) -> AsyncIterator[Manifest]:
        query = {**request.query, "limit": str(PAGE)}
        while True:
            listing = await self._send(replace(request, query=query))
            for item in listing["items"] or ():
                yield item
            if not (more := listing["metadata"].get("continue")):
                return
            query = {**query, "continue": more}

    async def _send(self, request: Request) -> Manifest:
        headers = {"Content-Type": request.content_type, "Accept": request.accept}
        if token := await bearer_token(self._configuration):
            headers["Authorization"] = f"Bearer {token}"
        if request.method != "GET":
            self._before_write()
        async with (
            _faults_of(request),
            self._session.request(
                request.method,
                f"{self._configuration.host}{request.place}",
                params=request.query,
                headers=headers,
                data=None if request.body is None else canonical(request.body),
                proxy=self._configuration.proxy,
                server_hostname=self._configuration.tls_server_name,
            ) as answer,
        ):
            text = await answer.read()
        self._answered(request.method, request.kind, answer.status)
        return _parsed(request, answer.status, text)


def canonical(body: object) -> bytes:
    """JSON as the API server writes it itself.

    The data of a ControllerRevision is kept byte by byte and is immutable, so whatever the server
    decodes and writes again (a patch) must come out as it was sent.
    """
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.translate(ESCAPED).encode()


def _collection(kind: str, metadata: Mapping[str, Any]) -> str:
    return RESOURCES[kind].path(metadata["namespace"])


def _place(kind: str, metadata: Mapping[str, Any]) -> str:
    return f"{_collection(kind, metadata)}/{metadata['name']}"


@asynccontextmanager
async def _faults_of(request: Request) -> AsyncIterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise ClusterFault(f"{request}: {type(error).__name__}: {error}") from error


def _parsed(request: Request, status: int, text: bytes) -> Manifest:
    try:
        answer = json.loads(text) if text else {}
    except ValueError as error:
        raise ClusterFault(f"{request}: not JSON, status {status}: {text[:200]!r}") from error
    if status >= 400:
        reason = answer.get("reason", "") if isinstance(answer, dict) else ""
        message = answer.get("message", "") if isinstance(answer, dict) else ""
        raise Refused(str(request), status, reason, message)
    if not isinstance(answer, dict):
        raise ClusterFault(f"{request}: not an object: {text[:200]!r}")
    return answer

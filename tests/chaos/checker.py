"""What must hold once a fault is over. Pure: each rule takes evidence and gives complaints.

state      what runs is what the spec says, and there is no orphan
told       the status is true
requests   none was lost that a healthy replica could have served
writes     none outside the operator's own objects, none refused
decisions  none that was not justified by what engines showed
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from local.audit import Request
from speculative_operator.api.names import LABEL_REVISION, LABEL_SERVING
from speculative_operator.tuning.memory import from_data
from speculative_operator.tuning.schedule import ScheduleFile, schedule_hash
from tests.chaos.clients import Asked
from tests.chaos.picture import Picture
from tests.support.api import Manifest, condition, is_true

OUR_RESOURCES = frozenset(
    {
        "configmaps",
        "controllerrevisions",
        "deployments",
        "events",
        "leases",
        "poddisruptionbudgets",
        "pods",
        "serviceaccounts",
        "services",
    }
)
REFUSED = frozenset({400, 401, 403, 422})
"""Answers that say that the operator asked for what it should not; a conflict is none of them."""


def state(seen: Picture) -> Iterator[str]:
    """What runs, against the spec."""
    spec, current = seen.model["spec"], seen.status.get("revisions", {}).get("current")
    alive = [pod for pod in seen.pods if "deletionTimestamp" not in pod["metadata"]]
    if len(alive) != spec["replicas"] or len(seen.pods) != len(alive):
        yield f"{len(seen.pods)} pods, {len(seen.pods) - len(alive)} of them ending"
    for pod in alive:
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        if labels[LABEL_REVISION] != current:
            yield f"pod {name} is of revision {labels[LABEL_REVISION]}, not of {current}"
        if labels[LABEL_SERVING] != "true" or not is_ready(pod):
            yield f"pod {name} does not serve"
        if argument(pod, "--max-num-seqs") != str(spec["model"]["maxNumSeqs"]):
            yield f"pod {name} does not run what the spec says"
    annotations = spec.get("service", {}).get("annotations", {})
    services = [found["metadata"].get("annotations", {}) for found in seen.objects["Service"]]
    if len(services) != 1 or not annotations.items() <= services[0].items():
        yield "the Service is not what the spec says"
    if seen.routed != {pod["metadata"]["name"] for pod in alive}:
        yield f"the Service sends requests to {sorted(seen.routed)}"
    yield from _orphans(seen)


def _orphans(seen: Picture) -> Iterator[str]:
    """Objects without an owner, and those of revisions that are no more."""
    sets, name = seen.names("ReplicaSet"), seen.model["metadata"]["name"]
    for pod in seen.pods:
        if not any(owner["name"] in sets for owner in _owners(pod)):
            yield f"pod {pod['metadata']['name']} has no ReplicaSet"
    for kind, found in seen.objects.items():
        above = {"ReplicaSet": seen.names("Deployment")}.get(kind, {name})
        for each in found:
            owners = _owners(each)
            if not any(owner["controller"] and owner["name"] in above for owner in owners):
                yield f"{kind} {each['metadata']['name']} has no owner"
            if kind != "ReplicaSet" and any(owner["uid"] != seen.uid for owner in owners):
                yield f"{kind} {each['metadata']['name']} belongs to another"
    deployments = {f"{each}-schedule" for each in seen.names("Deployment")}
    for left in seen.names("ConfigMap") - deployments - {f"{name}-tuning"}:
        yield f"ConfigMap {left} is left over"
    for missing in seen.names("Deployment") - seen.names("ControllerRevision"):
        yield f"Deployment {missing} has no record"


def told(seen: Picture) -> Iterator[str]:
    """The status, against what runs."""
    status, model = seen.status, seen.model
    if status.get("observedGeneration") != model["metadata"]["generation"]:
        yield "the status is of an older spec"
    for kind in ("Accepted", "Ready"):
        if not is_true(model, kind):
            yield f"{kind} is not True: {condition(model, kind).get('reason')}"
    if condition(model, "Progressing").get("reason") != "Settled":
        yield f"Progressing: {condition(model, 'Progressing').get('reason')}"
    ready = sum(map(is_ready, seen.pods))
    if (status.get("replicas"), status.get("readyReplicas")) != (len(seen.pods), ready):
        yield f"the status has {status.get('readyReplicas')} of {status.get('replicas')} ready"
    details = {each["name"] for each in status.get("replicaDetails", ()) if each["ready"]}
    if details != {pod["metadata"]["name"] for pod in seen.pods if is_ready(pod)}:
        yield f"the status calls {sorted(details)} ready"
    yield from _schedule(seen)
    if not memory_of(seen):
        yield "nothing is remembered"


def _schedule(seen: Picture) -> Iterator[str]:
    """The schedule that was written is the one that is told, and the one that is played."""
    text = schedule_of(seen)
    written = ScheduleFile.read(text) if text is not None else None
    if text is None or written is None:
        yield f"there is no schedule: {text}"
        return
    rows = seen.status.get("schedule", ())
    shown = tuple((row["minBatch"], row["maxBatch"], row["proposalLength"]) for row in rows)
    if shown != written.table:
        yield f"the status tells of another schedule than {written.table}"
    for name, page in seen.pages.items():
        if page["hash_in_force"] != schedule_hash(text):
            yield f"{name} plays {page['hash_in_force']}, not {schedule_hash(text)}"
    silent = {pod["metadata"]["name"] for pod in seen.pods} - seen.pages.keys()
    if silent:
        yield f"{sorted(silent)} do not answer"


def requests(asked: Collection[Asked], *, cut: bool, outage: bool) -> Iterator[str]:
    """`cut` says that an engine or the Service was taken away, so that tries fail; `outage`, that
    for a while no replica could serve."""
    lost = [each for each in asked if each.lost]
    if lost and not outage:
        yield f"{len(lost)} requests were lost: {lost[0].lost}"
    again = [each for each in asked if each.tries > 1]
    if again and not (cut or outage):
        yield f"{len(again)} requests had to be sent again"
    if not asked:
        yield "no request was sent"


def writes(made: Iterable[Request], namespace: str) -> Iterator[str]:
    """What the operator sent, by the API server's audit log."""
    for each in made:
        what = f"{each.verb} {each.resource}/{each.subresource} {each.name}: {each.code}"
        if each.namespace != namespace:
            yield f"outside its namespace: {what}"
        elif each.resource == "speculativemodels" and each.subresource != "status":
            yield f"the user's object: {what}"
        elif each.resource not in OUR_RESOURCES | {"speculativemodels"}:
            yield f"not its own: {what}"
        elif each.code in REFUSED:
            yield f"refused: {what}"


def decisions(
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
    justified: Collection[str],
) -> Iterator[str]:
    """New entries of `status.decisions`."""
    known = {(each["time"], each["message"]) for each in before}
    for each in after:
        if (each["time"], each["message"]) not in known and each["reason"] not in justified:
            yield f"decided without evidence: {each['reason']}: {each['message']}"


def is_ready(pod: Manifest) -> bool:
    """Whether its kubelet calls it so."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def argument(pod: Manifest, flag: str) -> str | None:
    """The value of one of the engine's arguments."""
    words = [str(word) for word in pod["spec"]["containers"][0]["args"]]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def schedule_of(seen: Picture) -> str | None:
    """The text in the current revision's ConfigMap."""
    name, key = seen.model["metadata"]["name"], seen.status.get("revisions", {}).get("current")
    return next(
        (
            each.get("data", {}).get("schedule.json")
            for each in seen.objects["ConfigMap"]
            if each["metadata"]["name"] == f"{name}-{key}-schedule"
        ),
        None,
    )


def memory_of(seen: Picture) -> Collection[str]:
    """Revisions of which the tuner's memory knows something."""
    name = f"{seen.model['metadata']['name']}-tuning"
    for each in seen.objects["ConfigMap"]:
        if each["metadata"]["name"] == name:
            return from_data(each.get("data", {}), {}).revisions.keys()
    return ()


def _owners(found: Manifest) -> list[Manifest]:
    return list(found["metadata"].get("ownerReferences", ()))

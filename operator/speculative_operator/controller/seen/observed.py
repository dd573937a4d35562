"""What stands in the cluster for one model, read from the watched copies. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from speculative_operator.api.names import (
    ANNOTATION_IN_PLACE,
    ANNOTATION_REFERENCE,
    LABEL_REVISION,
)
from speculative_operator.cluster.cache import Copy
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.seen.pods import Pod, pod_of
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.controller.seen.times import unix
from speculative_operator.plan.continuations import ReferenceOutput
from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.plan.rollout import RevisionState
from speculative_operator.resources.controller_revision import RecordedRevision, recorded
from speculative_operator.resources.rebuilt_revision import rebuilt_revision


@dataclass(frozen=True)
class SeenRevision:
    """A recorded revision."""

    recorded: RecordedRevision
    number: int
    """The generation of the spec that it was made for: a higher one is newer."""
    verdict: RevisionVerdict | None
    """None before anything was found out about it, or where that is unknown."""
    in_place: str | None
    """Why no pod of it can surge in the rollout of now."""
    manifest: Manifest
    reference: ReferenceOutput | None = None
    """On trial: what the running revision answered before."""


@dataclass(frozen=True)
class Failure:
    """Why the API server refuses pods, for example by a quota, and since when (Unix time)."""

    message: str
    since: float | None


@dataclass(frozen=True)
class SeenDeployment:
    """A Deployment of one revision."""

    replicas: int
    failure: Failure | None


@dataclass(frozen=True)
class Observed:
    """Everything of one model. Mappings go by revision key."""

    pods: tuple[Pod, ...] = ()
    revisions: Mapping[str, SeenRevision] = field(default_factory=dict)
    deployments: Mapping[str, SeenDeployment] = field(default_factory=dict)
    schedules: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[Reference, Copy] = field(default_factory=dict)

    def by_age(self) -> list[str]:
        """Keys of the recorded revisions, oldest first."""
        return sorted(self.revisions, key=lambda key: (self.revisions[key].number, key))

    def verdict(self, key: str) -> RevisionVerdict | None:
        """What was found out about a revision."""
        return self.revisions[key].verdict if key in self.revisions else None

    def standing(self, key: str) -> Standing | None:
        """How a revision stands; None before anything was found out about it."""
        verdict = self.verdict(key)
        return verdict.standing if verdict is not None else None

    def is_good(self, key: str, last_good: str | None) -> bool:
        """Whether a revision may serve. One of which nothing was found out is good once it has
        served: status calls it `last_good`, or requests reach a pod of it."""
        match self.standing(key):
            case None:
                return key == last_good or any(pod.routed for pod in self.pods_of(key))
            case standing:
                return standing is Standing.GOOD

    def pods_of(self, key: str) -> tuple[Pod, ...]:
        """The pods of one revision."""
        return tuple(pod for pod in self.pods if pod.revision == key)

    def state(
        self, key: str, wanted: int, *, served: bool, hung: Collection[str] = ()
    ) -> RevisionState:
        """One revision as the rollout counts it. A pod off the Service is not ready for that, nor
        one of the `hung` UIDs."""
        pods = self.pods_of(key)
        deployment = self.deployments.get(key)
        return RevisionState(
            key=key,
            wanted=wanted,
            replicas=deployment.replicas if deployment is not None else 0,
            alive=sum(pod.alive for pod in pods),
            ready=sum(pod.routed and pod.uid not in hung for pod in pods),
            terminating=sum(pod.terminating for pod in pods),
            served=served or any(pod.routed for pod in pods),
            unplaced=sum(pod.alive and not pod.placed for pod in pods),
        )


def observe(copies: Iterable[Copy], lost: Iterable[Copy] = ()) -> Observed:
    """Sorts a model's copies by what they are.

    `lost` are last copies of objects that somebody deleted: they still say what was recorded and
    what the tuner had written, but no longer count as standing. A record of which there is not even
    that, since it was deleted while no operator ran, is rebuilt from its Deployment.
    """
    pods: list[Pod] = []
    revisions: dict[str, SeenRevision] = {}
    templates: dict[str, Manifest] = {}
    deployments: dict[str, SeenDeployment] = {}
    schedules: dict[str, str] = {}
    standing = {copy.reference: copy for copy in copies}
    for reference, copy in {**{copy.reference: copy for copy in lost}, **standing}.items():
        match reference.kind:
            case "Pod":
                pods.append(pod_of(copy.manifest()))
            case "ControllerRevision":
                revision = _revision(copy.manifest())
                revisions[revision.recorded.key] = revision
            case "Deployment":
                manifest = copy.manifest()
                deployments[_key(manifest)] = _deployment(manifest)
                templates[_key(manifest)] = manifest
            case "ConfigMap":
                manifest = copy.manifest()
                if text := manifest.get("data", {}).get(SCHEDULE_KEY):
                    schedules[_key(manifest)] = text
    return Observed(
        pods=tuple(sorted(pods, key=lambda pod: pod.name)),
        revisions={**revisions, **_rebuilt(templates, revisions)},
        deployments=deployments,
        schedules=schedules,
        copies=standing,
    )


def _key(manifest: Manifest) -> str:
    """The key of the revision, by the name: nobody can edit that away."""
    metadata = manifest["metadata"]
    name: str = metadata["name"].removesuffix("-schedule")
    return name.rsplit("-", 1)[-1]


def _revision(manifest: Manifest) -> SeenRevision:
    metadata = manifest["metadata"]
    labels = {**metadata.get("labels", {}), LABEL_REVISION: _key(manifest)}
    annotations = metadata.get("annotations", {})
    labelled = {**manifest, "metadata": {**metadata, "labels": labels}}
    return SeenRevision(
        recorded=recorded(labelled),
        number=manifest["revision"],
        verdict=RevisionVerdict.read(annotations),
        in_place=annotations.get(ANNOTATION_IN_PLACE) or None,
        manifest=manifest,
        reference=ReferenceOutput.read(annotations.get(ANNOTATION_REFERENCE)),
    )


def _rebuilt(
    deployments: Mapping[str, Manifest], known: Collection[str]
) -> Mapping[str, SeenRevision]:
    records = {key: rebuilt_revision(deployments[key]) for key in deployments if key not in known}
    return {key: _revision(record) for key, record in records.items() if record is not None}


def _deployment(manifest: Manifest) -> SeenDeployment:
    failures = manifest["status"]["failures"]
    return SeenDeployment(
        replicas=manifest["spec"].get("replicas", 1),
        failure=_failure(failures[0]) if failures else None,
    )


def _failure(condition: Mapping[str, str]) -> Failure:
    since = condition.get("lastTransitionTime")
    return Failure(condition.get("message", ""), unix(since) if since is not None else None)

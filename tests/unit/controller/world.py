"""A cluster of plain dicts for tests of the pure part: takes what is desired, and grows pods."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from speculative_operator.api.names import (
    ANNOTATION_DELETION_COST,
    ANNOTATION_IN_PLACE,
    ANNOTATION_REFERENCE,
    LABEL_REVISION,
)
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.manifests import Manifest, Reference, reference_of
from speculative_operator.controller.seen.causes import Ending
from speculative_operator.controller.seen.observed import Observed, observe
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.controller.trials.checks import Findings
from speculative_operator.controller.trials.questions import Answers
from speculative_operator.controller.wanted.desired import Desired, desire
from speculative_operator.controller.wanted.told import Told
from speculative_operator.plan.continuations import PROMPTS, Continuation, ReferenceOutput
from speculative_operator.plan.settings import Settings
from speculative_operator.plan.trial import NotCompared, Speed
from speculative_operator.tuning.variant import VariantChoice
from tests.unit.plan.builders import a_model

IN_PLACE = {"strategy": "InPlace", "allowDowntime": True}
SETTINGS = Settings(engine_image="engine:1", plugin_image="plugin:1")

SAID = tuple(Continuation((1, 2)) for _ in PROMPTS)
TOKENS = tuple(said.tokens for said in SAID)
SAME = ReferenceOutput(TOKENS, TOKENS)
"""The running revision says the same twice."""


class World:
    """One model and what stands for it."""

    def __init__(self, **spec: Any) -> None:
        self.cache = Cache()
        self.settings = SETTINGS
        self.now = 0.0
        self.reference: ReferenceOutput | None = SAME
        self.answers: Answers | None = SAID
        self.since: float | None = None
        self.speed: Speed | None = NotCompared("Speed is not compared: there are no requests.")
        self.last_good: str | None = None
        self.choice: VariantChoice | None = None
        self.hung: dict[str, str] = {}
        self.replace: set[str] = set()
        self._versions = itertools.count(1)
        self._generations = itertools.count(1)
        self.edit(**spec)

    def edit(self, **spec: Any) -> None:
        """The user writes another spec. Where nothing is said of it, rollouts go in place."""
        made = a_model(**{"rollout": IN_PLACE, **spec})
        metadata = made.metadata.model_copy(update={"generation": next(self._generations)})
        self.model: SpeculativeModel = made.model_copy(update={"metadata": metadata})
        self.cache.put(self._stored({"kind": "SpeculativeModel", "metadata": self._identity("")}))

    def desired(self, answering: Collection[str] = ()) -> Desired:
        """What a pass would aim at now."""
        told = Told(
            now=self.now,
            last_good=self.last_good,
            choice=self.choice,
            answering=answering,
            findings=self._findings(),
            hung=self.hung,
            replace=self.replace,
        )
        return desire(self.model, self.seen(), self.settings, told)

    def _findings(self) -> Findings | None:
        """What the checks have found about the revision that the spec or the tuner asks for."""
        on_trial = [
            key for key in self.seen().by_age() if self.seen().standing(key) is Standing.TRIAL
        ]
        if not on_trial:
            return None
        key = on_trial[-1]
        alive = [pod.incarnation for pod in self.seen().pods_of(key) if pod.alive]
        incarnation = next(iter(alive), None)
        return Findings(key, self.reference, incarnation, self.answers, self.since, self.speed)

    def seen(self) -> Observed:
        """What a pass would see now."""
        uid = self.model.metadata.uid
        return observe(self.cache.children(uid), self.cache.lost(uid))

    def act(self, answering: Collection[str] = ()) -> Desired:
        """One pass, as the API server would carry it out."""
        desired = self.desired(answering)
        for pod in desired.first_to_go:
            self.set_pod(pod.name, metadata={"annotations": {ANNOTATION_DELETION_COST: "-1"}})
        for manifest in (*desired.new, *desired.before_pods, *desired.pods):
            self._merge(manifest)
        for copy in desired.leftovers:
            self.cache.drop(copy.reference, copy.uid)
        for pod, serving in desired.labels:
            self._change_pod(pod.name, labels={"speculation.dev/serving": serving})
        if desired.reference is not None:
            key, output = desired.reference
            self.annotate(key, {ANNOTATION_REFERENCE: output.to_json()})
        for key, verdict in desired.found:
            self.judge(key, verdict)
        for key, words in desired.in_place:
            self.annotate(key, {ANNOTATION_IN_PLACE: words})
        self._grow_pods()
        return desired

    def settle(self) -> Desired:
        """Passes until nothing changes, with every pod Ready and answering at once."""
        for _ in range(50):
            before = self._versions_now()
            self.make_ready()
            desired = self.act(answering={pod.incarnation for pod in self.seen().pods})
            if self._versions_now() == before:
                return desired
        raise AssertionError("it never settles")

    def make_ready(self, names: Collection[str] | None = None) -> None:
        """All pods pass their probes, or those of some names."""
        for pod in self.seen().pods:
            if not pod.ready and (names is None or pod.name in names):
                self._change_pod(pod.name, ready=True)

    def lose_readiness(self) -> None:
        """All pods fail their probes."""
        for pod in self.seen().pods:
            self._change_pod(pod.name, ready=False)

    def refuse_pods(self, reason: str, message: str) -> None:
        """The kubelet ends all pods."""
        for pod in self.seen().pods:
            copy = self.cache.get(Reference("Pod", pod.namespace, pod.name))
            assert copy is not None
            found = copy.manifest()
            status = {"phase": "Failed", "reason": reason, "message": message}
            found["status"] = {**found["status"], **status}
            self.cache.put(self._stored({"kind": "Pod", **found}))

    def end_engines(self, ended: Ending, starts: int = 1) -> None:
        """The engines of all pods that are not Ready have ended so, the last of so many starts."""
        terminated = {
            "reason": ended.reason, "exitCode": ended.exit_code, "message": ended.message,
        }  # fmt: skip
        engine = {
            "name": "engine",
            "ready": False,
            "restartCount": starts - 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": terminated},
        }
        for pod in self.seen().pods:
            if not pod.ready:
                self._change_pod(pod.name, engine=engine)

    def replicas(self) -> dict[str, int]:
        """Replicas asked for, by revision."""
        return {key: seen.replicas for key, seen in self.seen().deployments.items()}

    def delete(self, kind: str, name: str) -> None:
        """Somebody deletes an object."""
        reference = Reference(kind, self.model.metadata.namespace, name)
        copy = self.cache.get(reference)
        assert copy is not None
        self.cache.remove(reference, copy.uid)

    def scale(self, key: str, replicas: int) -> None:
        """Somebody scales the Deployment of a revision."""
        found = self.deployment(key)
        self.cache.put(self._stored({**found, "spec": {**found["spec"], "replicas": replicas}}))

    def judge(self, key: str, verdict: RevisionVerdict) -> None:
        """Something is found out about a revision."""
        self.annotate(key, verdict.annotations())

    def annotate_in_place(self, why: str) -> None:
        """The current revision's rollout goes in place."""
        current = self.desired().current
        assert current is not None
        self.annotate(current.key, {ANNOTATION_IN_PLACE: why})

    def set_pod(self, name: str, **sections: dict[str, Any]) -> None:
        """Lays sections of a manifest over a pod."""
        copy = self.cache.get(Reference("Pod", self.model.metadata.namespace, name))
        assert copy is not None
        pod = {"kind": "Pod", **copy.manifest()}
        for section, fields in sections.items():
            pod[section] = {**pod.get(section, {}), **fields}
        self.cache.put(self._stored(pod))

    def set_failure(self, key: str, message: str, since: str) -> None:
        """The API server refuses pods of a revision."""
        condition = {"type": "ReplicaFailure", "status": "True", "message": message}
        failed = {"conditions": [{**condition, "lastTransitionTime": since}]}
        self.cache.put(self._stored({**self.deployment(key), "status": failed}))

    def deployment(self, key: str) -> Manifest:
        """The Deployment of a revision."""
        copies = self.seen().copies
        (copy,) = (c for ref, c in copies.items() if ref.kind == "Deployment" and key in ref.name)
        return copy.manifest()

    def annotate(self, key: str, annotations: Mapping[str, str | None]) -> None:
        """The record of a revision."""
        record = dict(self.seen().revisions[key].manifest)
        before = record["metadata"].get("annotations", {})
        metadata = {**record["metadata"], "annotations": {**before, **annotations}}
        self.cache.put(self._stored({**record, "metadata": metadata}))

    def _versions_now(self) -> dict[Reference, int]:
        return {c.reference: c.content for c in self.cache.children(self.model.metadata.uid)}

    def _identity(self, name: str) -> Manifest:
        metadata = self.model.metadata
        return {
            "name": name or metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
        }

    def _merge(self, manifest: Manifest) -> None:
        live = self.cache.get(reference_of(manifest))
        before = live.manifest() if live is not None else {"metadata": {}}
        metadata = {**before["metadata"], **manifest["metadata"]}
        self.cache.put(self._stored({**before, **manifest, "metadata": metadata}))

    def _stored(self, manifest: Manifest) -> Manifest:
        version = str(next(self._versions))
        uid = manifest["metadata"].get("uid", f"uid-{version}")
        return {
            **manifest,
            "metadata": {**manifest["metadata"], "uid": uid, "resourceVersion": version},
        }

    def _grow_pods(self) -> None:
        """What the Deployments' controllers would do."""
        for key, deployment in self.seen().deployments.items():
            pods = sorted(self.seen().pods_of(key), key=lambda pod: pod.deletion_cost is not None)
            for pod in pods[deployment.replicas :]:
                self.delete("Pod", pod.name)
            for _ in range(deployment.replicas - len(pods)):
                self._add_pod(key)

    def _add_pod(self, key: str) -> None:
        labels = self.seen().revisions[key].recorded.template["metadata"]["labels"]
        name = f"{self.model.metadata.name}-{key}-{next(self._versions)}"
        metadata = {"namespace": self.model.metadata.namespace, "name": name, "labels": labels}
        assert labels[LABEL_REVISION] == key
        self.cache.put(self._stored({"kind": "Pod", "metadata": metadata, "status": {}}))

    def _change_pod(
        self,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        ready: bool | None = None,
        engine: Manifest | None = None,
    ) -> None:
        copy = self.cache.get(Reference("Pod", self.model.metadata.namespace, name))
        assert copy is not None
        pod = {"kind": "Pod", **copy.manifest()}
        pod["metadata"]["labels"] = {**pod["metadata"]["labels"], **(labels or {})}
        if ready is not None:
            pod["status"]["conditions"] = [{"type": "Ready", "status": str(ready)}]
            pod["status"]["podIP"] = "10.0.0.1"
        if engine is not None:
            pod["status"]["containerStatuses"] = [engine]
        model_uid = self.model.metadata.uid
        pod["metadata"]["labels"].setdefault("speculation.dev/model-uid", model_uid)
        self.cache.put(self._stored(pod))


def upgraded(world: World) -> World:
    """The same cluster under an operator with other images."""
    world.settings = replace(SETTINGS, engine_image="engine:2", plugin_image="plugin:2")
    return world

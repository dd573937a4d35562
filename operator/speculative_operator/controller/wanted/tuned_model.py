"""A model as the tuner sees it, from what stands in the cluster. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from speculative_operator.api.names import ANNOTATION_LOOK
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.tuning import ReplaceFaultyPods
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.pods import Pod
from speculative_operator.controller.tuner.ports import Replica, TunedModel
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.controller.wanted.policy import policy_of
from speculative_operator.plan.schedule import needs_schedule

LONGEST_ASKED = 64
"""Characters; as many as a digest has."""


def tuned_model(model: SpeculativeModel, seen: Observed, desired: Desired) -> TunedModel | None:
    """The model at the revision that serves, as the tuner sees it."""
    serving, pair = desired.serving, desired.pair
    if serving is None or pair is None:
        return None
    speculative = seen.revisions.get(pair.speculative)
    facts = pair.tuned(speculative.recorded.facts if speculative is not None else serving.facts)
    pods = seen.pods_of(pair.speculative)
    plain = seen.pods_of(pair.autoregressive) if pair.autoregressive is not None else ()
    return TunedModel(
        uid=model.metadata.uid,
        namespace=model.metadata.namespace,
        name=model.metadata.name,
        key=pair.speculative,
        policy=policy_of(model.spec, facts),
        scheduled=facts.schedule,
        restart_helps=bool(facts.choices) and not facts.schedule and needs_schedule(model.spec),
        look=asked(model.metadata.annotations.get(ANNOTATION_LOOK)),
        replicas=_replicas(pods),
        plain=_replicas(plain),
        replaces=model.spec.tuning.replace_faulty_pods is ReplaceFaultyPods.ONE_AT_A_TIME,
        source=model.spec.tuning.source,
        downtime=model.spec.rollout.allow_downtime,
        startup=min((p.startup for p in (*pods, *plain) if p.startup is not None), default=None),
    )


def asked(value: str | None) -> str | None:
    """What tells one value of the look annotation from another. It is kept with the state and with
    each entry of the history, and an annotation may have 256 KiB, so long values go by digest."""
    if value is None or len(value) <= LONGEST_ASKED:
        return value
    return hashlib.sha256(value.encode()).hexdigest()


def _replicas(pods: Iterable[Pod]) -> tuple[Replica, ...]:
    return tuple(pod.replica for pod in pods if pod.alive and pod.address)

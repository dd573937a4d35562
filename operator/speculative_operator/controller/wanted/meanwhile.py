"""What goes on while the API server refuses the newest spec: replicas of what serves. Pure.

A refusal ends a pass before any Deployment is scaled. But `spec.replicas` shapes no pod, and an
autoscaler cannot wait until somebody mends the rest of the spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.plan.names import Owner
from speculative_operator.plan.rollout import next_scale, targets
from speculative_operator.plan.surge import in_place
from speculative_operator.resources.deployment import deployment
from speculative_operator.tuning.variant import VariantChoice


def meanwhile(
    model: SpeculativeModel, seen: Observed, choice: VariantChoice | None, current: str | None
) -> Iterator[Manifest]:
    """The next scale step of the Deployments that stand, as if the revision with most pods on the
    Service, the newest of equals, were the one wanted, with its sensor. Where the
    `current` one has a Deployment, its pods stay, and so does one more of a surge or those missing
    in place: a rollout that is held up midway, by somebody who fights over a child, would go back
    and forth else."""
    standing = [key for key in seen.by_age() if key in seen.deployments]
    if not standing:
        return
    routed = {key: sum(pod.routed for pod in seen.pods_of(key)) for key in standing}
    serving = max(reversed(standing), key=lambda key: routed[key])
    stands_in_for = seen.revisions[serving].recorded.facts.stands_in_for
    beside = choice is not None and choice.sensor and stands_in_for == choice.key
    sensor = stands_in_for if beside and stands_in_for in standing else None
    total = model.spec.replicas
    wanted = dict(targets(standing, serving, total, sensor))
    moving = current if current not in (serving, sensor) else None
    if moving is not None and moving in seen.deployments:
        wanted[moving] = min(seen.deployments[moving].replicas, total)
        rest, asked = max(0, wanted[serving] - wanted[moving]), seen.deployments[serving].replicas
        midway = -1 <= rest - asked <= model.spec.rollout.max_unavailable
        wanted[serving] = asked if midway and total else rest
    states = tuple(
        seen.state(key, wanted[key], served=seen.standing(key) is not Standing.TRIAL)
        for key in standing
    )
    rollout = model.spec.rollout
    limits = in_place(rollout, proven=True, downtime=rollout.allow_downtime)
    scale = next_scale(states, limits)
    if scale is not None:
        revision = seen.revisions[scale.key].recorded
        yield deployment(Owner.of(model), revision, scale.replicas)

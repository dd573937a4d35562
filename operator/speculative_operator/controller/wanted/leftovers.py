"""What is ours in the cluster and needed no longer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from speculative_operator.cluster.cache import Copy
from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.seen.revision_verdict import Standing
from speculative_operator.controller.wanted.rollout_aim import RolloutAim
from speculative_operator.plan.names import model_names, revision_names

MOST_BAD_RECORDS = 10
"""Bad revisions that are remembered, the newest ones."""


def leftovers(aim: RolloutAim, keep: Collection[str]) -> Iterator[Copy]:
    """What revisions that are over leave behind. The records in `keep` may be wanted again, and
    so may either variant of the current one; those of the last bad ones say that they are."""
    over = {state.key for state in aim.states if aim.over(state)}
    unknown = aim.seen.deployments.keys() - aim.revisions.keys()
    idle = {key for key in unknown if not any(pod.ready for pod in aim.seen.pods_of(key))}
    for key in sorted(over | idle):
        names = revision_names(aim.owner, key)
        kinds = {"Deployment": names.deployment, "ConfigMap": names.schedule}
        if key not in {*keep, *_bad(aim)} and key not in aim.wanted.pair:
            kinds["ControllerRevision"] = names.controller_revision
        for kind, name in kinds.items():
            copy = aim.seen.copies.get(Reference(kind, aim.owner.namespace, name))
            if copy is not None:
                yield copy
    yield from _unwanted_once(aim)


def _unwanted_once(aim: RolloutAim) -> Iterator[Copy]:
    """Of what a model has once."""
    names, unwanted = model_names(aim.owner), {}
    if names.service_account not in _accounts(aim):
        unwanted["ServiceAccount"] = names.service_account
    if aim.budget is None:
        unwanted["PodDisruptionBudget"] = names.disruption_budget
    for kind, name in unwanted.items():
        copy = aim.seen.copies.get(Reference(kind, aim.owner.namespace, name))
        if copy is not None:
            yield copy


def _bad(aim: RolloutAim) -> Collection[str]:
    bad = [key for key in aim.seen.by_age() if aim.seen.standing(key) is Standing.BAD]
    return bad[-MOST_BAD_RECORDS:]


def _accounts(aim: RolloutAim) -> Collection[str]:
    """ServiceAccounts that pods of now or later have."""
    return {
        aim.revisions[state.key].template["spec"]["serviceAccountName"]
        for state in aim.states
        if not aim.over(state)
    }

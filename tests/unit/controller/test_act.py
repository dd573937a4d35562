"""What a pass sends, and what it makes of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from speculative_operator.cluster.children import Children
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.controller.act import FIRST_TO_GO, act
from speculative_operator.controller.wanted.desired import Desired
from speculative_operator.tuning.verdict import Verdict
from tests.unit.controller.world import World


@dataclass
class Evicting:
    """Stands for the API server: takes evictions, and refuses some."""

    budget: dict[str, str] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    async def patch(self, kind: str, manifest: Manifest, change: Manifest) -> None:
        self.sent.append(f"{kind} {manifest['metadata']['name']} {change['metadata']}")

    async def keep(self, manifest: Manifest) -> bool:
        self.sent.append(f"{manifest['kind']} {manifest['metadata']['name']}")
        return True

    async def end(self, namespace: str, name: str, uid: str) -> str | None:
        del namespace, name
        self.ended.append(uid)
        return self.budget.get(uid)


async def test_a_pod_that_a_budget_keeps_is_no_change_and_is_named() -> None:
    """Else the next pass would come at once, and the next, for as long as the budget stands."""
    world = World(replicas=2)
    accepted: Verdict = world.settle().accepted
    one, other = world.seen().pods
    server = Evicting(budget={one.uid: "The budget needs 2 healthy pods."})
    children = cast("Children", server)

    refused = await act(Desired(accepted, replaced=(one,)), world.seen(), children)
    both = await act(Desired(accepted, replaced=(one, other)), world.seen(), children)

    words = f"Pod {one.name} is not replaced: The budget needs 2 healthy pods."
    assert refused.kept == both.kept == {one.uid: words}
    assert (refused.changed, both.changed) == (False, True)
    assert server.ended == [one.uid, one.uid, other.uid]


async def test_an_engine_that_hangs_is_marked_before_any_pod_goes() -> None:
    """In the same pass its Deployment may be scaled, and to a ReplicaSet it is ready."""
    world = World(replicas=2)
    world.settle()
    one, _ = world.seen().pods
    world.hung = {one.uid: "It hangs."}
    desired = world.desired()
    server = Evicting()
    await act(desired, world.seen(), cast("Children", server))

    assert desired.first_to_go == (one,)
    assert server.sent[0].startswith(f"Pod {one.name} ")
    assert FIRST_TO_GO in server.sent[0]
    assert any(sent.startswith("Deployment") for sent in server.sent)
    world.act()
    assert world.desired().first_to_go == ()

"""A model in each state that a GitOps tool meets, with the status that the operator writes for it.

`python -m tools.golden` writes them to `golden_statuses/`. Nothing in them is written by hand: the
operator's own functions look at a cluster of plain dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from speculative_operator.api.base import GROUP, KIND, VERSION
from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.schema import UNSEEN
from speculative_operator.api.status import ModelStatus
from speculative_operator.controller.said.status import PassFindings, unread
from speculative_operator.controller.said.status import status as status_of
from speculative_operator.controller.seen.names_check import Answer
from speculative_operator.tuning.conditions import health
from speculative_operator.tuning.conditions import tuned as best
from speculative_operator.tuning.verdict import Verdict
from tests.support.windows import Traffic
from tests.unit.controller.test_rollback import rejected
from tests.unit.controller.test_start_failures import FAIL, LONGER, ended, started
from tests.unit.controller.test_status import NOW, a_view, told
from tests.unit.controller.test_surging import MADE, aim, start
from tests.unit.controller.world import World
from tests.unit.tuning.test_conditions import DEAD, GOOD, after

STATUSES: Final = Path(__file__).parent / "golden_statuses"
OFF_LIMITS: Final = {"runtime": {"podTemplate": {"spec": {"hostNetwork": True}}}}
UNREADABLE: Final = Verdict(
    ConditionStatus.FALSE, Reason.INVALID, "spec.speculation.metod: Extra inputs are not permitted"
)
NO_GPU: Final = "0/1 nodes are available: 1 Insufficient amd.com/gpu."

Manifest = dict[str, Any]
Status = dict[str, Any]


def stored(world: World, status: Status) -> Manifest:
    """The model as the API server would show it; what the spec leaves to defaults stays away."""
    metadata = world.model.metadata
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "generation": metadata.generation,
        },
        "spec": world.model.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        | {"replicas": world.model.spec.replicas},
        "status": status,
    }


def serving(**spec: Any) -> World:
    """All wanted replicas serve."""
    world = World(**spec)
    world.settle()
    current = world.desired().current
    world.last_good = current.key if current is not None else None
    return world


def unseen() -> Manifest:
    """Just made: no operator has seen it."""
    return stored(World(), UNSEEN)


def edited() -> Manifest:
    """It serves, and its newest spec was not seen yet."""
    world = serving()
    before = told(world).wire()
    world.edit(**LONGER)
    return stored(world, before)


def starting() -> Manifest:
    """The engine loads."""
    world = started()
    return stored(world, told(world).wire())


def waiting_for_gpus() -> Manifest:
    """No node has free GPUs."""
    world = started()
    for pod in world.seen().pods:
        unscheduled = {"type": "PodScheduled", "status": "False", "message": NO_GPU}
        world.set_pod(pod.name, status={"conditions": [unscheduled]})
    return stored(world, told(world).wire())


def ready() -> Manifest:
    """It serves, and nothing was measured."""
    world = serving()
    return stored(world, told(world).wire())


def tuned() -> Manifest:
    """It serves at the best lengths."""
    return _measured(Traffic(GOOD), windows=30)


def draft_is_faulty() -> Manifest:
    """It serves; no draft token is ever accepted."""
    return _measured(Traffic(DEAD), windows=5)


def scaling_up() -> Manifest:
    """One more replica starts."""
    world = serving()
    world.edit(replicas=2)
    world.act()
    world.act()
    return stored(world, told(world).wire())


def on_trial() -> Manifest:
    """A new revision proves itself while the old one serves."""
    world = serving(replicas=2)
    world.edit(replicas=2, **LONGER)
    for _ in range(4):
        world.act()
    return stored(world, told(world).wire())


def rolling_out() -> Manifest:
    """Pods are being replaced."""
    world = start()
    return stored(world, _at(world, MADE + 20))


def tried_again() -> Manifest:
    """An engine ends again and again of what may pass."""
    world = started()
    ended(world, "hub-unreachable", starts=50)
    return stored(world, told(world).wire())


def parking() -> Manifest:
    """Scaled to zero; its pod still runs."""
    world = serving()
    world.edit(replicas=0)
    return stored(world, told(world).wire())


def parked() -> Manifest:
    """Scaled to zero."""
    world = serving()
    world.edit(replicas=0)
    world.settle()
    return stored(world, told(world).wire())


def refused() -> Manifest:
    """The operator refuses what the CRD cannot see."""
    world = World(**OFF_LIMITS)
    return stored(world, told(world).wire())


def refused_while_serving() -> Manifest:
    """The same in a model that serves."""
    world = serving()
    world.edit(**OFF_LIMITS)
    return stored(world, told(world).wire())


def unreadable() -> Manifest:
    """A stored spec that this operator cannot read."""
    world = World()
    return stored(world, unread(None, 1, UNREADABLE, NOW).wire())


def does_not_start() -> Manifest:
    """The engine refuses its arguments; nothing serves."""
    world = started(**FAIL)
    ended(world, "unknown-flag", starts=1)
    return stored(world, told(world).wire())


def stands_in() -> Manifest:
    """The draft does not fit; it is served without speculation."""
    world = started()
    ended(world, "vocabulary", starts=1)
    world.settle()
    return stored(world, told(world).wire())


def rolled_back() -> Manifest:
    """A new revision was rejected; the last good one serves."""
    world, _ = rejected()
    world.settle()
    return stored(world, told(world).wire())


def rolling_back() -> Manifest:
    """A new revision was just rejected; the last good one is being brought back."""
    world, _ = rejected(1)
    world.act()
    return stored(world, told(world).wire())


def stuck() -> Manifest:
    """Nothing has moved for rollout.progressDeadlineSeconds."""
    world = start(progressDeadlineSeconds=600)
    before = ModelStatus.read(_at(world, MADE))
    return stored(world, _at(world, MADE + 700, before))


def would_be_down() -> Manifest:
    """No GPU for one pod more, and the only one may not go first."""
    return stored(world := start(replicas=1), _at(world, MADE + 120))


def _measured(traffic: Traffic, windows: int) -> Manifest:
    """It serves, and so much traffic was measured."""
    world = serving()
    state, policy = after(traffic, windows)
    view = a_view(
        world,
        table=state.table,
        main_length=state.table[0][2],
        healthy=health(state, policy),
        tuned=best(state, policy),
    )
    return stored(world, told(world, view=view).wire())


def _at(world: World, at: float, before: ModelStatus | None = None) -> Status:
    answers = {pod.incarnation: Answer() for pod in world.seen().pods if pod.ready}
    found = PassFindings(before, answers, None, at)
    return status_of(world.model, world.seen(), aim(world, at - MADE), found).wire()


STATES: Final[tuple[Callable[[], Manifest], ...]] = (
    unseen,
    edited,
    starting,
    waiting_for_gpus,
    ready,
    tuned,
    draft_is_faulty,
    scaling_up,
    on_trial,
    rolling_out,
    tried_again,
    parking,
    parked,
    refused,
    refused_while_serving,
    unreadable,
    does_not_start,
    stands_in,
    rolled_back,
    rolling_back,
    stuck,
    would_be_down,
)


def file_of(state: Callable[[], Manifest]) -> Path:
    """Where a state's golden file is."""
    return STATUSES / f"{state.__name__.replace('_', '-')}.yaml"


def text_of(state: Callable[[], Manifest]) -> str:
    """A state's golden file: what it is, and the object."""
    assert state.__doc__ is not None
    return f"# {state.__doc__}\n{yaml.safe_dump(state(), sort_keys=False, width=100)}"


def write() -> int:
    """Writes all golden files anew; how many."""
    STATUSES.mkdir(exist_ok=True)
    for left in STATUSES.glob("*.yaml"):
        left.unlink()
    for state in STATES:
        file_of(state).write_text(text_of(state))
    return len(STATES)

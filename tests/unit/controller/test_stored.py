"""A stored resource that does not fit the models, and the pass over it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from speculative_operator.api.conditions import ConditionType, EventReason
from speculative_operator.api.status import ModelStatus
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.events import Event, EventRecorder
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.cluster.queue import Done
from speculative_operator.controller.reconcile import Reconciler, Tools
from speculative_operator.controller.seen.names_check import NamesCheck
from speculative_operator.controller.seen.stored import stored_model
from speculative_operator.controller.trials.checks import TrialChecks
from speculative_operator.controller.trials.questions import Engines
from speculative_operator.controller.tuner.fleet import ModelFleet
from speculative_operator.controller.tuner.ports import TunedModel
from speculative_operator.controller.wanted.policy import policy_of
from speculative_operator.errors import ModelInvalid
from tests.unit.controller.world import SETTINGS, World

MODEL = Reference("SpeculativeModel", "prod", "llama")


def a_stored(**spec: Any) -> Manifest:
    """A resource as an older CRD might have let it through."""
    made = World().model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    metadata = {**made["metadata"], "generation": 3, "resourceVersion": "1"}
    return {
        "kind": MODEL.kind,
        "metadata": metadata,
        "spec": {**made["spec"], **spec},
        "status": {},
    }


@dataclass
class Written:
    """Stands for the API server: takes status and Events, and fails at anything else."""

    statuses: list[Manifest] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    async def patch_status(self, _: Reference, status: Manifest) -> None:
        self.statuses.append(status)

    def tell(self, event: Event) -> None:
        self.events.append(event)


def a_reconciler(cache: Cache, fleet: ModelFleet, written: Written) -> Reconciler:
    """One whose writes end in `written`."""

    async def never(_: str) -> list[str]:
        raise AssertionError("no engine is asked")

    return Reconciler(
        Tools(
            cache=cache,
            children=cast("Children", written),
            settings=SETTINGS,
            names=NamesCheck(never, sleep=asyncio.sleep),
            trials=TrialChecks(cast("Engines", None), clock=lambda: 1e9, sleep=asyncio.sleep),
            fleet=fleet,
            events=cast("EventRecorder", written),
            again=lambda _: None,
            failed=lambda _: None,
            clock=lambda: 1e9,
        )
    )


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"replicas": "two"}, "spec.replicas: "),
        (
            {"model": {"source": "hf://a/b", "servedNames": ["ok", "no name"]}},
            "spec.model.servedNames[1]: ",
        ),
        ({"tuning": {"mode": "Telepathy"}}, "spec.tuning.mode: "),
    ],
)
def test_the_field_that_does_not_fit_is_named_as_the_user_writes_it(
    spec: dict[str, Any], path: str
) -> None:
    """Else nobody knows what to edit."""
    with pytest.raises(ModelInvalid) as refusal:
        stored_model(a_stored(**spec))

    assert str(refusal.value).startswith(path)


def test_all_fields_that_do_not_fit_are_named() -> None:
    """One edit mends them all."""
    with pytest.raises(ModelInvalid) as refusal:
        stored_model(a_stored(replicas=-1, tuning={"mode": 4}))

    assert "spec.replicas: " in str(refusal.value)
    assert "spec.tuning.mode: " in str(refusal.value)


async def test_a_pass_over_it_says_so_once_and_touches_nothing_else() -> None:
    """What runs goes on, and is tuned on."""
    cache, fleet, written = Cache(), ModelFleet(), Written()
    world = World()
    facts = world.settle().current
    assert facts is not None
    tuned = TunedModel(
        uid=world.model.metadata.uid,
        namespace=MODEL.namespace,
        name=MODEL.name,
        key=facts.key,
        policy=policy_of(world.model.spec, facts.facts),
        scheduled=True,
        replicas=(),
    )
    fleet.put(MODEL, tuned)
    stored = a_stored(replicas="two")
    cache.put(stored)
    reconciler = a_reconciler(cache, fleet, written)

    outcome = await reconciler.work(MODEL)

    (status,) = written.statuses
    told = ModelStatus.read(status)
    assert told is not None
    accepted = next(c for c in told.conditions if c.type is ConditionType.ACCEPTED)
    assert (accepted.status, accepted.reason) == ("False", "Invalid")
    assert accepted.message.startswith("spec.replicas: ")
    assert told.observed_generation == 3
    assert [event.reason for event in written.events] == [EventReason.REFUSED]
    assert fleet.targets() == (tuned,)
    assert outcome == Done()

    metadata = {**stored["metadata"], "resourceVersion": "2"}
    cache.put({**stored, "metadata": metadata, "status": status})
    assert await reconciler.work(MODEL) == Done()
    assert len(written.statuses) == 1


async def test_it_can_be_deleted() -> None:
    """A resource that is going is not read at all."""
    cache, fleet, written = Cache(), ModelFleet(), Written()
    stored = a_stored(replicas="two")
    metadata = {**stored["metadata"], "deletionTimestamp": "2026-08-23T10:00:00Z"}
    cache.put({**stored, "metadata": metadata})

    assert await a_reconciler(cache, fleet, written).work(MODEL) == Done()
    assert written.statuses == []

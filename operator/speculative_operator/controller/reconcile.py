"""One pass over one model: read, plan, build, apply, observe, status.

Level-triggered: a pass looks at what is wanted and what stands, never at what happened. It may run
at any time and as often as it likes; where all is as it should be, it sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.status import ModelStatus
from speculative_operator.cluster.cache import Cache
from speculative_operator.cluster.children import Children
from speculative_operator.cluster.events import Event, EventRecorder
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.cluster.queue import Done, Outcome
from speculative_operator.controller.act import act, keep
from speculative_operator.controller.outcome import outcome_of
from speculative_operator.controller.said.progress import next_look
from speculative_operator.controller.said.status import PassFindings, status, unread
from speculative_operator.controller.said.status_writes import seconds_until_write
from speculative_operator.controller.said.transitions import (
    going_in_place,
    moves,
    not_replaced,
    notices,
    off_unhealthy_devices,
    promotions,
    refuses,
)
from speculative_operator.controller.seen.capacity import Capacity
from speculative_operator.controller.seen.names_check import Answer, NamesCheck
from speculative_operator.controller.seen.observed import Observed, observe
from speculative_operator.controller.seen.stored import stored_model
from speculative_operator.controller.seen.times import rfc3339
from speculative_operator.controller.trials.checks import TrialChecks
from speculative_operator.controller.tuner.fleet import ModelFleet
from speculative_operator.controller.tuner.model_state import ModelState
from speculative_operator.controller.wanted.desired import Desired, desire
from speculative_operator.controller.wanted.meanwhile import meanwhile
from speculative_operator.controller.wanted.told import Told
from speculative_operator.controller.wanted.tuned_model import tuned_model
from speculative_operator.errors import Contested, ModelInvalid, NotAllowed, NotOurs, Refusal
from speculative_operator.plan.capacity import Stock
from speculative_operator.plan.settings import Settings
from speculative_operator.plan.surge import Counted
from speculative_operator.tuning.verdict import Notice, Verdict

SETTLING_SECONDS = 1.5
"""From the first difference of a status to its write: what changes together is written together.
A new model's pods, a ready engine's names and its first page each come within a second."""

NEXT_STEP_SECONDS = 0.1
"""After a pass that has changed something, for the step that may follow from it. A new model has
no next step before its pods show."""

KEPT_SECONDS = 10.0
"""Until a pod that a PodDisruptionBudget keeps is asked to go once more."""


@dataclass(frozen=True)
class Tools:
    """What a pass works with. `failed` is told of each error that ends a pass or cuts it short,
    `clock` is Unix time."""

    cache: Cache
    children: Children
    settings: Settings
    names: NamesCheck
    trials: TrialChecks
    fleet: ModelFleet
    events: EventRecorder
    again: Callable[[Reference], None]
    failed: Callable[[Exception], None]
    clock: Callable[[], float]
    capacity: Capacity | None = None
    """None where the installation does not allow to read nodes."""


class Reconciler:
    """Makes models so."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._measured_at: dict[Reference, float] = {}
        self._write_at: dict[Reference, float] = {}

    async def work(self, reference: Reference) -> Outcome:
        """A pass, with its errors turned into what they mean for the next one."""
        try:
            return await self.reconcile(reference)
        except Exception as error:
            return self._failed(error, reference)

    async def reconcile(self, reference: Reference) -> Outcome:
        """Does what there is to do for one model now, and says when to look again."""
        stored = self._stored(reference)
        if stored is None:
            return Done()
        before = ModelStatus.read(stored.get("status", {}))
        try:
            model = stored_model(stored)
        except ModelInvalid as refusal:
            generation = stored["metadata"].get("generation", 0)
            after = unread(before, generation, _verdict_on(refusal), self._now())
            self._tools.fleet.put_state(reference, ModelState.of(after))
            return Done(again_in=await self._write(reference, stored, before, after))
        seen = self._observe(model)
        answers = self._ask_names(reference, model, seen)
        view = self._tools.fleet.view(model.metadata.uid)
        told = Told(
            now=self._tools.clock(),
            last_good=before.revisions.last_good if before is not None else None,
            choice=view.choice if view is not None else None,
            answering={name for name, answer in answers.items() if answer.problem is None},
            findings=self._tools.trials.findings(reference),
            hung=view.hung if view is not None else {},
            replace=view.replace if view is not None else frozenset(),
        )
        desired = desire(model, seen, self._tools.settings, told)
        stock = await self._count(desired)
        if stock is not None:
            full = None if stock.fits else f"No node has {stock.need} free: {stock}."
            told = replace(told, counted=Counted(full))
            desired = desire(model, seen, self._tools.settings, told)
        acted = await act(desired, seen, self._tools.children)
        self._tell(reference, model.metadata.uid, going_in_place(desired.in_place))
        if acted.refusal is not None:
            desired = replace(desired, accepted=_verdict_on(acted.refusal))
            current = desired.current.key if desired.current is not None else None
            serves_on = meanwhile(model, seen, told.choice, current)
            scaled = await keep(serves_on, self._tools.children)
            acted = replace(acted, changed=acted.changed or scaled.changed)
        else:
            self._tell(reference, model.metadata.uid, promotions(desired.found))
            self._tell(reference, model.metadata.uid, off_unhealthy_devices(desired.replaced))
            self._tell(reference, model.metadata.uid, not_replaced(acted.kept))
            desired = replace(desired, kept=acted.kept)
        if acted.changed:
            seen = self._observe(model)
        self._tools.fleet.put(reference, tuned_model(model, seen, desired))
        self._check_trial(reference, desired)
        found = PassFindings(before, answers, view, told.now, stock)
        after = status(model, seen, desired, found)
        self._tools.fleet.put_state(reference, _state(model, after))
        wait = await self._write(reference, stored, before, after)
        if isinstance(acted.refusal, NotOurs | NotAllowed):
            return self._failed(acted.refusal, reference)
        if acted.changed and before is not None:
            return Done(again_in=NEXT_STEP_SECONDS)
        later = next_look(model.spec.rollout, seen, desired, told.now, moving=moves(after))
        trial = desired.probation.again_in if desired.probation is not None else None
        kept = KEPT_SECONDS if acted.kept else None
        return Done(again_in=_soonest(wait, later, trial, kept))

    def _stored(self, reference: Reference) -> Manifest | None:
        """The resource; None once it is gone or going, after forgetting all about it."""
        copy = self._tools.cache.get(reference)
        stored = copy.manifest() if copy is not None else None
        if stored is not None and stored["metadata"].get("deletionTimestamp") is None:
            return stored
        self._tools.fleet.forget(reference)
        self._tools.names.forget(reference)
        self._tools.trials.forget(reference)
        self._measured_at.pop(reference, None)
        self._write_at.pop(reference, None)
        return None

    def _failed(self, error: Exception, reference: Reference) -> Outcome:
        self._tools.failed(error)
        return outcome_of(error, reference)

    def _observe(self, model: SpeculativeModel) -> Observed:
        uid = model.metadata.uid
        return observe(self._tools.cache.children(uid), self._tools.cache.lost(uid))

    async def _count(self, desired: Desired) -> Stock | None:
        """Free GPUs, while it matters and where they may be read."""
        capacity, current = self._tools.capacity, desired.current
        if capacity is None or current is None or not desired.counts:
            return None
        return await capacity.stock(current.key, current.template)

    def _ask_names(
        self, reference: Reference, model: SpeculativeModel, seen: Observed
    ) -> Mapping[str, Answer]:
        names = {
            key: revision.recorded.facts.served_names for key, revision in seen.revisions.items()
        }
        return self._tools.names.look_at(
            reference, seen.pods, names, lambda: self._tools.again(reference)
        )

    def _check_trial(self, reference: Reference, desired: Desired) -> None:
        probation = desired.probation
        self._tools.trials.look_at(
            reference,
            probation.case if probation is not None and not desired.found else None,
            lambda: self._tools.again(reference),
        )

    async def _write(
        self,
        reference: Reference,
        stored: Manifest,
        before: ModelStatus | None,
        after: ModelStatus,
    ) -> float | None:
        """Writes the status if it is worth it now, with its Events; else says when it will be."""
        now = self._tools.clock()
        measured_at = self._measured_at.setdefault(reference, now)
        wire = after.wire()
        wait = seconds_until_write(stored.get("status", {}), wire, since_measured=now - measured_at)
        if wait != 0:
            self._write_at.pop(reference, None)
            return wait
        write_at = self._write_at.setdefault(reference, now + SETTLING_SECONDS)
        if now < write_at and not refuses(before, after):
            return write_at - now
        await self._tools.children.patch_status(reference, wire)
        self._measured_at[reference] = now
        del self._write_at[reference]
        self._tell(reference, stored["metadata"]["uid"], notices(before, after))
        return None

    def _tell(self, reference: Reference, uid: str, told: Iterable[Notice]) -> None:
        for notice in told:
            self._tools.events.tell(
                Event(reference, uid, notice.reason, notice.message, notice.warning)
            )

    def _now(self) -> str:
        return rfc3339(self._tools.clock())


def _state(model: SpeculativeModel, after: ModelStatus) -> ModelState:
    method = model.spec.speculation.method.value
    return ModelState.of(after, method=method, wanted=model.spec.replicas)


def _soonest(*waits: float | None) -> float | None:
    return min((wait for wait in waits if wait is not None), default=None)


def _verdict_on(refusal: Refusal) -> Verdict:
    match refusal:
        case ModelInvalid():
            reason = Reason.INVALID
        case Contested():
            reason = Reason.CONTESTED
        case NotOurs():
            reason = Reason.NAME_CONFLICT
        case NotAllowed():
            reason = Reason.FORBIDDEN
    return Verdict(ConditionStatus.FALSE, reason, str(refusal))

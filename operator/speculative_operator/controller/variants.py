"""Which revision of a model should run, and in which variant: started with or without speculation.

The tuner says which variant is wanted, from its memory. Before its first word nothing is moved that
runs without speculation: a new operator must not undo what the last one has decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.status import ModelStatus
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.observed import Observed
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.model import key_of, plan
from speculative_operator.plan.settings import Settings
from speculative_operator.resources.controller_revision import (
    RecordedRevision,
    controller_revision,
    recorded,
)
from speculative_operator.tuning.variant import Variant, VariantChoice
from speculative_operator.tuning.verdict import Verdict

ACCEPTED = Verdict(ConditionStatus.TRUE, Reason.VALID, "The resource can be run as written.")


@dataclass(frozen=True)
class Pair:
    """The keys of a revision's two variants; `autoregressive` is None where there is no record of
    it and none is wanted."""

    speculative: str
    autoregressive: str | None

    def key(self, variant: Variant) -> str | None:
        return self.autoregressive if variant is Variant.AUTOREGRESSIVE else self.speculative

    def __contains__(self, key: str) -> bool:
        return key in (self.speculative, self.autoregressive)


def pair_of(key: str, seen: Observed) -> Pair:
    """The variants of a recorded revision, whichever of the two it is."""
    facts = seen.revisions[key].recorded.facts if key in seen.revisions else None
    speculative = facts.stands_in_for or key if facts is not None else key
    stand_ins = (
        other
        for other, revision in seen.revisions.items()
        if revision.recorded.facts.stands_in_for == speculative
    )
    return Pair(speculative, next(stand_ins, None))


@dataclass(frozen=True)
class Wanted:
    """A revision that should run, and its ControllerRevision where that does not stand."""

    revision: RecordedRevision
    missing: Manifest | None = None


@dataclass(frozen=True)
class Current:
    """What should run: `main`, one of the `pair`, and one pod of `sensor` beside it. While it is
    not known which variant is wanted, `held`, no pod comes or goes."""

    main: Wanted
    pair: Pair
    sensor: Wanted | None = None
    held: bool = False

    @property
    def missing(self) -> tuple[Manifest, ...]:
        """Records to be made, the main one last."""
        both = (self.sensor, self.main)
        return tuple(one.missing for one in both if one is not None and one.missing is not None)


def current(
    model: SpeculativeModel, seen: Observed, settings: Settings, choice: VariantChoice | None
) -> tuple[Verdict, Current | None]:
    """The revision that the spec asks for, in the variant that the tuner wants.

    While the spec is refused it is the one that was current before, else the newest recorded one.
    """
    pair = Pair(key_of(model), key_of(model, Variant.AUTOREGRESSIVE))
    variant, held = _variant(model, pair, seen, choice)
    try:
        main = _asked_for(model, seen, settings, variant)
        beside = _has_sensor(pair, variant, choice)
        sensor = _asked_for(model, seen, settings, Variant.SPECULATIVE) if beside else None
    except ModelInvalid as refusal:
        verdict = Verdict(ConditionStatus.FALSE, Reason.INVALID, str(refusal))
        return verdict, _so_far(model, seen, choice)
    return ACCEPTED, Current(main, pair, sensor, held)


def _variant(
    model: SpeculativeModel, pair: Pair, seen: Observed, choice: VariantChoice | None
) -> tuple[Variant, bool]:
    """The variant to run, and whether it is only what runs until the tuner has spoken."""
    if choice is not None:
        speaks = choice.key == pair.speculative
        return (choice.variant if speaks else Variant.SPECULATIVE), False
    if pair.autoregressive not in seen.deployments:
        return Variant.SPECULATIVE, False
    speculated = _told(model) == pair.speculative
    return (Variant.SPECULATIVE if speculated else Variant.AUTOREGRESSIVE), True


def _has_sensor(pair: Pair, variant: Variant, choice: VariantChoice | None) -> bool:
    speaks = choice is not None and choice.key == pair.speculative and choice.sensor
    return speaks and variant is Variant.AUTOREGRESSIVE


def _asked_for(
    model: SpeculativeModel, seen: Observed, settings: Settings, variant: Variant
) -> Wanted:
    """As it was recorded, else as it would be now. Raises ModelInvalid."""
    key = key_of(model, variant)
    if key not in seen.revisions:
        new = controller_revision(plan(model, settings, variant))
        return Wanted(recorded(new), new)
    manifest = seen.revisions[key].manifest
    metadata = manifest["metadata"]
    record = Reference("ControllerRevision", metadata["namespace"], metadata["name"])
    missing = None if record in seen.copies else _without_identity(manifest)
    return Wanted(seen.revisions[key].recorded, missing)


def _so_far(
    model: SpeculativeModel, seen: Observed, choice: VariantChoice | None
) -> Current | None:
    """What runs while the spec of now is refused."""
    known = [*seen.by_age(), *_current_so_far(model, seen)]
    if not known:
        return None
    pair = pair_of(known[-1], seen)
    held = choice is None and pair.autoregressive in seen.deployments
    key, beside = known[-1], False
    if choice is not None and choice.key == pair.speculative:
        key = pair.key(choice.variant) or key
        beside = choice.sensor and choice.variant is Variant.AUTOREGRESSIVE
    main, sensor = (seen.revisions.get(each) for each in (key, pair.speculative))
    return Current(
        main=Wanted((main or seen.revisions[known[-1]]).recorded),
        pair=pair,
        sensor=Wanted(sensor.recorded) if beside and sensor is not None else None,
        held=held,
    )


def _current_so_far(model: SpeculativeModel, seen: Observed) -> Iterator[str]:
    """In a rollback it is not the newest one."""
    key = _told(model)
    if key is not None and key in seen.revisions:
        yield key


def _told(model: SpeculativeModel) -> str | None:
    """The revision that status calls current."""
    before = ModelStatus.read(model.status)
    return before.revisions.current if before is not None else None


def _without_identity(manifest: Manifest) -> Manifest:
    """A deleted object as it can be created again."""
    metadata = manifest["metadata"]
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    return {**manifest, "metadata": {key: metadata[key] for key in kept if key in metadata}}

"""Which revision of a model should run, and in which variant: started with or without speculation.

It is the one that the spec asks for, unless that was found bad: then it is another form of it that
has served (`stand_ins`), else the last good one, else a stand-in that was not tried yet, else
nothing that fails to start. Nothing is remembered
for that: the verdict stands on the revision's record, so going back is no loop, and a newer spec
supersedes both at once.

The tuner says which variant is wanted, from its memory. Before its first word nothing is moved that
runs without speculation: a new operator must not undo what the last one has decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from speculative_operator.api.conditions import ConditionStatus, Reason
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.status import ModelStatus
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict
from speculative_operator.controller.wanted.stand_ins import (
    Form,
    proven,
    rejected,
    stand_in,
    stand_ins_for,
)
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.facts import RevisionFacts
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

    def tuned(self, facts: RevisionFacts) -> RevisionFacts:
        """What the tuner should know of one of the two: one that stands alone, since speculation
        does not start, has nothing to tune."""
        alone = facts.stands_in_for is not None and self.autoregressive is None
        return facts.without_speculation() if alone else facts

    @property
    def keys(self) -> tuple[str, ...]:
        """Of both, as far as there are two."""
        return tuple(key for key in (self.speculative, self.autoregressive) if key is not None)

    def __contains__(self, key: str) -> bool:
        return key in self.keys


def pair_of(key: str, seen: Observed) -> Pair:
    """The variants of a recorded revision, whichever of the two it is. One that stands alone, since
    its speculative variant does not start, is both."""
    if key not in seen.revisions:
        return Pair(key, None)
    facts = seen.revisions[key].recorded.facts
    asked = facts.stands_in_for or facts.reduced_from or key
    others = stand_ins_for(asked, seen)
    plain = next((k for k in others if seen.revisions[k].recorded.facts.stands_in_for), None)
    if key != plain:
        return Pair(key, plain)
    speculative = [k for k in (asked, *sorted(others)) if k != plain and not rejected(k, seen)]
    return Pair(speculative[0], plain) if speculative else Pair(key, None)


@dataclass(frozen=True)
class Wanted:
    """A revision that should run, and its ControllerRevision where that does not stand."""

    revision: RecordedRevision
    missing: Manifest | None = None


@dataclass(frozen=True)
class Current:
    """What should run: `main`, one of the `pair`, and one pod of `sensor` beside it. While it is
    not known which variant is wanted, `held`, no pod comes or goes. `rejected` is why the revision
    that the spec asks for should not run, `stopped` that no start of `main` can succeed, so that
    only what serves is kept."""

    main: Wanted
    pair: Pair
    sensor: Wanted | None = None
    held: bool = False
    rejected: RevisionVerdict | None = None
    stopped: bool = False

    @property
    def missing(self) -> tuple[Manifest, ...]:
        """Records to be made, the main one last."""
        both = (self.sensor, self.main)
        return tuple(one.missing for one in both if one is not None and one.missing is not None)


def current(
    model: SpeculativeModel,
    seen: Observed,
    settings: Settings,
    choice: VariantChoice | None,
    last_good: str | None = None,
) -> tuple[Verdict, Current | None]:
    """The revision that the spec asks for, in the variant that the tuner wants.

    If it is bad, it is another form of it that has served; without one, the last good revision;
    without that, a stand-in; else the bad one all the same, but no more pods of one that fails to
    start. While the spec is refused it is the one
    that was current before, else the newest recorded one that is not bad. `last_good` is the key
    that status calls so.
    """
    asked = key_of(model)
    verdict, form = rejected(asked, seen), Form()
    if verdict is not None:
        served = proven(asked, seen, last_good)
        good = [k for k in seen.by_age() if seen.is_good(k, last_good)]
        if good and served is None:
            return ACCEPTED, replace(_recorded(good[-1], seen, choice), rejected=verdict)
        form = stand_in(model, seen) or served or form
    pair = _pair(model, form)
    variant, held = _variant(model, pair, seen, choice)
    try:
        main = _asked_for(model, seen, settings, _in(variant, form))
        beside = _has_sensor(pair, variant, choice)
        sensor = _asked_for(model, seen, settings, form) if beside else None
    except ModelInvalid as refusal:
        invalid = Verdict(ConditionStatus.FALSE, Reason.INVALID, str(refusal))
        return invalid, _so_far(model, seen, choice)
    own = rejected(main.revision.key, seen)
    stopped = own is not None and own.fails_to_start
    return ACCEPTED, Current(main, pair, sensor, held, verdict, stopped)


def _pair(model: SpeculativeModel, form: Form) -> Pair:
    """Of a stand-in without speculation there is no other variant."""
    alone = form.variant is Variant.AUTOREGRESSIVE
    return Pair(form.key(model), None if alone else key_of(model, Variant.AUTOREGRESSIVE))


def _in(variant: Variant, form: Form) -> Form:
    return Form(variant) if variant is Variant.AUTOREGRESSIVE else form


def _variant(
    model: SpeculativeModel, pair: Pair, seen: Observed, choice: VariantChoice | None
) -> tuple[Variant, bool]:
    """The variant to run, and whether it is only what runs until the tuner has spoken. Without
    speculation none runs that was found bad."""
    if pair.autoregressive is not None and rejected(pair.autoregressive, seen) is not None:
        return Variant.SPECULATIVE, False
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


def _asked_for(model: SpeculativeModel, seen: Observed, settings: Settings, form: Form) -> Wanted:
    """As it was recorded, else as it would be now. Raises ModelInvalid."""
    key = form.key(model)
    if key not in seen.revisions:
        new = controller_revision(plan(model, settings, form.variant, form.left_out))
        return Wanted(recorded(new), new)
    return _as_recorded(key, seen)


def _as_recorded(key: str, seen: Observed) -> Wanted:
    """With its record to be made again where somebody deleted that."""
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
    not_bad = [key for key in known if rejected(key, seen) is None]
    return _recorded((not_bad or known)[-1], seen, choice) if known else None


def _recorded(newest: str, seen: Observed, choice: VariantChoice | None) -> Current:
    """A recorded revision, or the other variant of it if the tuner wants that."""
    pair = pair_of(newest, seen)
    held = choice is None and pair.autoregressive in seen.deployments
    key, beside = newest, False
    if choice is not None and choice.key == pair.speculative:
        wanted = pair.key(choice.variant)
        if wanted is not None and rejected(wanted, seen) is None:
            key = wanted
            beside = choice.sensor and choice.variant is Variant.AUTOREGRESSIVE
    sensor = pair.speculative if beside and pair.speculative in seen.revisions else None
    return Current(
        main=_as_recorded(key if key in seen.revisions else newest, seen),
        pair=pair,
        sensor=_as_recorded(sensor, seen) if sensor is not None else None,
        held=held,
    )


def _current_so_far(model: SpeculativeModel, seen: Observed) -> Iterator[str]:
    """It is not the newest one where the spec has gone back to an older revision."""
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

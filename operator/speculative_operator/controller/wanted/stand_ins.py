"""What serves where the engines that the spec asks for do not start. Pure.

First the same without the option of speculation that keeps them from starting, where that is known,
then without speculation. Each that does not start either is found bad on its own record, so the
next is tried, and a restart of the operator changes nothing. Another spec, image or value of the
annotation `speculation.dev/refresh` is another revision, of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.tuning import OnStartFailure
from speculative_operator.controller.seen.observed import Observed
from speculative_operator.controller.seen.revision_verdict import RevisionVerdict, Standing
from speculative_operator.plan.model import key_of
from speculative_operator.tuning.variant import Variant


@dataclass(frozen=True)
class Form:
    """How a spec is run: in which variant, and without which options, by vLLM's names."""

    variant: Variant = Variant.SPECULATIVE
    left_out: tuple[str, ...] = ()

    def key(self, model: SpeculativeModel) -> str:
        """Of the revision."""
        return key_of(model, self.variant, self.left_out)


def rejected(key: str, seen: Observed) -> RevisionVerdict | None:
    """Why a revision should not run; None where nothing speaks against it."""
    verdict = seen.verdict(key)
    return verdict if verdict is not None and verdict.standing is Standing.BAD else None


def stand_in(model: SpeculativeModel, seen: Observed) -> Form | None:
    """The first form of a spec that is not known to be bad, from all of it to no speculation; None
    where nothing is left, or the user wants no stand-in."""
    if model.spec.tuning.fallback.on_start_failure is OnStartFailure.FAIL:
        return None
    options = model.spec.speculation.options.model_dump(exclude_none=True)
    form = Form()
    while (verdict := rejected(form.key(model), seen)) is not None:
        if verdict.leave_out is None or form.variant is Variant.AUTOREGRESSIVE:
            return None
        if verdict.leave_out in options and verdict.leave_out not in form.left_out:
            form = Form(left_out=tuple(sorted({*form.left_out, verdict.leave_out})))
        else:
            form = Form(Variant.AUTOREGRESSIVE)
    return form


def proven(key: str, seen: Observed, last_good: str | None) -> Form | None:
    """A recorded form of the spec of `key`, other than all of it, that is good or serves now:
    whatever was found out about the others, it need not go. One with speculation first."""

    def may_run(key: str) -> bool:
        serves = any(pod.routed for pod in seen.pods_of(key)) and rejected(key, seen) is None
        return serves or seen.is_good(key, last_good)

    found = [seen.revisions[k].recorded.facts for k in stand_ins_for(key, seen) if may_run(k)]
    reduced = sorted(facts.left_out for facts in found if facts.left_out)
    if reduced:
        return Form(left_out=reduced[0])
    plain = any(facts.stands_in_for for facts in found)
    return Form(Variant.AUTOREGRESSIVE) if plain else None


def stand_ins_for(key: str, seen: Observed) -> Collection[str]:
    """The recorded revisions that are forms of another one."""
    return {
        other
        for other, revision in seen.revisions.items()
        if key in (revision.recorded.facts.stands_in_for, revision.recorded.facts.reduced_from)
    }

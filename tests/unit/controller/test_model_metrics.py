"""The series of each model on the operator's page of metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from speculative_operator.api.conditions import ConditionStatus, ConditionType, EventReason, Reason
from speculative_operator.api.status import Mode, WhyNot
from speculative_operator.cluster.manifests import Reference
from speculative_operator.controller.metrics.described import MODEL_PREFIX
from speculative_operator.controller.metrics.metrics import Metrics
from speculative_operator.controller.metrics.models import ModelMetrics
from speculative_operator.controller.tuner.fleet import ModelFleet, ModelTold
from speculative_operator.controller.tuner.model_state import ModelState
from speculative_operator.controller.tuner.ports import TuningView
from speculative_operator.controller.tuner.tuner import Tuner
from speculative_operator.tuning.alternatives import Alternative
from speculative_operator.tuning.tally import Regret, Tally
from speculative_operator.tuning.variant import VariantChoice
from speculative_operator.tuning.verdict import Evidence, Verdict
from tests.support.tuner_world import World, a_model, pass_seconds

MODEL = Reference("SpeculativeModel", "default", "model")
STATE = ModelState(
    conditions=((ConditionType.READY, ConditionStatus.FALSE, Reason.WAITING_FOR_GPUS.value),),
    mode=Mode.FALLBACK,
    replicas=2,
    ready=0,
    method="eagle3",
    wanted=2,
)
OF_STATE = {
    "condition Ready WaitingForGpus False": 1,
    "info eagle3": 1,
    "mode Fallback": 1,
    "replicas": 2,
    "replicas_ready": 0,
    "replicas_wanted": 2,
}


async def tuned(seconds: float = 120) -> tuple[World, TuningView]:
    """What a tuner says after so long under traffic."""
    world = World()
    a_model(world)
    await pass_seconds(world, Tuner(world.ports()), seconds)
    return world, world.views["model"]


def page(view: TuningView, now: float) -> dict[str, float]:
    """The samples of one model, by name and its own labels."""
    metrics = Metrics()
    metrics.registry.register(ModelMetrics(lambda: (ModelTold(MODEL, STATE, view),), lambda: now))
    return samples(generate_latest(metrics.registry).decode())


def samples(text: str) -> dict[str, float]:
    """Sample name and its label besides the model's, as in `decisions_total FellBack`."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            if sample.name.startswith(f"{MODEL_PREFIX}_"):
                assert (labels.pop("namespace"), labels.pop("name")) == ("default", "model")
                name = sample.name.removeprefix(f"{MODEL_PREFIX}_")
                found[" ".join((name, *labels.values()))] = sample.value
    return found


def an_alternative(**fields: Any) -> Alternative:
    return Alternative(
        **{
            "length": 2,
            "gain": -0.1,
            "error": 0.02,
            "measured_at": 5.0,
            "reason": WhyNot.SLOWER,
            "message": "",
            **fields,
        }
    )


def a_view(**fields: Any) -> TuningView:
    nothing = Verdict(ConditionStatus.UNKNOWN, Reason.NO_TRAFFIC, "")
    return TuningView(
        key="k",
        table=((1, 64, 4),),
        main_length=4,
        healthy=nothing,
        tuned=nothing,
        choice=VariantChoice("k"),
        **fields,
    )


async def test_decisions_switches_evidence_and_regret_are_told() -> None:
    """K=4 was started with, K=2 is best: waiting for that cost tokens, and so did trying K=0."""
    world, view = await tuned()

    found = page(view, world.time + 30)

    assert found["decisions_total ProposalLengthChanged"] == found["switches_total"] == 1
    assert found["proposal_length"] == 2
    assert found["regret_tokens_total waiting"] > 0
    assert found["regret_tokens_total exploring"] > 0
    assert -0.2 < found["best_alternative_gain_ratio"] < 0
    assert 30 <= found["evidence_age_seconds"] < 60
    assert view.evidence is not None
    assert found["goodput_tokens_per_second"] == view.evidence.goodput


def test_the_length_of_engines_without_speculation_is_zero() -> None:
    """The table is kept for those with it."""
    metrics = Metrics()
    told = ModelTold(MODEL, replace(STATE, mode=Mode.AUTOREGRESSIVE), a_view())
    metrics.registry.register(ModelMetrics(lambda: (told,), lambda: 0.0))

    assert samples(generate_latest(metrics.registry).decode())["proposal_length"] == 0
    assert page(a_view(), 0.0)["proposal_length"] == 4


async def test_regret_at_the_best_length_grows_by_trials_only() -> None:
    """What is in force cannot be waited for."""
    world = World()
    a_model(world)
    tuner = Tuner(world.ports())
    await pass_seconds(world, tuner, 200)
    before = world.views["model"].tally.regret

    await pass_seconds(world, tuner, 600)

    after = world.views["model"].tally.regret
    assert after.exploring > before.exploring
    assert after.waiting - before.waiting < 0.1 * before.waiting


def test_what_is_not_known_has_no_series() -> None:
    """A gain of 0 would say that something was measured."""
    view = a_view(
        alternatives=(an_alternative(reason=WhyNot.NOT_MEASURED, gain=0.3),),
    )

    found = page(view, 10.0)

    assert {name for name in found if found[name] or "decisions" not in name} - set(OF_STATE) == {
        "proposal_length",
        "switches_total",
        "regret_tokens_total waiting",
        "regret_tokens_total exploring",
    }


def test_the_best_alternative_is_the_best_that_was_measured() -> None:
    """A guess is no regret."""
    view = a_view(
        evidence=Evidence(measured_at=4.0, drafts=100),
        alternatives=(
            an_alternative(),
            an_alternative(gain=0.04, reason=WhyNot.BELOW_MINIMUM_GAIN),
            an_alternative(gain=0.5, reason=WhyNot.OUT_OF_BOUNDS),
        ),
        tally=Tally({EventReason.RECOMMENDED: 2}, 0, Regret()),
    )

    found = page(view, 10.0)

    assert found["best_alternative_gain_ratio"] == 0.04
    assert found["decisions_total Recommended"] == 2


def test_what_a_status_says_in_words_is_1_at_the_word() -> None:
    """An alert asks for a reason, a table for a mode."""
    metrics = Metrics()
    metrics.watch_models(lambda: (ModelTold(MODEL, STATE),))

    assert samples(generate_latest(metrics.registry).decode()) == OF_STATE


def test_the_series_of_a_model_go_with_it() -> None:
    """Else a dashboard shows models that nobody runs."""
    fleet, metrics, world = ModelFleet(), Metrics(), World()
    model = a_model(world)
    metrics.watch_models(fleet.told)
    view = a_view()
    fleet.put(MODEL, model)
    fleet.put_state(MODEL, STATE)
    fleet.put_view(model.uid, view)
    assert samples(generate_latest(metrics.registry).decode())["proposal_length"] == 4

    fleet.put(MODEL, None)
    assert samples(generate_latest(metrics.registry).decode()) == OF_STATE

    fleet.forget(MODEL)
    assert samples(generate_latest(metrics.registry).decode()) == {}

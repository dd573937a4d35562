"""The status as it is written and read back."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.conditions import ConditionStatus, ConditionType, Reason
from speculative_operator.api.status import (
    BatchLength,
    Condition,
    DecisionRecord,
    Evidence,
    Mode,
    ModelStatus,
    ReplicaDetail,
    Revisions,
)

STATUS = ModelStatus(
    observed_generation=4,
    conditions=(
        Condition(
            type=ConditionType.TUNED,
            status=ConditionStatus.FALSE,
            reason=Reason.NOT_ENOUGH_DRAFTS,
            message="batch 1-4: fewer than 50 drafts in the last window; K stays 3",
            observed_generation=4,
            last_transition_time="2026-08-23T10:00:00Z",
        ),
    ),
    replicas=2,
    ready_replicas=2,
    selector="speculation.dev/model-uid=u",
    mode=Mode.SPECULATIVE,
    proposal_length=3,
    schedule=(BatchLength(min_batch=1, max_batch=16, proposal_length=3),),
    evidence=Evidence(
        measured_at="2026-08-23T10:00:00Z",
        drafts=412,
        acceptance=0.71191,
        acceptance_length=3.1357,
        position_acceptance=(0.9, 0.7, 0.5357),
        goodput=312.449,
        speedup=1.4249,
    ),
    revisions=Revisions(current="0123456789", last_good="0123456789"),
    replica_details=(
        ReplicaDetail(name="qwen-0", revision="0123456789", ready=True, tunable=True),
    ),
    decisions=(
        DecisionRecord(
            time="2026-08-23T09:59:00Z",
            min_batch=1,
            max_batch=16,
            before=7,
            after=3,
            reason="Goodput",
            message="K=3 brings 1.42, K=7 1.31 of K=0",
        ),
    ),
)


def test_measured_numbers_are_strings_of_fixed_decimals() -> None:
    """Floats in a CRD are discouraged, and a digit that flickers would be a write each pass."""
    evidence = STATUS.wire()["evidence"]

    assert evidence["acceptance"] == "0.712"
    assert evidence["acceptanceLength"] == "3.14"
    assert evidence["positionAcceptance"] == ["0.900", "0.700", "0.536"]
    assert evidence["goodput"] == "312.4"
    assert evidence["speedup"] == "1.42"


def test_numbers_that_differ_below_what_is_shown_give_the_same_status() -> None:
    """Equal means no write."""
    nearly = STATUS.model_copy(
        update={"evidence": STATUS.evidence.model_copy(update={"speedup": 1.4241})}
    )

    assert nearly.wire() == STATUS.wire()


def test_what_is_not_known_is_absent_and_not_zero() -> None:
    """No evidence is never zero."""
    wire = ModelStatus(observed_generation=1).wire()

    assert "proposalLength" not in wire
    assert "mode" not in wire
    assert wire["evidence"] == {"positionAcceptance": [], "alternatives": []}


def test_a_written_status_can_be_read_back() -> None:
    """The next pass compares with it, and takes the transition times over."""
    wire = STATUS.wire()
    read = ModelStatus.read(wire)

    assert read is not None
    assert read.wire() == wire


def test_a_model_without_a_status_has_none() -> None:
    """A new model has `{}`, which is no status with everything absent."""
    assert ModelStatus.read({}) is None


@pytest.mark.parametrize(
    ("strange", "lost"),
    [
        ({"conditions": [*STATUS.wire()["conditions"], {"type": "Foreign", "status": "True"}]}, {}),
        ({"conditions": [*STATUS.wire()["conditions"], "no object"]}, {}),
        ({"conditions": "no list"}, {"conditions": []}),
        ({"mode": "Telepathic"}, {"mode": None}),
        ({"evidence": {**STATUS.wire()["evidence"], "drafts": "many"}}, None),
        ({"evidence": None}, {"evidence": {"positionAcceptance": [], "alternatives": []}}),
        ({"revisions": {"current": 7, "lastGood": "0123456789"}}, None),
        ({"observedGeneration": None}, {"observedGeneration": 0}),
        ({"decisions": [*STATUS.wire()["decisions"], {"reason": "Whim"}]}, {}),
        ({"decisions": [{}] * 99}, {"decisions": []}),
        ({"replicaDetails": {"name": "qwen-0"}}, {"replicaDetails": []}),
        ({"somethingNew": [1]}, {}),
    ],
)
def test_what_is_not_understood_costs_only_itself(
    strange: dict[str, Any], lost: dict[str, Any] | None
) -> None:
    """Another version may have written it; a status that raises would stop every pass."""
    read = ModelStatus.read({**STATUS.wire(), **strange})

    assert read is not None
    assert read.revisions.last_good == "0123456789"
    if lost is not None:
        expected = {**STATUS.wire(), **lost}
        assert read.wire() == {key: value for key, value in expected.items() if value is not None}


def test_a_status_of_nothing_but_strange_things_is_read() -> None:
    """Whatever stands there, the pass goes on, as for a model of which nothing was said."""
    strange = dict.fromkeys(STATUS.wire(), 1.5)

    assert ModelStatus.read(strange) == ModelStatus(observed_generation=0)


def test_texts_are_cut_to_what_the_api_server_takes() -> None:
    """Engines and the cluster have words of any length; a status beyond a limit is refused."""
    long = "x" * 5000
    (told,) = STATUS.conditions
    condition = Condition.model_validate({**told.model_dump(), "message": long})
    detail = ReplicaDetail(name="p", revision=long, ready=False, schedule=long, message=long)
    (decided,) = STATUS.decisions
    record = DecisionRecord.model_validate(
        {**decided.model_dump(), "message": long, "outcome": long}
    )

    assert condition.message == "x" * 4095 + "…"
    assert detail.message == record.message == record.outcome == "x" * 1023 + "…"
    assert (len(detail.revision), len(detail.schedule or "")) == (10, 12)


def test_a_text_of_exactly_its_limit_stays_whole() -> None:
    """Nothing is cut that fits."""
    message = "x" * 1024
    detail = ReplicaDetail(name="p", revision="r", ready=False, message=message)

    assert detail.message == message

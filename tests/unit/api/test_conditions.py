"""Condition types and reasons."""

from __future__ import annotations

import re

import pytest

from speculative_operator.api.conditions import (
    ALWAYS_PRESENT,
    OF_PROMOTIONS,
    REASONS,
    ConditionType,
    EventReason,
    Explained,
    Reason,
)

NAMES: tuple[Explained, ...] = (*ConditionType, *Reason, *EventReason)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_one_word_and_explained_in_a_sentence(name: Explained) -> None:
    """The word is what people grep for; the sentence is what the reference shows."""
    assert re.fullmatch(r"[A-Z][A-Za-z]+", name.value)
    assert re.fullmatch(r"\S.*\.", name.meaning)
    assert len(name.meaning) < 120


def test_a_member_is_its_word_on_the_wire() -> None:
    """Conditions are compared with and written as plain strings."""
    assert str(Reason.VALID) == "Valid"
    assert f"{Reason.VALID}" == "Valid"


def test_every_reason_belongs_to_a_condition_or_a_promotion() -> None:
    """A reason that nothing may have is never seen."""
    seen = {reason for reasons in REASONS.values() for reason in reasons}

    assert seen | set(OF_PROMOTIONS) == set(Reason)


def test_every_condition_that_is_always_there_has_reasons() -> None:
    """The other two repeat a reason of these."""
    assert set(REASONS) == set(ALWAYS_PRESENT)

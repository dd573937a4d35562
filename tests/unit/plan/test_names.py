"""Names of children are DNS labels that say whose they are, and never collide."""

from __future__ import annotations

import re

import pytest

from speculative_operator.plan.names import Owner, label_value, model_names, revision_names

KEY = "0123456789"


def children(name: str) -> list[str]:
    owner = Owner(name, "prod", "uid")
    of_model, of_revision = model_names(owner), revision_names(owner, KEY)
    return [of_model.service, of_model.memory, of_revision.deployment, of_revision.schedule]


def test_a_usual_name_is_kept() -> None:
    """People look for their model's name."""
    assert children("qwen3-8b") == [
        "qwen3-8b",
        "qwen3-8b-tuning",
        "qwen3-8b-0123456789",
        "qwen3-8b-0123456789-schedule",
    ]


@pytest.mark.parametrize(
    "name", ["a", "q" * 63, "q" * 253, "qwen3.5-27b", "3b-model", "q-" * 60 + "z"]
)
def test_every_name_is_a_dns_label(name: str) -> None:
    """A Service's name starts with a letter; none may be longer than 63 or hold a dot."""
    for child in children(name):
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", child), child
        assert len(child) <= 63


@pytest.mark.parametrize(
    ("one", "other"),
    [("q" * 80 + "a", "q" * 80 + "b"), ("qwen3.5", "qwen3-5"), ("3b", "m-3b")],
)
def test_names_that_are_cut_alike_stay_apart(one: str, other: str) -> None:
    """Two models of a namespace must never fight for one child."""
    assert not set(children(one)) & set(children(other))


def test_a_long_name_still_tells_the_revision() -> None:
    """The key is never what is cut."""
    owner = Owner("q" * 200, "prod", "uid")

    assert revision_names(owner, KEY).deployment.endswith(f"-{KEY}")


@pytest.mark.parametrize("name", ["q" * 63, "q" * 64, "q" * 253, "q." * 100 + "z"])
def test_a_label_value_fits(name: str) -> None:
    """A label value holds 63 characters and ends with a letter or a digit."""
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", label_value(name))
    assert len(label_value(name)) <= 63

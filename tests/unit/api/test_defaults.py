"""What a spec means where it leaves something open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from speculative_operator.api import defaults
from speculative_operator.api.resource import SpeculativeModel, SpeculativeModelSpec


def a_spec(
    method: str = "mtp", lengths: Mapping[str, Any] | None = None, **sections: Any
) -> SpeculativeModelSpec:
    speculation = {"method": method, "proposalLength": dict(lengths or {})}
    return SpeculativeModelSpec.model_validate(
        {
            "model": {"source": "hf://Qwen/Qwen3-8B"},
            "speculation": speculation,
            "accelerator": {"products": ["MI300X"], "count": 8},
            **sections,
        }
    )


@pytest.mark.parametrize(
    ("method", "lengths", "choices", "initial"),
    [
        ("mtp", {}, (1, 2, 3, 5, 7), 7),
        ("dflash", {}, (3, 5, 7), 7),
        ("dspark", {}, (3, 5, 7), 7),
        ("eagle3", {"capacity": 4}, (1, 2, 3, 4), 4),
        ("dflash", {"capacity": 2}, (2,), 2),
        ("dflash", {"capacity": 15}, (3, 5, 7, 15), 7),
        ("eagle3", {"choices": (5, 1, 3)}, (1, 3, 5), 5),
        ("dflash", {"capacity": 15, "choices": (11, 15)}, (11, 15), 11),
        ("eagle3", {"initial": 2}, (1, 2, 3, 5, 7), 2),
        ("none", {}, (), 0),
    ],
)
def test_choices_and_the_first_length_follow_method_capacity_and_what_is_listed(
    method: str, lengths: Mapping[str, Any], choices: tuple[int, ...], initial: int
) -> None:
    """A start at 1 may look like a loss where 6 wins, so the start is long, but at most 7."""
    spec = a_spec(method, lengths)

    assert defaults.choices(spec) == choices
    assert defaults.initial_length(spec) == initial


def test_choices_do_not_depend_on_what_may_change_without_a_restart() -> None:
    """Graphs exist for the choices only, and initial and perBatch are not in the revision key."""
    row = {"minBatch": 1, "maxBatch": 8, "proposalLength": 3}

    assert defaults.choices(a_spec()) == defaults.choices(
        a_spec(lengths={"initial": 3, "perBatch": [row]})
    )


@pytest.mark.parametrize(
    ("parallelism", "size"),
    [({}, 8), ({"pipeline": 2}, 4), ({"pipeline": 2, "data": 4}, 1), ({"tensor": 8}, 8)],
)
def test_tensor_parallelism_takes_what_pipeline_and_data_leave(
    parallelism: Mapping[str, int], size: int
) -> None:
    """Their product is the count: a GPU left idle is a GPU paid for nothing."""
    assert defaults.tensor_size(a_spec(parallelism=parallelism)) == size


@pytest.mark.parametrize(
    ("names", "served"), [((), ("qwen",)), (("chat", "qwen-8b"), ("chat", "qwen-8b"))]
)
def test_a_model_is_served_under_its_own_name_by_default(
    names: tuple[str, ...], served: tuple[str, ...]
) -> None:
    """Requests must name a model, and the resource's name is what the user already knows."""
    spec = a_spec(model={"source": "hf://Qwen/Qwen3-8B", "servedNames": names})
    model = SpeculativeModel.model_validate(
        {"metadata": {"name": "qwen", "namespace": "prod", "uid": "u"}, "spec": spec}
    )

    assert defaults.served_names(model) == served

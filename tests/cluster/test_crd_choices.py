"""The API server and the operator must agree on which proposal lengths there are."""

from __future__ import annotations

import re

from speculative_operator.api import defaults
from speculative_operator.api.resource import SpeculativeModelSpec
from tests.cluster.conftest import CopiedKind
from tests.support.kubectl import Kubectl

METHODS = ("eagle3", "dflash")
CAPACITIES = (1, 2, 4, 6, 7, 10)


def spec(method: str, capacity: int, initial: int) -> dict[str, object]:
    return {
        "model": {"source": "hf://Qwen/Qwen3-8B"},
        "speculation": {
            "method": method,
            "draft": {"source": "hf://org/draft"},
            "proposalLength": {"capacity": capacity, "initial": initial},
        },
        "accelerator": {"products": ["MI300X"]},
    }


def test_the_rules_allow_exactly_the_choices_that_the_operator_prepares(
    kubectl: Kubectl, copied_kind: CopiedKind
) -> None:
    """The default choices stand in CEL and in Python; a length without graphs stops an engine."""
    asked = {
        f"{method}-{capacity}-{initial}": spec(method, capacity, initial)
        for method in METHODS
        for capacity in CAPACITIES
        for initial in range(1, capacity + 1)
    }
    prepared = {
        name
        for name, each in asked.items()
        if int(name.rsplit("-", 1)[1])
        in defaults.choices(SpeculativeModelSpec.model_validate(each))
    }
    objects = tuple(copied_kind.model(name, each) for name, each in asked.items())
    said = kubectl.attempt("create", "-f", "-", "--dry-run=server", objects=objects)

    assert set(re.findall(r"/(\S+) created", said.output)) == prepared

"""Writes what every example becomes: `python -m tools.golden`, then read the difference.

A golden file holds all manifests of a new model, in the order in which they are applied.
`tests/unit/goldens` compares them, and `python -m tools.validate` reads them as Kubernetes would.
The statuses beside them (`tests/unit/goldens/statuses.py`) are written with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.plan.model import plan
from speculative_operator.plan.names import Owner
from speculative_operator.plan.schedule import base_table
from speculative_operator.plan.settings import Settings
from speculative_operator.resources.config_maps import schedule_configmap
from speculative_operator.resources.controller_revision import controller_revision, recorded
from speculative_operator.resources.deployment import deployment
from speculative_operator.resources.disruption_budget import disruption_budget
from speculative_operator.resources.service import service
from speculative_operator.resources.service_account import service_account
from speculative_operator.tuning.schedule import ScheduleFile
from tests.unit.goldens import statuses

CHECKOUT = Path(__file__).resolve().parent.parent
EXAMPLES = CHECKOUT / "examples"
GOLDEN = CHECKOUT / "tests" / "unit" / "goldens" / "golden"

SETTINGS = Settings(
    engine_image="vllm/vllm-openai-rocm:v0.33.0",
    plugin_image="localhost/speculative-operator/vllm-plugin:v1",
)
UID = "00000000-0000-4000-8000-000000000000"


def examples() -> tuple[Path, ...]:
    """Every file that a reader may apply."""
    return tuple(sorted(EXAMPLES.glob("*.yaml")))


def models(example: Path) -> Iterator[SpeculativeModel]:
    """The models in a file, as the API server would hand them to the operator."""
    for document in yaml.safe_load_all(example.read_text()):
        if document["kind"] == "SpeculativeModel":
            given = {"namespace": "default", "uid": UID, "generation": 1}
            document["metadata"] = {**given, **document["metadata"]}
            yield SpeculativeModel.model_validate(document)


def manifests(model: SpeculativeModel) -> Iterator[dict[str, Any]]:
    """All that a new model gets."""
    owner, planned = Owner.of(model), plan(model, SETTINGS)
    account = service_account(owner, model.spec.runtime)
    if account is not None:
        yield account
    yield service(owner, model.spec.service)
    budget = disruption_budget(owner, model.spec.rollout, model.spec.replicas)
    if budget is not None:
        yield budget
    record = controller_revision(planned)
    yield record
    if planned.facts.schedule:
        text = ScheduleFile(table=base_table(model.spec)).to_json()
        yield schedule_configmap(owner, planned.key, text)
    yield deployment(owner, recorded(record), model.spec.replicas)


def golden(example: Path) -> str:
    """The text of an example's golden file."""
    made = [manifest for model in models(example) for manifest in manifests(model)]
    return yaml.dump_all(made, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=100)


class _Plain(yaml.CSafeDumper):
    """Writes equal parts out in full: a reader should not have to look up an anchor."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    names = {example.name for example in examples()}
    for left in GOLDEN.glob("*.yaml"):
        if left.name not in names:
            left.unlink()
    for example in examples():
        (GOLDEN / example.name).write_text(golden(example))
    print(f"{len(names)} golden files in {GOLDEN.relative_to(CHECKOUT)}")
    print(f"{statuses.write()} statuses in {statuses.STATUSES.relative_to(CHECKOUT)}")


if __name__ == "__main__":
    main()

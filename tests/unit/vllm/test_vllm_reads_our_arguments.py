"""The real vLLM, of its CPU build, reads what is rendered: parser, validation, schedule builder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local import vllm_environment
from speculative_operator.api import defaults
from speculative_operator.api.options import MethodOptions
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.api.speculation import Method
from speculative_operator.plan.model import plan
from tests.unit.plan.builders import EAGLE3, SETTINGS, a_model
from tools import golden

pytestmark = pytest.mark.timeout(900)

READER = Path(__file__).with_name("read_arguments.py")
EXAMPLES = {
    example.stem: model for example in golden.examples() for model in golden.models(example)
}
FULL = a_model(
    model={
        "revision": "main",
        "maxModelLen": 512,
        "dtype": "float32",
        "quantization": "fp8",
        "trustRemoteCode": True,
    },
    accelerator={"products": ["MI300X"], "count": 8},
    parallelism={"pipeline": 2, "data": 2, "expert": True},
)
"""Its arguments have every flag that the operator writes."""

OTHERS = {
    "full": FULL,
    "off": a_model(tuning={"mode": "Off"}),
    "fixed": a_model(
        tuning={"mode": "Off"},
        speculation={
            **EAGLE3,
            "proposalLength": {
                "perBatch": [
                    {"minBatch": 1, "maxBatch": 16, "proposalLength": 5},
                    {"minBatch": 17, "maxBatch": 64, "proposalLength": 2},
                    {"minBatch": 65, "maxBatch": 256, "proposalLength": 0},
                ]
            },
        },
    ),
    "few": a_model(model={"maxNumSeqs": 6}),
    "many": a_model(
        model={"maxNumSeqs": 1024},
        speculation={
            "method": "ngram",
            "proposalLength": {"capacity": 16, "choices": list(range(1, 17))},
        },
    ),
    "none": a_model(speculation={"method": "none"}),
}
MODELS: Mapping[str, SpeculativeModel] = {**EXAMPLES, **OTHERS}
SCHEDULED = [name for name, model in MODELS.items() if plan(model, SETTINGS).facts.schedule]

every_model = pytest.mark.parametrize("name", sorted(MODELS))


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the real vLLM says to everything at once: starting it is what takes the time."""
    environment = vllm_environment.folder()
    if not (environment / vllm_environment.READY).exists():
        pytest.fail("vLLM's environment is missing: run: python3 -m local.vllm_environment")
    scratch = tmp_path_factory.mktemp("vllm")
    task = {
        "models": str(tiny_models(environment / "models", scratch / "models")),
        "engines": {name: arguments(model) for name, model in MODELS.items()},
    }
    done = subprocess.run(
        [environment / "venv" / "bin" / "python", READER],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def tiny_models(source: Path, target: Path) -> Path:
    """The tiny checkpoints, and the config alone of a DSpark head: no CPU build runs one."""
    target.mkdir()
    for model in source.iterdir():
        (target / model.name).symlink_to(model)
    config = json.loads((source / "target" / "config.json").read_text())
    dspark = {
        "architectures": ["Qwen3DSparkModel"],
        "model_type": "qwen3",
        "block_size": 7,
        "target_layer_ids": [0, 1],
        "mask_token_id": 5,
    }
    (target / "dspark-head").mkdir()
    (target / "dspark-head" / "config.json").write_text(json.dumps({**config, **dspark}))
    return target


def arguments(model: SpeculativeModel) -> list[str]:
    return list(plan(model, SETTINGS).arguments)


@every_model
def test_vllm_accepts_the_arguments(name: str, vllm: dict[str, Any]) -> None:
    """A wrong one is told by vLLM half a minute after the pod's start, or never."""
    answer = vllm["engines"][name]

    if MODELS[name].spec.speculation.method is Method.DSPARK:
        assert "Model Runner V1 does not support: dspark" in answer["error"], answer
    else:
        assert "error" not in answer, answer["error"]


@every_model
def test_vllm_understands_what_the_spec_says(name: str, vllm: dict[str, Any]) -> None:
    """Accepted is not enough: each value must arrive where it is meant to."""
    model, answer = MODELS[name], vllm["engines"][name]
    if "error" in answer:
        pytest.skip("vLLM's CPU build cannot run DSpark; its words are tested above")
    speculation = model.spec.speculation

    assert answer["model"] == arguments(model)[0]
    assert answer["served"] == list(defaults.served_names(model))
    assert answer["port"] == 8000
    assert answer["seqs"] == model.spec.model.max_num_seqs
    assert answer["tensor"] == defaults.tensor_size(model.spec)
    assert answer["shutdown"] == model.spec.runtime.drain_seconds
    if speculation.method is not Method.NONE:
        assert answer["method"] == speculation.method
        assert answer["length"] == speculation.proposal_length.capacity


@every_model
def test_vllm_keeps_the_start_schedule(name: str, vllm: dict[str, Any]) -> None:
    """It drops one that it cannot use without a word, and then nothing can be tuned."""
    model, answer = MODELS[name], vllm["engines"][name]
    if "error" in answer:
        pytest.skip("vLLM's CPU build cannot run DSpark; its words are tested above")
    wanted = answer["wanted"].get("num_speculative_tokens_per_batch_size")

    assert answer["table"] == wanted
    assert (wanted is not None) is plan(model, SETTINGS).facts.schedule


@pytest.mark.parametrize("name", [name for name in SCHEDULED if "dspark" not in name])
def test_every_length_gets_graphs_for_nearly_the_full_batch(
    name: str, vllm: dict[str, Any]
) -> None:
    """vLLM captures graphs for a length up to the widest batch that its own table gives it.

    Only the batch sizes at the top that other lengths have are missing: one for each.
    """
    facts, lookup = plan(MODELS[name], SETTINGS).facts, vllm["engines"][name]["lookup"]
    lengths = {0, *facts.choices}
    widest = {length: batch for batch, length in enumerate(lookup[1:], start=1)}

    assert len(lookup) - 1 == facts.max_num_seqs
    assert set(widest) == lengths
    assert min(widest.values()) > facts.max_num_seqs - len(lengths)


@pytest.mark.parametrize("name", [name for name in SCHEDULED if name != "fixed"])
def test_a_new_engine_plays_its_initial_length(name: str, vllm: dict[str, Any]) -> None:
    """At every batch but the top, where the other lengths have their graphs' places."""
    answer, facts = vllm["engines"][name], plan(MODELS[name], SETTINGS).facts
    if "error" in answer:
        pytest.skip("vLLM's CPU build cannot run DSpark; its words are tested above")

    assert set(answer["lookup"][1 : facts.max_num_seqs - len(facts.choices)]) == {facts.initial}


def test_every_option_of_a_method_is_vllms_own(vllm: dict[str, Any]) -> None:
    """vLLM refuses a config with an unknown name."""
    assert set(MethodOptions.model_fields) <= set(vllm["options"])

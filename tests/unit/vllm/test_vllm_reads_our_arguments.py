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
from speculative_operator.plan.schedule import base_table
from speculative_operator.tuning.schedule import length_at
from tests.unit.plan.builders import EAGLE3, SETTINGS, a_model
from tools import golden

pytestmark = pytest.mark.timeout(900)

GRAPH_CEILING = 512
"""vLLM's default for the largest graph, in tokens."""
REQUESTS_BETWEEN_GRAPHS = 16

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
PLANS = {name: plan(model, SETTINGS) for name, model in MODELS.items()}
SCHEDULED = sorted(name for name, made in PLANS.items() if made.facts.schedule)
RUNNABLE = sorted(
    name for name, model in MODELS.items() if model.spec.speculation.method is not Method.DSPARK
)
"""DSpark needs Model Runner V2, which no CPU build has: of it, vLLM reads the arguments only."""

every_model = pytest.mark.parametrize("name", sorted(MODELS))
runnable_models = pytest.mark.parametrize("name", RUNNABLE)
scheduled_models = pytest.mark.parametrize("name", SCHEDULED)


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the real vLLM says to everything at once: starting it is what takes the time."""
    environment = vllm_environment.folder()
    if not (environment / vllm_environment.READY).exists():
        pytest.fail("vLLM's environment is missing: run: python3 -m local.vllm_environment")
    scratch = tmp_path_factory.mktemp("vllm")
    task = {
        "models": str(tiny_models(environment / "models", scratch / "models")),
        "engines": {name: made.arguments for name, made in PLANS.items()},
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


def widest(lookup: list[int]) -> dict[int, int]:
    """The largest batch at which vLLM's table has each length."""
    return {length: batch for batch, length in enumerate(lookup[1:], start=1)}


@runnable_models
def test_vllm_accepts_the_whole_config(name: str, vllm: dict[str, Any]) -> None:
    """A wrong one is told by vLLM half a minute after the pod's start, or never."""
    answer = vllm["engines"][name]

    assert "error" not in answer, answer["error"]


def test_of_dspark_only_the_cpu_build_complains(vllm: dict[str, Any]) -> None:
    """vLLM looks at the runner after all else has passed; whoever reads this has a newer vLLM."""
    for name in sorted(set(MODELS) - set(RUNNABLE)):
        answer = vllm["engines"][name]
        assert "Model Runner V1 does not support: dspark" in answer["error"], answer


@every_model
def test_vllm_understands_what_the_spec_says(name: str, vllm: dict[str, Any]) -> None:
    """Accepted is not enough: each value must arrive where it is meant to."""
    spec, answer = MODELS[name].spec, vllm["engines"][name]

    assert answer["model"] == PLANS[name].arguments[0]
    assert answer["served"] == list(defaults.served_names(MODELS[name]))
    assert answer["port"] == 8000
    assert answer["seqs"] == spec.model.max_num_seqs
    assert answer["shutdown"] == spec.runtime.drain_seconds
    assert answer["tensor"] == defaults.tensor_size(spec)
    assert answer["pipeline"] == spec.parallelism.pipeline
    assert answer["data"] == spec.parallelism.data
    assert answer["expert"] is spec.parallelism.expert


@runnable_models
def test_vllm_keeps_method_length_and_schedule(name: str, vllm: dict[str, Any]) -> None:
    """It may read another method out of a path, and drops a schedule that it cannot use."""
    speculation, answer = MODELS[name].spec.speculation, vllm["engines"][name]

    assert answer["table"] == answer["wanted"].get("num_speculative_tokens_per_batch_size")
    assert (answer["table"] is not None) is PLANS[name].facts.schedule
    if speculation.method is Method.NONE:
        assert answer["method"] is None
    else:
        assert answer["method"] == speculation.method
        assert answer["length"] == speculation.proposal_length.capacity


@scheduled_models
def test_every_length_is_in_the_table_up_to_nearly_the_full_batch(
    name: str, vllm: dict[str, Any]
) -> None:
    """vLLM captures graphs for a length up to the widest batch that its own table gives it.

    Only the batch sizes at the top that other lengths have are missing: one for each.
    """
    facts, lookup = PLANS[name].facts, vllm["engines"][name]["lookup"]
    lengths = {0, *facts.choices}

    assert len(lookup) - 1 == facts.max_num_seqs
    assert set(widest(lookup)) == lengths
    assert min(widest(lookup).values()) > facts.max_num_seqs - len(lengths)


@pytest.mark.parametrize("name", sorted({*SCHEDULED} & {*RUNNABLE}))
def test_every_length_gets_graphs(name: str, vllm: dict[str, Any]) -> None:
    """By vLLM's own rule for their sizes, up to its ceiling of 512 tokens a graph.

    A step of a length carries that many draft tokens and one more for each request.
    """
    lookup, graphs = (vllm["engines"][name][answer] for answer in ("lookup", "graphs"))

    for length, batch in widest(lookup).items():
        tokens = length + 1
        possible = min(batch, GRAPH_CEILING // tokens)
        covered = max(n for n in range(1, possible + 1) if n * tokens in graphs)
        assert covered > possible - REQUESTS_BETWEEN_GRAPHS, (length, covered, possible)


@scheduled_models
def test_a_new_engine_plays_what_the_spec_says(name: str, vllm: dict[str, Any]) -> None:
    """At every batch but the top, where the other lengths have their graphs' places."""
    facts, lookup = PLANS[name].facts, vllm["engines"][name]["lookup"]
    base = base_table(MODELS[name].spec)

    for batch in range(1, facts.max_num_seqs - len(facts.choices) + 1):
        assert lookup[batch] == length_at(base, batch)


def test_every_option_of_a_method_is_vllms_own(vllm: dict[str, Any]) -> None:
    """vLLM refuses a config with an unknown name."""
    assert set(MethodOptions.model_fields) <= set(vllm["options"])

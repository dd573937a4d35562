"""The argument list that `vllm serve` gets."""

from __future__ import annotations

import json
from typing import Any

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.plan.model import plan
from tests.unit.plan.builders import EAGLE3, SETTINGS, a_model

OFF = {"mode": "Off"}


def arguments(model: SpeculativeModel) -> list[str]:
    return list(plan(model, SETTINGS).arguments)


def following(listed: list[str], flag: str) -> str:
    return listed[listed.index(flag) + 1]


def config(model: SpeculativeModel) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(following(arguments(model), "--speculative-config"))
    return found


def test_the_model_stands_first() -> None:
    """`vllm serve` takes it by its place."""
    assert arguments(a_model())[0] == "meta-llama/Llama-3.1-8B-Instruct"


def test_the_most_requests_of_a_step_are_always_told() -> None:
    """vLLM's own default differs by hardware, and the schedule's table ends there."""
    assert following(arguments(a_model()), "--max-num-seqs") == "256"


def test_the_speculative_config_is_one_item() -> None:
    """Shells and charts break JSON, and vLLM does not merge it with the dotted form."""
    found = config(a_model(speculation={**EAGLE3, "options": {"draftTensorParallelSize": 1}}))

    assert found == {
        "method": "eagle3",
        "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        "num_speculative_tokens": 7,
        "draft_tensor_parallel_size": 1,
        "num_speculative_tokens_per_batch_size": [
            [1, 251, 7],
            [252, 252, 5],
            [253, 253, 3],
            [254, 254, 2],
            [255, 255, 1],
            [256, 256, 0],
        ],
    }


def test_with_tuning_off_there_is_no_schedule() -> None:
    """On engines without full graphs it slows every step down."""
    assert "num_speculative_tokens_per_batch_size" not in config(a_model(tuning=OFF))


def test_a_draft_brings_its_revision_and_quantization() -> None:
    """They are the draft's own, not the target's."""
    draft = {"source": "hf://x/head", "revision": "abc", "quantization": "fp8"}
    found = config(a_model(speculation={"method": "eagle3", "draft": draft}, tuning=OFF))

    assert found == {
        "method": "eagle3",
        "model": "x/head",
        "revision": "abc",
        "quantization": "fp8",
        "num_speculative_tokens": 7,
    }


def test_plain_decoding_has_no_speculative_config() -> None:
    """Its price is paid even at length 0."""
    assert "--speculative-config" not in arguments(a_model(speculation={"method": "none"}))


def test_arguments_of_the_user_come_last_and_in_their_order() -> None:
    """vLLM takes the last of two, and a value belongs to the flag before it."""
    listed = arguments(a_model(runtime={"args": ["--seed", "7", "--enforce-eager"]}))

    assert listed[-3:] == ["--seed", "7", "--enforce-eager"]


def test_the_model_is_split_over_all_gpus() -> None:
    """A silently dropped parallelism leaves GPUs idle."""
    listed = arguments(
        a_model(
            accelerator={"products": ["MI300X"], "count": 8},
            parallelism={"pipeline": 2, "expert": True},
        )
    )

    assert following(listed, "--tensor-parallel-size") == "4"
    assert following(listed, "--pipeline-parallel-size") == "2"
    assert "--enable-expert-parallel" in listed


def test_what_the_user_leaves_open_is_left_to_vllm() -> None:
    """The checkpoint knows its own numeric type, length and quantization."""
    listed = arguments(a_model())

    assert not {"--dtype", "--max-model-len", "--quantization", "--revision"} & set(listed)


def test_every_served_name_is_told() -> None:
    """Clients ask for the model by these names."""
    listed = arguments(a_model(model={"servedNames": ["main", "alias"]}))
    first = listed.index("--served-model-name")

    assert listed[first + 1 : first + 4] == ["main", "alias", "--port"]


def test_the_served_name_is_the_models_own_by_default() -> None:
    """The source may be a path that nobody wants to type."""
    assert following(arguments(a_model(name="llama")), "--served-model-name") == "llama"


def test_the_drain_is_told_to_vllm() -> None:
    """Without it running requests are cut off, or hang."""
    listed = arguments(a_model(runtime={"drainSeconds": 300}))

    assert following(listed, "--shutdown-timeout") == "300"

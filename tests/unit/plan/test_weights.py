"""Where vLLM is told to find weights, and what it must not read out of a path."""

from __future__ import annotations

import pytest

from speculative_operator.errors import ModelInvalid
from speculative_operator.plan import weights
from speculative_operator.plan.model import plan
from tests.unit.plan.builders import SETTINGS, a_model

MISREAD = ("eagle-", "eagle3", "dflash", "dspark", "mtp")


def test_a_hugging_face_source_is_its_repository() -> None:
    """vLLM downloads it by itself."""
    found = weights.target(a_model(model={"source": "hf://Qwen/Qwen3-8B", "revision": "abc"}).spec)

    assert (found.name, found.revision, found.mount) == ("Qwen/Qwen3-8B", "abc", None)


def test_a_claim_is_mounted_where_no_method_is_in_the_path() -> None:
    """vLLM would take `eagle3` in the draft's path for the method, whatever the config says."""
    draft = {"source": "pvc://models/heads/eagle3-mtp"}
    found = weights.draft(a_model(speculation={"method": "draft_model", "draft": draft}).spec)

    assert found is not None
    assert found.mount == weights.ClaimMount("models", "heads/eagle3-mtp", found.name)
    assert not any(word in found.name for word in MISREAD)


def test_a_claim_without_a_path_is_mounted_whole() -> None:
    """One model may fill a volume."""
    mount = weights.target(a_model(model={"source": "pvc://llama"}).spec).mount

    assert mount == weights.ClaimMount("llama", None, weights.TARGET_PATH)


@pytest.mark.parametrize("method", ["draft_model", "mtp"])
@pytest.mark.parametrize("name", ["x/EAGLE-LLaMA", "x/llama-eagle3", "x/Qwen-DFlash", "x/DSpark-7"])
def test_a_draft_that_vllm_would_misread_is_refused(method: str, name: str) -> None:
    """It would run another method than the one that was asked for, without a word."""
    model = a_model(speculation={"method": method, "draft": {"source": f"hf://{name}"}})

    with pytest.raises(ModelInvalid, match=r"spec\.speculation\.draft\.source: vLLM takes"):
        plan(model, SETTINGS)


@pytest.mark.parametrize("method", ["eagle3", "eagle", "dflash"])
def test_a_method_that_vllm_keeps_may_have_any_name(method: str) -> None:
    """The neighbour: these are never replaced."""
    model = a_model(speculation={"method": method, "draft": {"source": "hf://x/llama-eagle3"}})

    assert plan(model, SETTINGS).facts.method == method


def test_a_target_that_vllm_would_misread_for_mtp_is_refused() -> None:
    """MTP without a draft reads the target's own path."""
    model = a_model(model={"source": "hf://x/V4-DSpark"}, speculation={"method": "mtp"})

    with pytest.raises(ModelInvalid, match=r"spec\.model\.source"):
        plan(model, SETTINGS)


@pytest.mark.parametrize(
    ("of_target", "of_draft", "secret"),
    [
        (None, None, None),
        ("a", None, "a"),
        (None, "b", "b"),
        ("a", "a", "a"),
    ],
)
def test_one_token_serves_target_and_draft(
    of_target: str | None, of_draft: str | None, secret: str | None
) -> None:
    """vLLM reads one variable."""
    model = a_model(
        model={"credentials": of_target},
        speculation={
            "method": "eagle3",
            "draft": {"source": "hf://x/head", "credentials": of_draft},
        },
    )

    assert weights.token_secret(model.spec) == secret


def test_two_tokens_are_refused_in_words() -> None:
    """One of them would never reach the download."""
    model = a_model(
        model={"credentials": "a"},
        speculation={"method": "eagle3", "draft": {"source": "hf://x/head", "credentials": "b"}},
    )

    with pytest.raises(ModelInvalid, match="Name one Secret whose token may read both"):
        plan(model, SETTINGS)

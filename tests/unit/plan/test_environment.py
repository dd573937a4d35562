"""Variables of the engine's container."""

from __future__ import annotations

from typing import Any

import pytest

from speculative_operator.api.reserved import RESERVED_VARIABLE_PREFIX, RESERVED_VARIABLES
from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan.environment import HOME, PLUGIN
from speculative_operator.plan.model import plan
from tests.unit.plan.builders import SETTINGS, a_model


def environment(model: SpeculativeModel) -> dict[str, Any]:
    listed = plan(model, SETTINGS).environment
    found = {variable["name"]: variable for variable in listed}
    assert len(found) == len(listed), "a variable is listed twice"
    return found


def test_a_user_without_a_passwd_entry_has_a_name_and_a_home() -> None:
    """torch dies with `getpwuid(): uid not found` without them."""
    found = environment(a_model())

    assert {found[name]["value"] for name in ("USER", "LOGNAME")} == {"engine"}
    assert found["HOME"]["value"] == HOME


def test_every_cache_is_below_home() -> None:
    """HOME is a writable volume; the image's own folders are not writable for any UID."""
    found = environment(a_model())
    caches = ("XDG_CACHE_HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR")

    assert all(found[name]["value"].startswith(f"{HOME}/") for name in caches)


def test_a_user_may_move_a_cache() -> None:
    """A shared volume for downloads is common, and a variable must not be listed twice."""
    moved = {"name": "HF_HOME", "value": "/models/hf"}

    assert environment(a_model(runtime={"env": [moved]}))["HF_HOME"] == moved


def test_the_variables_of_the_plugin_are_reserved() -> None:
    """The CRD refuses them in `spec.runtime.env`, so nothing can replace them here."""
    assert all(
        name in RESERVED_VARIABLES or name.startswith(RESERVED_VARIABLE_PREFIX) for name in PLUGIN
    )


def test_the_token_comes_from_the_users_secret() -> None:
    """The operator itself reads no Secret."""
    found = environment(a_model(model={"credentials": "hugging-face"}))

    assert found["HF_TOKEN"]["valueFrom"] == {
        "secretKeyRef": {"name": "hugging-face", "key": "HF_TOKEN"}
    }


def test_a_second_token_is_refused() -> None:
    """One would silently win over the other."""
    token = {"name": "HF_TOKEN", "value": "hf_x"}

    with pytest.raises(ModelInvalid, match="Leave out one of the two"):
        plan(a_model(model={"credentials": "a"}, runtime={"env": [token]}), SETTINGS)


def test_a_token_of_the_users_own_is_accepted_without_credentials() -> None:
    """The neighbour of the refusal."""
    token = {"name": "HF_TOKEN", "value": "hf_x"}

    assert environment(a_model(runtime={"env": [token]}))["HF_TOKEN"] == token


@pytest.mark.parametrize("product", ["MI350X", "MI355X"])
def test_vllm_does_not_choose_by_itself_what_faults_on_gfx950(product: str) -> None:
    """With AITER on it would take ROCM_AITER_MLA for every model with latent attention."""
    found = environment(a_model(accelerator={"products": ["MI300X", product]}))

    assert found["VLLM_ROCM_USE_AITER_MLA"]["value"] == "0"
    assert "VLLM_ROCM_USE_AITER_MLA" not in environment(a_model())


def test_a_user_with_a_sound_kernel_may_switch_it_on() -> None:
    """A later AITER may have mended it, which nobody but the user knows."""
    chosen = {"name": "VLLM_ROCM_USE_AITER_MLA", "value": "1"}
    model = a_model(accelerator={"products": ["MI355X"]}, runtime={"env": [chosen]})

    assert environment(model)["VLLM_ROCM_USE_AITER_MLA"] == chosen

"""The engine's environment: caches, a user without a passwd entry, the plugin, the token.

An image of vLLM has no passwd entry for an arbitrary UID, and torch dies without a user's name; so
the names come as variables. All caches lie below HOME, on a writable volume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from speculative_operator.api.names import PORT_SPECULATION_NUMBER
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.errors import ModelInvalid
from speculative_operator.plan import weights
from speculative_operator.plan.products import ACCELERATORS

HOME = "/home/engine"
PLUGIN_PATH = "/opt/speculation"
SCHEDULE_FOLDER = "/etc/speculation"
SCHEDULE_KEY = "schedule.json"
TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable

CACHES: Mapping[str, str] = {
    "HOME": HOME,
    "USER": "engine",
    "LOGNAME": "engine",
    "XDG_CACHE_HOME": f"{HOME}/.cache",
    "HF_HOME": f"{HOME}/.cache/huggingface",
    "VLLM_CACHE_ROOT": f"{HOME}/.cache/vllm",
    "TORCHINDUCTOR_CACHE_DIR": f"{HOME}/.cache/torchinductor",
    "TRITON_CACHE_DIR": f"{HOME}/.cache/triton",
}
"""Where things are written; a user may move them.

AITER is not told a folder: by itself it copies its prebuilt kernels to `~/.aiter`, while
`AITER_JIT_DIR` makes it look past them and compile all anew.
"""

PLUGIN: Mapping[str, str] = {
    "PYTHONPATH": PLUGIN_PATH,
    "SPECULATION_SCHEDULE": f"{SCHEDULE_FOLDER}/{SCHEDULE_KEY}",
    "SPECULATION_PORT": str(PORT_SPECULATION_NUMBER),
}
"""How vLLM finds the plugin and the plugin its file; the CRD refuses them (`api.reserved`)."""

Variable = Mapping[str, Any]
"""A variable as a container lists it."""


def environment(spec: SpeculativeModelSpec) -> tuple[Variable, ...]:
    """All variables, the operator's first. A user's value replaces one of the caches."""
    listed = [
        variable.model_dump(mode="json", by_alias=True, exclude_none=True)
        for variable in spec.runtime.env
    ]
    own = {variable["name"]: variable for variable in _own(spec)}
    for variable in listed:
        _refuse(spec, variable, own)
    taken = {variable["name"] for variable in listed}
    return (*(own[name] for name in own if name not in taken), *listed)


def _own(spec: SpeculativeModelSpec) -> Iterator[Variable]:
    for name, value in {**CACHES, **PLUGIN}.items():
        yield {"name": name, "value": value}
    secret = weights.token_secret(spec)
    if secret is not None:
        yield {"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": secret, "key": TOKEN}}}


def _refuse(spec: SpeculativeModelSpec, variable: Variable, own: Mapping[str, Variable]) -> None:
    name = variable["name"]
    if name == TOKEN and name in own:
        raise ModelInvalid(
            f"spec.runtime.env: {TOKEN} comes from the Secret in credentials already. "
            f"Leave out one of the two."
        )
    if name == "VLLM_ROCM_USE_AITER" and str(variable.get("value")).lower() in {"1", "true"}:
        without = [p.value for p in spec.accelerator.products if not ACCELERATORS[p].has_aiter]
        if without:
            raise ModelInvalid(
                f"spec.runtime.env: VLLM_ROCM_USE_AITER=1 needs gfx942 or gfx950, which "
                f"{', '.join(without)} is not. Set it to 0, or take it out of "
                f"spec.accelerator.products."
            )

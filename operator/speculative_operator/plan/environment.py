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
from speculative_operator.plan.kernels import safe_choices

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
    """All variables, the operator's first. A user's value replaces any but the plugin's.

    Raises ModelInvalid for a second token.
    """
    own = {variable["name"]: variable for variable in _own(spec)}
    listed = {
        variable.name: variable.model_dump(mode="json", by_alias=True, exclude_none=True)
        for variable in spec.runtime.env
    }
    if TOKEN in own and TOKEN in listed:
        raise ModelInvalid(
            f"spec.runtime.env: {TOKEN} comes from the Secret in credentials already. "
            f"Leave out one of the two."
        )
    return (*(own[name] for name in own if name not in listed), *listed.values())


def _own(spec: SpeculativeModelSpec) -> Iterator[Variable]:
    for name, value in {**CACHES, **PLUGIN, **safe_choices(spec)}.items():
        yield {"name": name, "value": value}
    secret = weights.token_secret(spec)
    if secret is not None:
        yield {"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": secret, "key": TOKEN}}}

"""Flags and variables of the engine that only the operator sets, and what to write instead.

vLLM's parser reads `_` as `-`, takes `--flag=value`, `--flag.key value` and every unambiguous
beginning of a flag, so a flag is compared by its name alone, and what is only the beginning of a
reserved one is refused too.
"""

from __future__ import annotations

import json
from typing import Final

from speculative_operator.api.base import Rule, Why

SPECULATION_ADVICE: Final = "speculation is set by the operator: write spec.speculation instead"
CONFIG_ADVICE: Final = "a config file may hold any flag: write its flags into args instead"

_POD = "a replica is one pod: write spec.parallelism instead"
_SERVER = "the Service, the probes and the tuner reach the engine by plain HTTP on port 8000"

RESERVED_FLAGS: Final[tuple[tuple[str, str], ...]] = (
    ("--model", "write spec.model.source instead"),
    ("--revision", "write spec.model.revision instead"),
    ("--served-model-name", "write spec.model.servedNames instead"),
    ("--max-model-len", "write spec.model.maxModelLen instead"),
    ("--max-num-seqs", "write spec.model.maxNumSeqs instead"),
    ("--dtype", "write spec.model.dtype instead"),
    ("--quantization", "write spec.model.quantization instead"),
    ("-q", "write spec.model.quantization instead"),
    ("--trust-remote-code", "write spec.model.trustRemoteCode instead"),
    ("--no-trust-remote-code", "write spec.model.trustRemoteCode instead"),
    ("--hf-token", "name a Secret in spec.model.credentials instead"),
    ("--tensor-parallel-size", "write spec.parallelism.tensor instead"),
    ("-tp", "write spec.parallelism.tensor instead"),
    ("--pipeline-parallel-size", "write spec.parallelism.pipeline instead"),
    ("-pp", "write spec.parallelism.pipeline instead"),
    ("--data-parallel-size", "write spec.parallelism.data instead"),
    ("--data-parallel-size-local", "write spec.parallelism.data instead"),
    ("--data-parallel-rank", _POD),
    ("--data-parallel-start-rank", _POD),
    ("--data-parallel-address", _POD),
    ("--data-parallel-rpc-port", _POD),
    ("--data-parallel-backend", _POD),
    ("--data-parallel-external-lb", _POD),
    ("--data-parallel-hybrid-lb", _POD),
    ("--data-parallel-multi-port-external-lb", _POD),
    ("--data-parallel-supervisor-port", _POD),
    ("-dp", "write spec.parallelism.data instead"),
    ("-dpl", "write spec.parallelism.data instead"),
    ("-dpa", _POD),
    ("-dpb", _POD),
    ("-dpe", _POD),
    ("-dph", _POD),
    ("-dpm", _POD),
    ("-dpn", _POD),
    ("-dpp", _POD),
    ("-dpr", _POD),
    ("--enable-expert-parallel", "write spec.parallelism.expert instead"),
    ("--no-enable-expert-parallel", "write spec.parallelism.expert instead"),
    ("--disable-expert-parallel", "write spec.parallelism.expert instead"),
    ("-ep", "write spec.parallelism.expert instead"),
    ("--nnodes", _POD),
    ("-n", _POD),
    ("--node-rank", _POD),
    ("-r", _POD),
    ("--master-addr", _POD),
    ("--master-port", _POD),
    ("--headless", _SERVER),
    ("--host", _SERVER),
    ("--port", _SERVER),
    ("--uds", _SERVER),
    ("--grpc", _SERVER),
    ("--grpc-port", _SERVER),
    ("--ssl-keyfile", _SERVER),
    ("--ssl-certfile", _SERVER),
    ("--ssl-ca-certs", _SERVER),
    ("--ssl-cert-reqs", _SERVER),
    ("--ssl-ciphers", _SERVER),
    ("--enable-ssl-refresh", _SERVER),
    ("--shutdown-timeout", "write spec.runtime.drainSeconds instead"),
    ("--disable-log-stats", "the operator reads these counters"),
    ("--per-request-spec-decode-metrics", "the engine refuses it while speculation is off"),
)
"""Flags with their other spellings; where one begins with another, the shorter one stands first."""

RESERVED_VARIABLES: Final[tuple[str, ...]] = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VLLM_PLUGINS",
    "VLLM_USE_RUST_FRONTEND",
)
RESERVED_VARIABLE_PREFIX: Final = "SPECULATION_"
VARIABLE_ADVICE: Final = (
    "the operator's plugin inside the engine needs it: leave it out, or build what it should bring "
    "into an image and name that in spec.runtime.image"
)

_ONE_LETTER = "-[nqr]"
"""Flags of one letter; their value may follow without a space."""
_FLAG_NAME = rf"^({_ONE_LETTER}|--?[A-Za-z][A-Za-z0-9_-]*)"


_FLAGS = f"self.map(argument, argument.find('{_FLAG_NAME}').replace('_', '-'))"
_SPECULATIVE = (
    f"{_FLAGS}.filter(flag, "
    "(flag.startsWith('--spec') && !flag.startsWith('--speci')) || flag in ['-s', '-sc'])"
)
_ADVICE = json.dumps([f"{flag}: {advice}" for flag, advice in RESERVED_FLAGS])
_RESERVED = (
    f"{_FLAGS}.filter(flag, flag != '' && {_ADVICE}.exists(advice, advice.startsWith(flag)))"
)
_VARIABLES = (
    f"self.filter(variable, variable.name in {json.dumps(RESERVED_VARIABLES)} || "
    f"variable.name.startsWith('{RESERVED_VARIABLE_PREFIX}'))"
)

ARGUMENT_RULES: Final = (
    Rule(
        f"{_SPECULATIVE}.size() == 0",
        f"%s: {SPECULATION_ADVICE}",
        (f"{_SPECULATIVE}[0]",),
        why=Why.FORBIDDEN,
    ),
    Rule(
        f"!('--config' in {_FLAGS})",
        f"--config: {CONFIG_ADVICE}",
        why=Why.FORBIDDEN,
    ),
    Rule(
        f"{_RESERVED}.size() == 0",
        "the operator's own flag %s",
        (f"[{_RESERVED}[0]].map(flag, {_ADVICE}.filter(advice, advice.startsWith(flag))[0])[0]",),
        why=Why.FORBIDDEN,
    ),
)
VARIABLE_RULES: Final = (
    Rule(
        f"{_VARIABLES}.size() == 0",
        f"%s: {VARIABLE_ADVICE}",
        (f"{_VARIABLES}[0].name",),
        why=Why.FORBIDDEN,
    ),
)

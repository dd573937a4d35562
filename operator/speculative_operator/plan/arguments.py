"""The argument list of `vllm serve`, without a shell in between.

The speculative config is one item holding one JSON: a chart or shell cannot break it, and vLLM
would not merge it with the dotted form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from speculative_operator.api import defaults
from speculative_operator.api.model import Dtype
from speculative_operator.api.names import PORT_HTTP_NUMBER
from speculative_operator.api.resource import SpeculativeModel, SpeculativeModelSpec
from speculative_operator.plan import weights
from speculative_operator.plan.revision import canonical
from speculative_operator.tuning.schedule import Table


def arguments(model: SpeculativeModel, config: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What follows `vllm serve`: the operator's own flags, then `spec.runtime.args` as written.

    The CRD refuses flags of the operator's among the user's (`api.reserved`).
    """
    return (
        weights.target(model.spec).name,
        *_own_flags(model),
        *(() if config is None else ("--speculative-config", canonical(config))),
        *model.spec.runtime.args,
    )


def speculative_config(spec: SpeculativeModelSpec, table: Table | None) -> Mapping[str, Any]:
    """vLLM's `--speculative-config`. `table` is the start schedule, or None for a fixed length."""
    weights.refuse_misread_method(spec)
    speculation = spec.speculation
    config: dict[str, Any] = {
        "method": speculation.method.value,
        "num_speculative_tokens": speculation.proposal_length.capacity,
        **speculation.options.model_dump(mode="json", exclude_none=True),
    }
    draft = weights.draft(spec)
    if draft is not None:
        config["model"] = draft.name
        if draft.revision is not None:
            config["revision"] = draft.revision
    if speculation.draft is not None and speculation.draft.quantization is not None:
        config["quantization"] = speculation.draft.quantization
    if table is not None:
        config["num_speculative_tokens_per_batch_size"] = [list(row) for row in table]
    return config


def _own_flags(model: SpeculativeModel) -> Iterator[str]:
    spec, target = model.spec, weights.target(model.spec)
    if target.revision is not None:
        yield from ("--revision", target.revision)
    yield from ("--served-model-name", *defaults.served_names(model))
    yield from ("--port", str(PORT_HTTP_NUMBER))
    yield from ("--max-num-seqs", str(spec.model.max_num_seqs))
    if spec.model.max_model_len is not None:
        yield from ("--max-model-len", str(spec.model.max_model_len))
    if spec.model.dtype is not Dtype.AUTO:
        yield from ("--dtype", spec.model.dtype.value)
    if spec.model.quantization is not None:
        yield from ("--quantization", spec.model.quantization)
    if spec.model.trust_remote_code:
        yield "--trust-remote-code"
    yield from ("--tensor-parallel-size", str(defaults.tensor_size(spec)))
    if spec.parallelism.pipeline > 1:
        yield from ("--pipeline-parallel-size", str(spec.parallelism.pipeline))
    if spec.parallelism.data > 1:
        yield from ("--data-parallel-size", str(spec.parallelism.data))
    if spec.parallelism.expert:
        yield "--enable-expert-parallel"
    yield from ("--shutdown-timeout", str(spec.runtime.drain_seconds))

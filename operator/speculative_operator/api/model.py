"""`spec.model` and drafts: which weights are served, and from where."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from speculative_operator.api.base import MOST_REQUESTS, ApiModel, ObjectName, Rule, Why, rules
from speculative_operator.api.quantities import Quantity

HUGGING_FACE = "hf://"
VOLUME = "pvc://"

_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
_CLAIM = "[a-z0-9]([-a-z0-9.]*[a-z0-9])?"

SOURCE_RULES = rules(
    Rule(
        f"self.startsWith('{HUGGING_FACE}') || self.startsWith('{VOLUME}')",
        "write hf://org/name for Hugging Face or pvc://claim/path for a volume "
        "(s3:// and oci:// do not work yet: copy the weights to a volume)",
    ),
    Rule(
        f"!self.startsWith('{HUGGING_FACE}') || self.matches('^hf://{_PART}/{_PART}$')",
        "a Hugging Face source is hf://org/name, for example hf://Qwen/Qwen3-8B; "
        "a branch or tag goes into revision",
    ),
    Rule(
        f"!self.startsWith('{VOLUME}') || self.matches('^pvc://{_CLAIM}(/{_PART})*$')",
        "a volume source is pvc://claim/path, for example pvc://models/qwen3-8b; "
        "no part of the path is empty or starts with a dot",
    ),
)

Source = Annotated[str, Field(min_length=1, max_length=512, json_schema_extra=SOURCE_RULES)]
"""Where weights come from: `hf://org/name` or `pvc://claim/path`."""

Revision = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_./-]+$")]
Quantization = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-z0-9_-]+$")]
ServedName = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z0-9_./:-]+$")]
ContextLength = Annotated[int, Field(ge=16, le=10_000_000)]
"""Tokens of one request, prompt and answer together."""


class Dtype(StrEnum):
    """vLLM's `--dtype`."""

    AUTO = "auto"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class Weights(ApiModel):
    """One set of weights."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                f"!self.source.startsWith('{VOLUME}') || !has(self.revision)",
                "revision is for hf:// sources; a volume holds one version, so leave it out and "
                "write the version into the path",
                field=".revision",
                why=Why.FORBIDDEN,
            ),
            Rule(
                f"!self.source.startsWith('{VOLUME}') || !has(self.credentials)",
                "credentials are for hf:// sources; a volume needs none, so leave them out",
                field=".credentials",
                why=Why.FORBIDDEN,
            ),
        )
    )

    source: Source = Field(
        description="hf://org/name for Hugging Face, or pvc://claim/path for a volume."
    )
    revision: Revision | None = Field(
        default=None, description="Branch, tag or commit on Hugging Face; main by default."
    )
    credentials: ObjectName | None = Field(
        default=None,
        description="Secret in the same namespace whose key HF_TOKEN is given to the engine. "
        "The operator itself reads no Secret.",
    )
    quantization: Quantization | None = Field(
        default=None, description="vLLM's quantization method; by default the checkpoint's own."
    )
    weights_size: Quantity | None = Field(
        default=None,
        description="Size of the weights, such as 140Gi, where it is known: what cannot fit into "
        "the GPUs' memory is then refused before a pod is started. Live.",
    )


class ModelSpec(Weights):
    """The target model: it alone decides the output."""

    served_names: tuple[ServedName, ...] = Field(
        default=(),
        max_length=8,
        description="Names that requests may use; by default the name of this resource.",
        json_schema_extra=rules(
            Rule(
                "self.all(name, self.exists_one(other, other == name))",
                "a name is listed twice; list each served name once",
            )
        ),
    )
    max_model_len: ContextLength | None = Field(
        default=None, description="Longest context in tokens; by default the checkpoint's own."
    )
    max_num_seqs: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] = Field(
        default=256, description="Most requests decoded in one step; always passed to vLLM."
    )
    kv_cache_per_token: Quantity | None = Field(
        default=None,
        description="KV cache that a token takes on each GPU, such as 18Ki: what vLLM logs as "
        "available KV cache memory over its size in tokens. Checked as weightsSize is. Live.",
    )
    dtype: Dtype = Field(default=Dtype.AUTO, description="Numeric type of the weights.")
    trust_remote_code: bool = Field(
        default=False, description="Run Python code that the checkpoint brings along."
    )

"""`spec.speculation.options`: vLLM's own options of a method, by vLLM's names in camelCase."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from speculative_operator.api.base import MOST_GPUS, ApiModel, Rule, rules
from speculative_operator.api.model import ContextLength


class DraftSampleMethod(StrEnum):
    """How the draft picks its tokens."""

    GREEDY = "greedy"
    PROBABILISTIC = "probabilistic"


class RejectionSampleMethod(StrEnum):
    """How proposals are checked. vLLM's lossy ones are left out: the target decides the output."""

    STANDARD = "standard"
    BLOCK = "block"


MatchLength = Annotated[int, Field(ge=1, le=64)]
"""Tokens of the prompt that must repeat before n-gram decoding proposes what followed them."""

BackendName = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_]+$")]


class MethodOptions(ApiModel):
    """Absent options are left to vLLM. Those that the method does not know are refused."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.promptLookupMin) || !has(self.promptLookupMax) || "
                "self.promptLookupMin <= self.promptLookupMax",
                "promptLookupMin is above promptLookupMax; write the smaller number as "
                "promptLookupMin",
                field=".promptLookupMin",
            ),
            Rule(
                "!has(self.useHeterogeneousVocab) || !self.useHeterogeneousVocab || "
                "!has(self.draftSampleMethod) || self.draftSampleMethod == 'greedy'",
                "useHeterogeneousVocab works with draftSampleMethod greedy only: write greedy or "
                "leave it out",
                field=".draftSampleMethod",
            ),
            Rule(
                "!has(self.attentionBackend) || self.attentionBackend.upperAscii() != 'FLASH_ATTN'",
                "FLASH_ATTN does not work for a draft on ROCm: write TRITON_ATTN or ROCM_ATTN",
                field=".attentionBackend",
            ),
        )
    )

    prompt_lookup_min: MatchLength | None = Field(
        default=None, description="ngram: shortest match, in tokens; 5 by default."
    )
    prompt_lookup_max: MatchLength | None = Field(
        default=None, description="ngram: longest match, in tokens; 5 by default."
    )
    suffix_decoding_max_tree_depth: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None, description="suffix: longest match and proposal together, in tokens."
    )
    suffix_decoding_max_cached_requests: Annotated[int, Field(ge=0, le=10_000_000)] | None = Field(
        default=None, description="suffix: answers that are remembered; 0 remembers none."
    )
    suffix_decoding_max_spec_factor: Annotated[float, Field(ge=0, le=16)] | None = Field(
        default=None, description="suffix: proposed tokens for each token of the match."
    )
    suffix_decoding_min_token_prob: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="suffix: least estimated probability of a proposed token."
    )
    draft_tensor_parallel_size: Annotated[int, Field(ge=1, le=MOST_GPUS)] | None = Field(
        default=None, description="GPUs that the draft is split over: 1, or the target's number."
    )
    max_model_len: ContextLength | None = Field(
        default=None, description="Longest context of the draft, in tokens."
    )
    moe_backend: BackendName | None = Field(
        default=None, description="The draft's kernel for mixture-of-experts layers."
    )
    attention_backend: BackendName | None = Field(
        default=None, description="The draft's attention backend."
    )
    kv_cache_dtype: BackendName | None = Field(
        default=None, description="Numeric type of the draft's KV cache."
    )
    draft_sample_method: DraftSampleMethod | None = Field(
        default=None, description="How the draft picks its tokens."
    )
    rejection_sample_method: RejectionSampleMethod | None = Field(
        default=None, description="How proposals are checked; both ways keep the target's output."
    )
    parallel_drafting: bool | None = Field(
        default=None,
        description="Propose all tokens in one pass; the draft must be trained for it.",
    )
    use_heterogeneous_vocab: bool | None = Field(
        default=None, description="draft_model: let draft and target have different vocabularies."
    )
    enable_adaptive_verification: bool | None = Field(
        default=None,
        description="dspark: check fewer tokens where the draft is unsure. Needs full graphs.",
    )

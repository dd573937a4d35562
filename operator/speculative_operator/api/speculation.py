"""`spec.speculation`: how tokens are proposed, and how many at a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import ConfigDict, Field

from speculative_operator.api.base import ApiModel, Rule, Why, rules
from speculative_operator.api.model import Weights
from speculative_operator.api.options import MethodOptions
from speculative_operator.api.proposal import (
    BLOCK_CHOICES,
    DEFAULT_CAPACITY,
    SEQUENTIAL_CHOICES,
    ProposalLengths,
)


class Method(StrEnum):
    """What proposes draft tokens, by vLLM's names. Gemma 4 MTP is `mtp` with a draft."""

    MTP = "mtp"
    EAGLE3 = "eagle3"
    EAGLE = "eagle"
    DFLASH = "dflash"
    DSPARK = "dspark"
    DRAFT_MODEL = "draft_model"
    NGRAM = "ngram"
    SUFFIX = "suffix"
    NONE = "none"


DRAFT_REQUIRED = frozenset({Method.EAGLE, Method.EAGLE3, Method.DFLASH, Method.DRAFT_MODEL})
DRAFT_OPTIONAL = frozenset({Method.MTP, Method.DSPARK})
DRAFT_FORBIDDEN = frozenset(Method) - DRAFT_REQUIRED - DRAFT_OPTIONAL
BLOCK_DRAFTERS = frozenset({Method.DFLASH, Method.DSPARK})
"""They propose a whole block in one pass, so a longer proposal costs them little."""


def one_of(methods: Iterable[Method], method: str = "self.method") -> str:
    """CEL: whether `method` is one of these."""
    return f"({method} in {sorted(str(each) for each in methods)})"


def choices_in(speculation: str) -> tuple[str, str]:
    """CEL for capacity and choices of the SpeculationSpec that `speculation` names in CEL.

    The same answers as `api.defaults`, for every method but none.
    """
    capacity = f"{speculation}.?proposalLength.?capacity.orValue({DEFAULT_CAPACITY})"
    usual = (
        f"({one_of(BLOCK_DRAFTERS, f'{speculation}.method')} ? "
        f"{list(BLOCK_CHOICES)} : {list(SEQUENTIAL_CHOICES)})"
    )
    choices = (
        f"(has({speculation}.proposalLength) && has({speculation}.proposalLength.choices) ? "
        f"{speculation}.proposalLength.choices : "
        f"{usual}.filter(k, k < {capacity}) + [{capacity}])"
    )
    return capacity, choices


CAPACITY, CHOICES = choices_in("self")
IS_CHOICE = f"k == 0 || k in {CHOICES}"
ROW_LENGTHS = "self.proposalLength.perBatch.map(row, row.proposalLength)"


SPECULATION_RULES = (
    Rule(
        f"!{one_of(DRAFT_REQUIRED)} || has(self.draft)",
        "method %s needs a draft: write draft.source, for example hf://org/name",
        ("self.method",),
        field=".draft",
        why=Why.REQUIRED,
    ),
    Rule(
        f"!{one_of(DRAFT_FORBIDDEN)} || !has(self.draft)",
        "method %s has no draft model: leave draft out, or choose a method that has one",
        ("self.method",),
        field=".draft",
        why=Why.FORBIDDEN,
    ),
    Rule(
        "self.method != 'none' || !has(self.proposalLength)",
        "method none proposes nothing: leave proposalLength out, or choose a method",
        field=".proposalLength",
        why=Why.FORBIDDEN,
    ),
    Rule(
        "self.method != 'suffix' || !has(self.proposalLength) || !(has(self.proposalLength.initial)"
        " || has(self.proposalLength.choices) || has(self.proposalLength.perBatch))",
        "suffix decoding chooses its length itself and cannot be told while it serves: write "
        "capacity only",
        field=".proposalLength",
        why=Why.FORBIDDEN,
    ),
    Rule(
        "!has(self.proposalLength) || !has(self.proposalLength.initial) || "
        f"self.proposalLength.initial < 1 || self.proposalLength.initial > {CAPACITY} || "
        f"self.proposalLength.initial in {CHOICES}",
        "initial %d is not among the choices %s, and vLLM prepares graphs for these only: write "
        "one of them, or add it to choices",
        ("self.proposalLength.initial", CHOICES),
        field=".proposalLength.initial",
    ),
    Rule(
        "!has(self.proposalLength) || !has(self.proposalLength.perBatch) || "
        f"{ROW_LENGTHS}.all(k, k > {CAPACITY} || {IS_CHOICE})",
        "a row's proposalLength %d is not among the choices %s, and vLLM prepares graphs for "
        "these only: write 0 or one of them, or add it to choices",
        (
            f"{ROW_LENGTHS}.filter(k, !({IS_CHOICE}))[0]",
            CHOICES,
        ),
        field=".proposalLength.perBatch",
    ),
)


DRAFTING = DRAFT_REQUIRED | DRAFT_OPTIONAL
"""Methods where a network proposes: they have a draft's options."""

OPTION_METHODS: Mapping[str, frozenset[Method]] = {
    "promptLookupMin": frozenset({Method.NGRAM}),
    "promptLookupMax": frozenset({Method.NGRAM}),
    "suffixDecodingMaxTreeDepth": frozenset({Method.SUFFIX}),
    "suffixDecodingMaxCachedRequests": frozenset({Method.SUFFIX}),
    "suffixDecodingMaxSpecFactor": frozenset({Method.SUFFIX}),
    "suffixDecodingMinTokenProb": frozenset({Method.SUFFIX}),
    "draftTensorParallelSize": DRAFTING,
    "maxModelLen": DRAFTING,
    "moeBackend": DRAFTING,
    "attentionBackend": DRAFTING,
    "kvCacheDtype": DRAFTING,
    "draftSampleMethod": DRAFTING,
    "rejectionSampleMethod": frozenset(Method) - {Method.NONE},
    "parallelDrafting": frozenset({Method.EAGLE, Method.EAGLE3, Method.DRAFT_MODEL}),
    "useHeterogeneousVocab": frozenset({Method.DRAFT_MODEL}),
    "enableAdaptiveVerification": frozenset({Method.DSPARK}),
}
"""Which methods know an option; vLLM ignores most of the others without a word."""


def option_rule(option: str, methods: frozenset[Method]) -> Rule:
    """Refuses an option that the method does not know."""
    known = ", ".join(method for method in Method if method in methods)
    return Rule(
        f"!has(self.options) || !has(self.options.{option}) || {one_of(methods)}",
        f"{option} is an option of {known}, not of %s: leave it out",
        ("self.method",),
        field=f".options.{option}",
        why=Why.FORBIDDEN,
    )


OPTION_RULES = tuple(option_rule(option, methods) for option, methods in OPTION_METHODS.items())

NON_CAUSAL_RULE = Rule(
    "!has(self.options) || !has(self.options.attentionBackend) || "
    "self.options.attentionBackend.upperAscii() != 'ROCM_AITER_UNIFIED_ATTN' || "
    f"!{one_of(BLOCK_DRAFTERS)}",
    "a block drafter attends in both directions, which ROCM_AITER_UNIFIED_ATTN cannot: write "
    "TRITON_ATTN, ROCM_ATTN or ROCM_AITER_FA",
    field=".options.attentionBackend",
)


class SpeculationSpec(ApiModel):
    """How tokens are proposed. The target model's output is never changed by it."""

    model_config = ConfigDict(
        json_schema_extra=rules(*SPECULATION_RULES, *OPTION_RULES, NON_CAUSAL_RULE)
    )

    method: Method = Field(
        description="What proposes draft tokens, by vLLM's names. Gemma 4 MTP is mtp with its "
        "assistant checkpoint as draft; none is plain decoding."
    )
    draft: Weights | None = Field(
        default=None,
        description="Weights of the draft: required for eagle, eagle3, dflash and draft_model, "
        "optional for mtp and dspark, forbidden for the rest.",
    )
    proposal_length: ProposalLengths = Field(
        default=ProposalLengths(),
        description="Which proposal lengths the engine is started for, starts with and may use.",
    )
    options: MethodOptions = Field(
        default=MethodOptions(),
        description="vLLM's own options of the method; absent ones are left to vLLM.",
    )

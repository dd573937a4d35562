"""Methods, their drafts and their options."""

from __future__ import annotations

from tests.cluster.refusals.refusal import (
    DRAFT,
    LENGTHS,
    METHOD,
    NO_DRAFT,
    OPTIONS,
    Change,
    Refusal,
)


def option(name: str, value: object, method: str, other: str) -> Refusal:
    """An option that `method` knows and `other` does not."""
    draftless = {"ngram", "suffix", "none"}

    def change(chosen: str) -> Change:
        drop = NO_DRAFT if chosen in draftless else {}
        return {METHOD: chosen, **drop, f"{OPTIONS}.{name}": value}

    words = rf"spec.speculation.options.{name}: Forbidden: {name} is an option of .*{method}.*, "
    return Refusal(name, change(other), f"{words}not of {other}: leave it out", change(method))


METHOD_REFUSALS = (
    *(
        Refusal(
            f"{method} without a draft",
            {METHOD: method, **NO_DRAFT},
            f"spec.speculation.draft: Required value: method {method} needs a draft: write "
            "draft.source, for example hf://org/name",
            {METHOD: method},
        )
        for method in ("eagle", "eagle3", "dflash", "draft_model")
    ),
    *(
        Refusal(
            f"{method} with a draft",
            {METHOD: method},
            f"spec.speculation.draft: Forbidden: method {method} has no draft model: leave draft "
            "out, or choose a method that has one",
            {METHOD: method, **NO_DRAFT},
        )
        for method in ("ngram", "suffix", "none")
    ),
    Refusal(
        "an unknown method",
        {METHOD: "medusa"},
        'spec.speculation.method: Unsupported value: "medusa": supported values: "mtp", "eagle3"',
        {METHOD: "mtp"},
    ),
    Refusal(
        "mtp as it is named in old versions",
        {METHOD: "deepseek_mtp"},
        'spec.speculation.method: Unsupported value: "deepseek_mtp"',
        {METHOD: "mtp", **NO_DRAFT},
    ),
    Refusal(
        "lengths for method none",
        {METHOD: "none", **NO_DRAFT, f"{LENGTHS}.capacity": 5},
        "spec.speculation.proposalLength: Forbidden: method none proposes nothing: leave "
        "proposalLength out, or choose a method",
        {METHOD: "none", **NO_DRAFT},
    ),
    Refusal(
        "bounds for method none",
        {METHOD: "none", **NO_DRAFT, "tuning.bounds": {"max": 3}},
        "spec.tuning.bounds: Forbidden: method none has no proposal length: leave bounds out",
        {METHOD: "none", **NO_DRAFT, "tuning.mode": "Off"},
    ),
    Refusal(
        "choices for suffix decoding",
        {METHOD: "suffix", **NO_DRAFT, f"{LENGTHS}.choices": [3, 7]},
        "spec.speculation.proposalLength: Forbidden: suffix decoding chooses its length itself and "
        "cannot be told while it serves: write capacity only",
        {METHOD: "suffix", **NO_DRAFT, f"{LENGTHS}.capacity": 16},
    ),
    Refusal(
        "bounds for suffix decoding",
        {METHOD: "suffix", **NO_DRAFT, "tuning.bounds": {"max": 3}},
        "spec.tuning.bounds: Forbidden: suffix decoding chooses its length itself and cannot be "
        "told while it serves: leave bounds out",
        {METHOD: "suffix", **NO_DRAFT},
    ),
    Refusal(
        "two tokens for one engine",
        {"model.credentials": "one", f"{DRAFT}.credentials": "two"},
        "spec.speculation.draft.credentials: .*one engine loads target and draft with one token: "
        "name the same Secret in both",
        {"model.credentials": "one", f"{DRAFT}.credentials": "one"},
    ),
)

OPTION_REFUSALS = (
    option("promptLookupMin", 2, "ngram", "eagle3"),
    option("promptLookupMax", 4, "ngram", "suffix"),
    option("suffixDecodingMaxTreeDepth", 24, "suffix", "ngram"),
    option("suffixDecodingMaxCachedRequests", 0, "suffix", "ngram"),
    option("suffixDecodingMaxSpecFactor", 1.5, "suffix", "ngram"),
    option("suffixDecodingMinTokenProb", 0.2, "suffix", "mtp"),
    option("draftTensorParallelSize", 1, "draft_model", "ngram"),
    option("maxModelLen", 4096, "eagle", "ngram"),
    option("moeBackend", "triton", "mtp", "suffix"),
    option("attentionBackend", "TRITON_ATTN", "dflash", "ngram"),
    option("kvCacheDtype", "fp8", "draft_model", "none"),
    option("draftSampleMethod", "probabilistic", "eagle3", "ngram"),
    option("rejectionSampleMethod", "block", "ngram", "none"),
    option("parallelDrafting", True, "draft_model", "dflash"),
    option("useHeterogeneousVocab", True, "draft_model", "eagle3"),
    option("enableAdaptiveVerification", True, "dspark", "dflash"),
    Refusal(
        "a lossy way to check proposals",
        {f"{OPTIONS}.rejectionSampleMethod": "fly"},
        'spec.speculation.options.rejectionSampleMethod: Unsupported value: "fly": supported '
        'values: "standard", "block"',
        {f"{OPTIONS}.rejectionSampleMethod": "block"},
    ),
    Refusal(
        "a shortest match above the longest",
        {METHOD: "ngram", **NO_DRAFT, OPTIONS: {"promptLookupMin": 5, "promptLookupMax": 2}},
        "promptLookupMin is above promptLookupMax; write the smaller number as promptLookupMin",
        {METHOD: "ngram", **NO_DRAFT, OPTIONS: {"promptLookupMin": 2, "promptLookupMax": 2}},
    ),
    Refusal(
        "probabilistic drafts over two vocabularies",
        {
            METHOD: "draft_model",
            OPTIONS: {"useHeterogeneousVocab": True, "draftSampleMethod": "probabilistic"},
        },
        "useHeterogeneousVocab works with draftSampleMethod greedy only: write greedy",
        {
            METHOD: "draft_model",
            OPTIONS: {"useHeterogeneousVocab": True, "draftSampleMethod": "greedy"},
        },
    ),
    Refusal(
        "FLASH_ATTN for a draft",
        {f"{OPTIONS}.attentionBackend": "flash_attn"},
        "FLASH_ATTN does not work for a draft on ROCm: write TRITON_ATTN or ROCM_ATTN",
        {f"{OPTIONS}.attentionBackend": "ROCM_ATTN"},
    ),
    Refusal(
        "a causal backend for a block drafter",
        {METHOD: "dflash", f"{OPTIONS}.attentionBackend": "ROCM_AITER_UNIFIED_ATTN"},
        "a block drafter attends in both directions, which ROCM_AITER_UNIFIED_ATTN cannot: write "
        "TRITON_ATTN, ROCM_ATTN or ROCM_AITER_FA",
        {METHOD: "eagle3", f"{OPTIONS}.attentionBackend": "ROCM_AITER_UNIFIED_ATTN"},
    ),
    Refusal(
        "a draft with a longer context than the model",
        {f"{OPTIONS}.maxModelLen": 8192, "model.maxModelLen": 4096},
        "the draft's maxModelLen 8192 is above the model's 4096: lower it or leave it out",
        {f"{OPTIONS}.maxModelLen": 4096, "model.maxModelLen": 4096},
    ),
    Refusal(
        "a draft on a number of GPUs of its own",
        {f"{OPTIONS}.draftTensorParallelSize": 2, "accelerator.count": 4},
        "spec.speculation.options.draftTensorParallelSize: .*the draft runs on 1 GPU or on as many "
        "as the target's tensor parallelism: write 1, or leave draftTensorParallelSize out",
        {f"{OPTIONS}.draftTensorParallelSize": 4, "accelerator.count": 4},
    ),
    Refusal(
        "adaptive verification without graphs",
        {
            METHOD: "dspark",
            f"{OPTIONS}.enableAdaptiveVerification": True,
            "runtime.args": ["--enforce-eager"],
        },
        "enableAdaptiveVerification needs full graphs on one pipeline stage and no LoRA",
        {METHOD: "dspark", "runtime.args": ["--enforce-eager"]},
    ),
    Refusal(
        "adaptive verification over a pipeline",
        {
            METHOD: "dspark",
            f"{OPTIONS}.enableAdaptiveVerification": True,
            "parallelism.pipeline": 2,
            "accelerator.count": 2,
        },
        "enableAdaptiveVerification needs full graphs on one pipeline stage and no LoRA: write "
        "parallelism.pipeline: 1 without --enforce-eager and --enable-lora, or leave it out",
        {METHOD: "dspark", f"{OPTIONS}.enableAdaptiveVerification": True, "accelerator.count": 2},
    ),
)

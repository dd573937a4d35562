"""Why an engine ended: texts of real ends, each with what it means and what to do about it.

Those of vLLM on the CPU were recorded from its runs; those that need a GPU are put together from
vLLM's source and from public reports of ROCm.
"""

from __future__ import annotations

import pytest

from speculative_operator.api.conditions import START_FAILURES, Reason
from speculative_operator.controller.seen.cause_classes import Part
from speculative_operator.controller.seen.causes import Ending, Speculation, cause_of
from tests.support.endings import ending

DRAFT_MODEL = Speculation({"method": "draft_model", "model": "/weights/draft"})
OPTIONS = Speculation(
    {
        "method": "dspark",
        "num_speculative_tokens": 7,
        "attention_backend": "TRITON_ATTN",
        "enable_adaptive_verification": True,
        "max_model_len": 4096,
    }
)
AGAIN = None


@pytest.mark.parametrize(
    ("name", "reason", "starts", "field"),
    [
        ("vocabulary", Reason.DRAFT_DOES_NOT_FIT, 1, "spec.speculation.draft.source"),
        ("hidden-size-of-dspark", Reason.DRAFT_DOES_NOT_FIT, 1, "spec.speculation.draft.source"),
        ("hidden-size", Reason.DRAFT_DOES_NOT_FIT, 1, "spec.speculation.draft.source"),
        ("draft-weights-missing", Reason.DRAFT_DOES_NOT_FIT, 3, "spec.speculation.draft.source"),
        ("mtp-length", Reason.CONFIGURATION_REFUSED, 1, "proposalLength.capacity"),
        ("draft-backend-unknown", Reason.KERNEL_FAULT, 1, "options.attentionBackend"),
        ("unknown-flag", Reason.CONFIGURATION_REFUSED, 1, "spec.runtime.args"),
        ("missing-folder", Reason.MODEL_UNAVAILABLE, 3, "spec.model.source"),
        ("missing-draft", Reason.MODEL_UNAVAILABLE, 3, "spec.speculation.draft.source"),
        ("no-repo", Reason.MODEL_UNAVAILABLE, 3, "spec.model.credentials"),
        ("gated", Reason.MODEL_UNAVAILABLE, 3, "spec.model.credentials"),
        ("hub-unreachable", Reason.MODEL_UNAVAILABLE, AGAIN, "HF_ENDPOINT"),
        ("kv-cache", Reason.OUT_OF_GPU_MEMORY, 1, "spec.model.maxModelLen"),
        ("kv-cache-too-small", Reason.OUT_OF_GPU_MEMORY, 1, "spec.model.maxModelLen"),
        ("hip-out-of-memory", Reason.OUT_OF_GPU_MEMORY, 3, "accelerator.count"),
        ("gpu-taken", Reason.OUT_OF_GPU_MEMORY, AGAIN, "--gpu-memory-utilization"),
        ("core-killed", Reason.OUT_OF_MEMORY, 3, "spec.runtime.resources.limits.memory"),
        ("no-attention-backend", Reason.KERNEL_FAULT, 1, "--attention-backend"),
        ("invalid-device-function", Reason.KERNEL_FAULT, 1, "spec.runtime.image"),
        ("memory-access-fault", Reason.KERNEL_FAULT, 3, "VLLM_ROCM_USE_AITER=0"),
        ("hsa-exception", Reason.KERNEL_FAULT, 3, "VLLM_ROCM_USE_AITER=0"),
        ("core-aborted", Reason.KERNEL_FAULT, 3, "VLLM_ROCM_USE_AITER=0"),
        ("no-gpu", Reason.DEVICE_FAULT, AGAIN, "device plugin"),
        ("unknown", Reason.CONTAINER_FAILED, AGAIN, "log"),
    ],
)
def test_a_text_means(name: str, reason: Reason, starts: int | None, field: str) -> None:
    """Its class, how many such starts are enough, and the field that mends it."""
    cause = cause_of(ending(name), DRAFT_MODEL)

    assert (cause.reason, cause.starts) == (reason, starts)
    assert field in cause.advice


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (Ending("OOMKilled", 137), Reason.OUT_OF_MEMORY),
        (Ending("Error", 139), Reason.KERNEL_FAULT),
        (Ending("Error", 135), Reason.OUT_OF_MEMORY),
        (Ending("UnexpectedAdmissionError", None, "Allocate failed"), Reason.DEVICE_FAULT),
        (Ending("Evicted", None, "The node was low on resource: memory."), Reason.DEVICE_FAULT),
        (Ending("Completed", 0), Reason.CONTAINER_FAILED),
        (Ending("Error", 137), Reason.CONTAINER_FAILED),
        (Ending("Error", 1, "OSError: Permission denied: '/dev/kfd'"), Reason.DEVICE_FAULT),
        (Ending("Error", 1, "KeyError: 'getpwuid(): uid not found: 1000'"),
         Reason.CONFIGURATION_REFUSED),
        (Ending("Error", 1, "OSError: No space left on device: '/dev/shm/nccl-x'"),
         Reason.OUT_OF_MEMORY),
        (Ending("Error", 1, "requests.exceptions.HTTPError: 503 Server Error"),
         Reason.MODEL_UNAVAILABLE),
    ],
)  # fmt: skip
def test_what_the_kubelet_says_counts_too(ended: Ending, reason: Reason) -> None:
    """A container without last words has a reason and an exit code; a startup probe's SIGKILL is
    137 as well, so that alone says nothing."""
    assert cause_of(ended, Speculation()).reason is reason


@pytest.mark.parametrize(
    "tail",
    [
        "WARNING 512 tokens a step, based on the speculative decoding settings.",
        "NCCL INFO using /dev/shm for 8 ranks",
        "INFO adaptive verification is off",
    ],
)
def test_the_end_of_a_log_may_speak_of_what_is_not_the_cause(tail: str) -> None:
    """Without a termination message the kubelet shows the last lines, whatever they are."""
    assert cause_of(Ending("Error", 1, tail), OPTIONS).reason is Reason.CONTAINER_FAILED


@pytest.mark.parametrize(
    ("name", "part", "option"),
    [
        ("adaptive-verification", Part.SPECULATION, "enable_adaptive_verification"),
        ("adaptive-without-graphs", Part.SPECULATION, "enable_adaptive_verification"),
        ("no-attention-backend", Part.SPECULATION, "attention_backend"),
        ("kv-cache-too-small", Part.EITHER, None),
        ("memory-access-fault", Part.EITHER, None),
        ("vocabulary", Part.SPECULATION, None),
        ("missing-folder", Part.TARGET, None),
        ("unknown-flag", Part.TARGET, None),
        ("gpu-taken", Part.TARGET, None),
    ],
)
def test_the_part_that_fails_is_found_and_the_option_where_it_is_named(
    name: str, part: Part, option: str | None
) -> None:
    """What is left out must be what fails: `max_model_len` in a text about the target's KV cache is
    not the draft's option of that name."""
    cause = cause_of(ending(name), OPTIONS)

    assert (cause.part, cause.option) == (part, option)


@pytest.mark.parametrize("name", ["vocabulary", "kv-cache", "memory-access-fault"])
def test_an_engine_without_speculation_cannot_be_helped_by_leaving_it_out(name: str) -> None:
    """Or the stand-in would stand in for itself."""
    assert cause_of(ending(name), Speculation()).part is Part.TARGET


def test_a_missing_draft_is_told_from_a_missing_target() -> None:
    """By the name in the text: only the draft can be done without."""
    assert cause_of(ending("missing-draft"), DRAFT_MODEL).part is Part.SPECULATION
    assert cause_of(ending("missing-folder"), DRAFT_MODEL).part is Part.TARGET


def test_weights_of_another_shape_are_the_draft_s_only_where_its_loader_says_so() -> None:
    """The same assertion comes from the target's loader."""
    target = Ending("Error", 1, ending("hidden-size").message.split("called by")[0])

    assert cause_of(target, DRAFT_MODEL).reason is Reason.CONFIGURATION_REFUSED
    assert cause_of(target, DRAFT_MODEL).part is Part.EITHER


def test_every_class_has_an_end_that_is_sorted_into_it() -> None:
    """A class that no text leads to would be dead."""
    names = ("vocabulary", "mtp-length", "gated", "kv-cache", "core-killed", "hsa-exception",
             "no-gpu", "unknown")  # fmt: skip

    assert {cause_of(ending(name), DRAFT_MODEL).reason for name in names} == set(START_FAILURES)

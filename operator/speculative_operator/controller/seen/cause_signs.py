"""The signs by which the classes of ends are told.

The texts are those of vLLM 0.32 and 0.33, PyTorch on ROCm, the Hugging Face hub, ROCm's runtime and
the kubelet.
"""

from __future__ import annotations

import re
from typing import Final

from speculative_operator.controller.seen.cause_classes import (
    DEVICE,
    DRAFT_CODE,
    FAULT,
    GPU_MEMORY,
    GPU_TAKEN,
    MISFIT,
    NO_BACKEND,
    NO_HUB,
    NO_MODEL,
    NO_ROOM,
    NO_USER,
    NOT_ALLOWED,
    OUT_OF_MEMORY,
    REFUSED,
    SHARED_MEMORY,
    SPECULATION_REFUSED,
    WEIGHTS,
    Cause,
)

DRAFT_FRAME: Final = (
    r"^(at|called by) vllm/(v1/(worker/gpu/)?spec_decode/|"
    r"model_executor/models/\w*(eagle|mtp|dflash|dspark))"
)
"""A frame of vLLM's code for drafts, as the plugin's termination message names it."""

SIGNS: Final[tuple[tuple[Cause, tuple[str, ...]], ...]] = (
    # Main memory. Signal 9 nobody sends but the kernel, when the memory ran out.
    (OUT_OF_MEMORY, (r"^OOMKilled", r"Failed core proc\(s\): \{[^}]*: -9\b")),
    (
        SHARED_MEMORY,
        (
            r"(No space|[Ee]rror|[Ff]ailed).*\bdev/shm\b",
            r"creating shared memory segment",
            r"Bus error",
            r"Failed core proc\(s\): \{[^}]*: -7\b",
            r"^Error exit code 135\b",
        ),
    ),
    (
        OUT_OF_MEMORY,
        (
            r"DefaultCPUAllocator: .*memory",
            r"Cannot allocate memory",
            r"\bMemoryError\b",
        ),
    ),
    # The GPU's memory.
    (GPU_TAKEN, (r"Free memory on device .* is less than",)),
    (
        NO_ROOM,
        (
            r"No available memory for the cache blocks",
            r"larger than the available KV cache memory",
        ),
    ),
    (
        GPU_MEMORY,
        (
            r"(HIP|CUDA|XPU) out of memory",
            r"\bOutOfMemoryError\b",
            r"hipErrorOutOfMemory",
            r"HIP error: out of memory",
        ),
    ),
    # Node and device.
    (
        NOT_ALLOWED,
        (
            r"(Permission denied|Operation not permitted).*/dev/(kfd|dri)",
            r"/dev/(kfd|dri)\b.*(Permission denied|Operation not permitted)",
        ),
    ),
    (
        DEVICE,
        (
            r"No HIP GPUs are available",
            r"no (ROCm|CUDA)-capable device",
            r"hipErrorNoDevice",
            r"hipErrorInvalidDevice\b",
            r"invalid device ordinal",
            r"Unable to open /dev/kfd",
            r"Failed to infer device type",
            r"\bECC\b",
            r"hipErrorECCNotCorrectable",
            r"GPU (reset|Hang|is lost)",
            r"HW Exception by GPU",
            r"HSA_STATUS_ERROR_OUT_OF_RESOURCES",
            r"(NCCL|RCCL) error: (unhandled|remote)",
            r"^(UnexpectedAdmissionError|Evicted|NodeShutdown|NodeAffinity|NodeLost)\b",
            r"^(Terminated|Preempting|OutOf[a-z]\S*)\b",
        ),
    ),
    # Kernels.
    (
        NO_BACKEND,
        (
            r"No valid attention backend found",
            r"attention backend .*(not valid|not supported|does not support)",
            r"is not valid for this configuration",
            r"(Unknown|Invalid) attention backend",
            r"HIP error: (invalid device function|no kernel image)",
            r"hipErrorNoBinaryForGpu",
        ),
    ),
    (
        FAULT,
        (
            r"Memory access fault by GPU",
            r"HSA_STATUS_ERROR_\w+",
            r"HIP error",
            r"an illegal memory access",
            r"Failed core proc\(s\): \{[^}]*: -(4|6|11)\b",
            r"^Error exit code (132|134|139)\b",
        ),
    ),
    # The hub, and what is not there.
    (
        NO_HUB,
        (
            r"couldn't connect to",
            r"Max retries exceeded",
            r"name resolution",
            r"Name or service not known",
            r"Connection(Error| refused| reset|Timeout)",
            r"Connect(Error|Timeout)",
            r"Read(Timeout| timed out)",
            r"LocalEntryNotFoundError",
            r"Too Many Requests",
            r"\b(429|5\d\d) (Client|Server) Error",
        ),
    ),
    (
        NO_MODEL,
        (
            r"Repository ?Not ?Found",
            r"Revision ?Not ?Found",
            r"[Gg]ated ?[Rr]epo",
            r"\b(401|403|404) Client Error",
            r"is not a valid (model|git) identifier",
            r"Can't load the configuration of",
            r"Repo id must be in the form",
            r"Invalid repository ID or local directory",
            r"does not appear to have (a file|files) named",
            r"Cannot find any model weights",
            r"No such file or directory: '/weights/",
            r"subPath",
        ),
    ),
    # Draft and target.
    (
        MISFIT,
        (
            r"same vocabulary size",
            r"(hidden_size|must) match the target",
            r"draft_vocab_size must",
        ),
    ),
    (
        WEIGHTS,
        (
            r"Tried to load weights of size",
            r"size mismatch for",
            r"shapes cannot be multiplied",
            r"Sizes of tensors must match",
            r"must match the existing size",
        ),
    ),
    # What vLLM refuses before it loads anything. In a log's end the same words may only warn.
    (
        SPECULATION_REFUSED,
        (
            r"validation errors? for SpeculativeConfig",
            r"[Ee]rror\b.*(speculative.config|num_speculative_tokens|[Ss]peculative decoding)",
            r"[Ee]rror\b.*([Aa]daptive verification|suffix decoding|prompt_lookup_m)",
        ),
    ),
    (NO_USER, (r"getpwuid\(\): uid not found",)),
    (
        REFUSED,
        (
            r"^Error exit code 2\b",
            r"unrecognized arguments",
            r"validation errors? for \w+",
            r"User-specified max_model_len",
            r"[Ee]rror\b.*(must be|is not) divisible",
            r"are not supported for now",
        ),
    ),
    # Whatever else fails in vLLM's code for drafts.
    (DRAFT_CODE, (DRAFT_FRAME,)),
)
"""Causes with their signs, in the order in which they are looked for; `^` starts a line."""

COMPILED: Final = tuple((cause, re.compile("|".join(s), re.MULTILINE)) for cause, s in SIGNS)

"""The ends of engines by class, each with its signs and with what to do about it.

The texts are those of vLLM 0.32 and 0.33, PyTorch on ROCm, the Hugging Face hub, ROCm's runtime and
the kubelet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from speculative_operator.api.conditions import Reason


class Part(StrEnum):
    """Which part of the engine fails: without speculation it would run, or not, or who knows."""

    SPECULATION = "speculation"
    TARGET = "target"
    EITHER = "either"


@dataclass(frozen=True)
class Cause:
    """A class of endings.

    advice  what to change, by the field's name
    starts  after so many starts that ended so in a row it is not tried again until the spec
            changes; None: it may pass, so the kubelet goes on trying, with its back-off
    option  the option of `spec.speculation.options`, by vLLM's name, without which it may start
    """

    reason: Reason
    advice: str
    part: Part = Part.TARGET
    starts: int | None = None
    option: str | None = None


DRAFT_FRAME: Final = (
    r"^(at|called by) vllm/(v1/(worker/gpu/)?spec_decode/|"
    r"model_executor/models/\w*(eagle|mtp|dflash|dspark))"
)
"""A frame of vLLM's code for drafts, as the plugin's termination message names it."""

SURE, LIKELY = 1, 3
"""Starts that are enough: of what is the same at each start, and of what mostly is."""

REFUSED: Final = Cause(
    Reason.CONFIGURATION_REFUSED,
    "Change the field that the text speaks of: spec.model, spec.parallelism or spec.runtime.args.",
    starts=SURE,
)
SPECULATION_REFUSED: Final = Cause(
    Reason.CONFIGURATION_REFUSED,
    "Change spec.speculation: the method, the draft, proposalLength.capacity or the option that "
    "the text speaks of.",
    Part.SPECULATION,
    SURE,
)
NO_USER: Final = Cause(
    Reason.CONFIGURATION_REFUSED,
    "The image knows no user of this number: keep the variables USER and HOME that the operator "
    "sets, or set spec.runtime.securityContext.runAsUser to one that the image knows.",
    starts=SURE,
)
MISFIT: Final = Cause(
    Reason.DRAFT_DOES_NOT_FIT,
    "Set spec.speculation.draft.source to a draft that was made for this target, and "
    "spec.speculation.method to its kind.",
    Part.SPECULATION,
    SURE,
)
DRAFT_CODE: Final = replace(MISFIT, starts=LIKELY)
WEIGHTS: Final = Cause(
    Reason.CONFIGURATION_REFUSED,
    "Weights have other shapes than their model's configuration says: check spec.model.source, "
    "spec.model.quantization and spec.speculation.draft.source, and the revisions of both.",
    Part.EITHER,
    SURE,
)
NO_ROOM: Final = Cause(
    Reason.OUT_OF_GPU_MEMORY,
    "Lower spec.model.maxModelLen or spec.model.maxNumSeqs, take a smaller draft or fewer "
    "speculation.proposalLength.choices, or raise parallelism.tensor and accelerator.count.",
    Part.EITHER,
    SURE,
)
GPU_MEMORY: Final = replace(NO_ROOM, starts=LIKELY)
GPU_TAKEN: Final = Cause(
    Reason.OUT_OF_GPU_MEMORY,
    "Something else holds memory of this GPU: the pod before it, or a process outside of "
    "Kubernetes. It is tried again; if it lasts, look at the node, or lower "
    "--gpu-memory-utilization in spec.runtime.args.",
)
OUT_OF_MEMORY: Final = Cause(
    Reason.OUT_OF_MEMORY,
    "The container needs more main memory than it may have: raise "
    "spec.runtime.resources.limits.memory (and requests.memory).",
    starts=LIKELY,
)
SHARED_MEMORY: Final = Cause(
    Reason.OUT_OF_MEMORY,
    "The shared memory of the container is too small: raise spec.runtime.sharedMemory.",
    starts=LIKELY,
)
NO_MODEL: Final = Cause(
    Reason.MODEL_UNAVAILABLE,
    "Check spec.model.source and spec.model.revision, and for a private or gated model the Secret "
    "of spec.model.credentials.",
    starts=LIKELY,
)
NO_DRAFT: Final = Cause(
    Reason.MODEL_UNAVAILABLE,
    "Check spec.speculation.draft.source and its revision, and for a private or gated draft the "
    "Secret of spec.speculation.draft.credentials.",
    Part.SPECULATION,
    LIKELY,
)
NO_HUB: Final = Cause(
    Reason.MODEL_UNAVAILABLE,
    "The hub does not answer, or refuses so many requests. It is tried again; check the network "
    "and HF_ENDPOINT in spec.runtime.env.",
)
NO_BACKEND: Final = Cause(
    Reason.KERNEL_FAULT,
    "No kernel of this image does that on this GPU: choose another --attention-backend in "
    "spec.runtime.args or speculation.options.attentionBackend (TRITON_ATTN, TRITON_MLA run on "
    "all), or another spec.runtime.image.",
    Part.EITHER,
    SURE,
)
FAULT: Final = replace(
    NO_BACKEND,
    advice="A kernel has faulted on the GPU: choose another --attention-backend in "
    "spec.runtime.args or speculation.options.attentionBackend (TRITON_ATTN, TRITON_MLA), set "
    "VLLM_ROCM_USE_AITER=0 in spec.runtime.env, or try another spec.runtime.image.",
    starts=LIKELY,
)
DEVICE: Final = Cause(
    Reason.DEVICE_FAULT,
    "The node or its GPU is at fault, not the spec. It is tried again; look at the node's driver "
    "and device plugin, and cordon it if this lasts.",
)
NOT_ALLOWED: Final = Cause(
    Reason.DEVICE_FAULT,
    "The engine may not open the GPU's device files: set spec.runtime.supplementalGroups to the "
    "node's groups render and video. It is tried again.",
)
UNKNOWN: Final = Cause(
    Reason.CONTAINER_FAILED, "It is tried again, less and less often; see the engine's log."
)

SIGNS: Final[tuple[tuple[Cause, tuple[str, ...]], ...]] = (
    # Main memory. Signal 9 nobody sends but the kernel, when the memory ran out.
    (OUT_OF_MEMORY, (r"^OOMKilled", r"Failed core proc\(s\): \{[^}]*: -9\b")),
    (
        SHARED_MEMORY,
        (
            r"\bdev/shm\b",
            r"shared memory segment",
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
    # What vLLM refuses before it loads anything.
    (
        SPECULATION_REFUSED,
        (
            r"validation errors? for SpeculativeConfig",
            r"speculative.config",
            r"num_speculative_tokens",
            r"[Aa]daptive verification",
            r"suffix decoding",
            r"prompt_lookup_m",
            r"[Ss]peculative decoding",
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
            r"must be divisible",
            r"is not divisible",
            r"are not supported for now",
        ),
    ),
    # Whatever else fails in vLLM's code for drafts.
    (DRAFT_CODE, (DRAFT_FRAME,)),
)
"""Causes with their signs, in the order in which they are looked for; `^` starts a line."""

COMPILED: Final = tuple((cause, re.compile("|".join(s), re.MULTILINE)) for cause, s in SIGNS)

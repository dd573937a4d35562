"""Why an engine ended, told from its pod's status alone, and what that means. Pure.

The texts are those of vLLM 0.32 and 0.33, PyTorch on ROCm, the Hugging Face hub, ROCm's runtime and
the kubelet. The first sign that is found counts: what is certain goes before what is vague, and
what passes by itself before what looks like it and stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from speculative_operator.api.conditions import Reason


class Part(StrEnum):
    """Which part of the engine fails: without speculation it would run, or not, or who knows."""

    SPECULATION = "speculation"
    TARGET = "target"
    EITHER = "either"


@dataclass(frozen=True)
class Ending:
    """How a container ended: the kubelet's word for it, its exit code, and its termination message,
    which is the plugin's, or the end of its log."""

    reason: str = ""
    exit_code: int | None = None
    message: str = ""

    @property
    def text(self) -> str:
        """All of it, as signs are looked for."""
        return f"{self.reason} exit code {self.exit_code}\n{self.message}"

    @property
    def words(self) -> str:
        """For a user."""
        words = f"ended: {self.reason}, exit code {self.exit_code}"
        return f"{words}: {self.message}" if self.message else words


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


@dataclass(frozen=True)
class Speculation:
    """What the engine was asked to speculate with: vLLM's `--speculative-config`, {} for none."""

    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def draft(self) -> str | None:
        """The draft's checkpoint as vLLM was given it."""
        return self.config.get("model")


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
    "/dev/shm is too small for tensor parallelism: raise spec.runtime.sharedMemory.",
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

SIGNS: Final[tuple[tuple[str, Cause], ...]] = (
    # Main memory. Signal 9 nobody sends but the kernel, when the memory ran out.
    (r"^OOMKilled|Failed core proc\(s\): \{[^}]*: -9\b", OUT_OF_MEMORY),
    (r"/dev/shm|shared memory segment|Bus error|Failed core proc\(s\): \{[^}]*: -7\b|exit code 135",
     SHARED_MEMORY),
    (r"DefaultCPUAllocator: .*(can't|not enough) .*memory|Cannot allocate memory|\bMemoryError\b",
     OUT_OF_MEMORY),
    # The GPU's memory.
    (r"Free memory on device .* is less than", GPU_TAKEN),
    (r"No available memory for the cache blocks|larger than the available KV cache memory",
     NO_ROOM),
    (r"(HIP|CUDA|XPU) out of memory|OutOfMemoryError|hipErrorOutOfMemory|HIP error: out of memory",
     GPU_MEMORY),
    # Node and device.
    (r"(Permission denied|Operation not permitted).*/dev/(kfd|dri)|"
     r"/dev/(kfd|dri)\S* .*(Permission denied|Operation not permitted)", NOT_ALLOWED),
    (r"No HIP GPUs are available|no (ROCm|CUDA)-capable device|hipErrorNoDevice|"
     r"hipErrorInvalidDevice|invalid device ordinal|Unable to open /dev/kfd|"
     r"Failed to infer device type|Device string must not be empty", DEVICE),
    (r"\bECC\b|hipErrorECCNotCorrectable|GPU (reset|Hang|is lost)|HW Exception by GPU|"
     r"HSA_STATUS_ERROR_OUT_OF_RESOURCES|(NCCL|RCCL) error: (unhandled|remote)", DEVICE),
    (r"^(UnexpectedAdmissionError|Evicted|NodeShutdown|NodeAffinity|NodeLost|Terminated|Preempting|"
     r"OutOf\S+)\b", DEVICE),
    # Kernels.
    (r"No valid attention backend found|attention backend .*(not valid|not supported|does not "
     r"support)|is not valid for this configuration|Unknown attention backend|Invalid attention "
     r"backend|HIP error: (invalid device function|no kernel image)|hipErrorNoBinaryForGpu|"
     r"invalid (value|input) .*(attention|moe).backend", NO_BACKEND),
    (r"Memory access fault by GPU|HSA_STATUS_ERROR_\w+|HIP error|an illegal memory access|"
     r"Failed core proc\(s\): \{[^}]*: -(4|6|11)\b|^Error exit code (132|134|139)\b", FAULT),
    # The hub, and what is not there.
    (r"couldn't connect to|Max retries exceeded|name resolution|Name or service not known|"
     r"Connection(Error| refused| reset|Timeout)|Read(Timeout| timed out)|LocalEntryNotFoundError|"
     r"Too Many Requests|\b(429|5\d\d) (Client|Server) Error", NO_HUB),
    (r"Repository Not Found|RepositoryNotFoundError|Revision ?Not ?Found|gated repo|GatedRepo|"
     r"\b(401|403|404) Client Error|is not a valid model identifier|is not a valid git identifier|"
     r"Can't load the configuration of|Repo id must|Invalid repository ID|"
     r"does not appear to have (a file named|files named)|Cannot find any model weights|"
     r"No such file or directory: '/weights/|subPath", NO_MODEL),
    # Draft and target.
    (r"same vocabulary size|vocab_?size.*(mismatch|must match|differ)|"
     r"hidden_size must match|must match the target|draft_vocab_size must", MISFIT),
    # What vLLM refuses before it loads anything.
    (r"validation error for SpeculativeConfig|speculative.config|num_speculative_tokens|"
     r"[Aa]daptive verification|suffix decoding|prompt_lookup_m|[Ss]peculative decoding",
     SPECULATION_REFUSED),
    (r"getpwuid\(\): uid not found", NO_USER),
    (r"^Error exit code 2\b|unrecognized arguments|validation errors? for \w+|"
     r"User-specified max_model_len|is not divisible|must be divisible|"
     r"are not supported for now", REFUSED),
    # Whatever else fails in vLLM's code for drafts.
    (r"^at vllm/(v1/(worker/gpu/)?spec_decode/|model_executor/models/\w*(eagle|mtp|dflash|dspark))",
     DRAFT_CODE),
)  # fmt: skip
"""Signs in the order in which they are looked for; `^` is the start of a line."""

SPECULATIVE_PARTS: Final = frozenset({Part.SPECULATION, Part.EITHER})
BACKEND_OPTIONS: Final = ("attention_backend", "moe_backend")
"""Options that a text may name by their value."""


def cause_of(ending: Ending, speculation: Speculation) -> Cause:
    """The class of an ending, with the part that fails where the text tells it."""
    found = next(
        (cause for sign, cause in SIGNS if re.search(sign, ending.text, re.MULTILINE)), UNKNOWN
    )
    if not speculation.config:
        return replace(found, part=Part.TARGET)
    if found is NO_MODEL and speculation.draft and speculation.draft in ending.text:
        return NO_DRAFT
    told = found.reason in (Reason.CONFIGURATION_REFUSED, Reason.KERNEL_FAULT)
    if found.part in SPECULATIVE_PARTS and told:
        option = _option(ending.message, speculation.config)
        return found if option is None else replace(found, part=Part.SPECULATION, option=option)
    return found


def _option(message: str, config: Mapping[str, Any]) -> str | None:
    """The one of the options in use that a text speaks of; the longest words that it has."""
    said = _plain(message)
    words = {
        word: name
        for name, value in config.items()
        if name not in NEEDED
        for word in _words(name, value)
    }
    return max(((w, words[w]) for w in words if w in said), key=_length, default=("", None))[1]


def _length(found: tuple[str, str | None]) -> int:
    return len(found[0])


def _words(name: str, value: object) -> tuple[str, ...]:
    """By what a text may call an option."""
    named = _plain(name).removeprefix("enable ")
    return (named, _plain(str(value))) if name in BACKEND_OPTIONS else (named,)


NEEDED: Final = frozenset(
    {
        "method",
        "model",
        "revision",
        "quantization",
        "num_speculative_tokens",
        "num_speculative_tokens_per_batch_size",
    }
)
"""Parts of the config that are no options: without them there is no speculation."""


def _plain(text: str) -> str:
    return text.lower().replace("_", " ")

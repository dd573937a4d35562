"""Classes of engines' ends: what to do about each, and how often it is tried again."""

from __future__ import annotations

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
    starts  once so many starts of a pod have ended, the last one so, it is not tried again until
            the spec changes; None: it may pass, so the kubelet goes on trying, with its back-off.
            How earlier starts ended is not known: a pod's status keeps the last end alone
    option  the option of `spec.speculation.options`, by vLLM's name, without which it may start
    """

    reason: Reason
    advice: str
    part: Part = Part.TARGET
    starts: int | None = None
    option: str | None = None

    @property
    def passes(self) -> bool:
        """Whether it is known to be of network, node or device, and no matter of the spec."""
        return self.starts is None and self.reason is not Reason.CONTAINER_FAILED


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
UNHEALTHY: Final = replace(DEVICE, advice="A device of the pod is unhealthy.")
NOT_ALLOWED: Final = Cause(
    Reason.DEVICE_FAULT,
    "The engine may not open the GPU's device files: set spec.runtime.supplementalGroups to the "
    "node's groups render and video. It is tried again.",
)
UNKNOWN: Final = Cause(
    Reason.CONTAINER_FAILED, "It is tried again, less and less often; see the engine's log."
)

"""What the key of a revision takes for "not written": the defaults of the fields that shape a pod.

The API server wrote the defaults of its day into every stored object. If the key left today's
default out, a release that changes one would make new keys for all models, and replace their pods.
So each field's defaults are listed here, the first one first and for ever: that one is left out of
the key. A new default is added behind it, and is then in the key like any value that a user writes.
What is not even stored, since its section was never written, is never in the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

DEFAULTS_SO_FAR: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType(
    {
        "model.maxNumSeqs": (256,),
        "model.dtype": ("auto",),
        "model.trustRemoteCode": (False,),
        "speculation.proposalLength.capacity": (7,),
        "accelerator.count": (1,),
        "accelerator.resourceName": ("amd.com/gpu",),
        "accelerator.tolerations[].operator": ("Exists",),
        "parallelism.pipeline": (1,),
        "parallelism.data": (1,),
        "parallelism.expert": (False,),
        "runtime.imagePullPolicy": ("IfNotPresent",),
        "runtime.sharedMemory": ("8Gi",),
        "runtime.securityContext.runAsUser": (1000,),
        "runtime.securityContext.runAsGroup": (1000,),
        "runtime.securityContext.runAsNonRoot": (True,),
        "runtime.securityContext.readOnlyRootFilesystem": (False,),
        "runtime.securityContext.capabilities.drop": (["ALL"],),
        "runtime.securityContext.seccompProfile.type": ("RuntimeDefault",),
        "runtime.startupTimeoutSeconds": (1800,),
        "runtime.drainSeconds": (120,),
    }
)
"""By path, in JSON; `[]` stands for every entry of a list. A field that is not listed has nothing
as its default: null, an empty list or an empty map."""

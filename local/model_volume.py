"""The tiny models as a claim that pods mount: `pvc://tiny-models/target` and its drafts.

A volume binds to one claim only, so each namespace gets a volume of its own over the same folder.
"""

from __future__ import annotations

from typing import Any

from local import vllm_environment

CLAIM = "tiny-models"


def manifests(namespace: str) -> tuple[dict[str, Any], ...]:
    """A PersistentVolume over the models' folder and the claim for it in `namespace`."""
    shared = {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "volumeMode": "Filesystem",
    }
    volume_name = f"{CLAIM}-{namespace}"
    size = "1Gi"
    return (
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume_name},
            "spec": {
                **shared,
                "capacity": {"storage": size},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": namespace, "name": CLAIM},
                "hostPath": {
                    "path": str(vllm_environment.folder() / "models"),
                    "type": "Directory",
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM, "namespace": namespace},
            "spec": {
                **shared,
                "volumeName": volume_name,
                "resources": {"requests": {"storage": size}},
            },
        },
    )

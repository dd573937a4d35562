"""Kubeconfig files, written as JSON, which every client reads as YAML."""

from __future__ import annotations

import json
from pathlib import Path

from local.addresses import API_URL
from local.certificates import Identity

CONTEXT = "local"


def kubeconfig(identity: Identity, pki: Path) -> str:
    """A kubeconfig whose only context is the local cluster as `identity`."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [
                {
                    "name": CONTEXT,
                    "cluster": {"server": API_URL, "certificate-authority": str(pki / "ca.crt")},
                }
            ],
            "users": [
                {
                    "name": identity.user,
                    "user": {
                        "client-certificate": str(pki / f"{identity.file}.crt"),
                        "client-key": str(pki / f"{identity.file}.key"),
                    },
                }
            ],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": identity.user}}],
        },
        indent=1,
    )

"""Writes what the cluster's programs read at their start: keys, kubeconfigs, configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from local import certificates, configuration
from local.kubeconfig import kubeconfig
from local.layout import CONFIG, ETCD, KUBECONFIG, LOGS, PKI
from local.prerequisites import CNI_PLUGINS
from local.programs import COMPONENT_CONFIGS, client_config


def write(pause_image: str) -> None:
    """Makes the state folder's content; keys are made once, the rest is written anew."""
    for folder in (CONFIG, LOGS):
        folder.mkdir(parents=True, exist_ok=True)
    ETCD.mkdir(mode=0o700, exist_ok=True)
    certificates.make(PKI)
    _private(KUBECONFIG, kubeconfig(certificates.ADMIN, PKI))
    for identity in COMPONENT_CONFIGS:
        _private(client_config(identity), kubeconfig(identity, PKI))
    cni = CONFIG / "cni"
    cni.mkdir(exist_ok=True)
    _json(cni / "10-pods.conflist", configuration.cni())
    _json(CONFIG / "kubelet.json", configuration.kubelet(PKI))
    _json(CONFIG / "proxy.json", configuration.proxy(client_config(certificates.PROXY)))
    _json(CONFIG / "audit-policy.json", configuration.audit_policy())
    (CONFIG / "containerd.toml").write_text(configuration.containerd(cni, CNI_PLUGINS, pause_image))
    (CONFIG / "Corefile").write_text(configuration.coredns(client_config(certificates.DNS)))


def _json(file: Path, content: Mapping[str, object]) -> None:
    file.write_text(json.dumps(content, indent=1))


def _private(file: Path, content: str) -> None:
    file.touch(mode=0o600)
    file.write_text(content)

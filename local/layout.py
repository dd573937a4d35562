"""What lies where in the state folder, and the few paths that are fixed inside the node."""

from __future__ import annotations

import hashlib
from pathlib import Path

from local.paths import STATE

PKI = STATE / "pki"
CONFIG = STATE / "config"
LOGS = STATE / "logs"
ETCD = STATE / "etcd"
KUBECONFIG = STATE / "kubeconfig"
AUDIT_LOG = LOGS / "audit.log"
MACHINE = STATE / "machine.json"
DEVICES = STATE / "devices.json"

# Kubelet, containerd and CNI insist on folders under /var/lib and /var/log. Inside the node's mount
# namespace these two are the state folder's, and /run is empty and in memory.
VAR_LIB = STATE / "var-lib"
VAR_LOG = STATE / "var-log"
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")

# Names the one thing that two clusters would otherwise share on this machine: the cgroup folder.
NAME = f"spm-{hashlib.sha256(str(STATE).encode()).hexdigest()[:8]}"

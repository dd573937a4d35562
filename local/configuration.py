"""The configuration files of the cluster's programs, made from addresses and paths."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from local.addresses import (
    BRIDGE,
    DNS_DOMAIN,
    DNS_READINESS,
    DNS_SERVICE_ADDRESS,
    NODE_ADDRESS,
    NODE_NAME,
    POD_RANGE,
)
from local.layout import CONTAINERD_SOCKET

PODS_AT_MOST = 250


def kubelet(pki: Path) -> Mapping[str, object]:
    """KubeletConfiguration for a node that is a few processes on somebody's machine."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "clusterDNS": [DNS_SERVICE_ADDRESS],
        "clusterDomain": DNS_DOMAIN,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        # cgroup v1 and v2 alike: pods lie flat in one folder.
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        # A full disk of the developer's must not evict pods or delete imported images.
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "maxPods": PODS_AT_MOST,
        "registerNode": True,
        # A device marked unhealthy shows in the node's status within two seconds, not ten.
        "nodeStatusUpdateFrequency": "2s",
        # Else an engine that ends three times takes half a minute more, in tests that wait for it.
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        "resolvConf": "",
    }


def proxy(kubeconfig: Path) -> Mapping[str, object]:
    """KubeProxyConfiguration; zeros leave the kernel's connection tracking as it is."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": POD_RANGE,
        "hostnameOverride": NODE_NAME,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpCloseWaitTimeout": "0s",
            "tcpEstablishedTimeout": "0s",
        },
        # Pods share a bridge, so an answer would pass by the address translation of its question.
        "iptables": {"masqueradeAll": True},
    }


def cni() -> Mapping[str, object]:
    """All pods on one bridge, with the node's address as their gateway."""
    return {
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": POD_RANGE, "gateway": NODE_ADDRESS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def audit_policy() -> Mapping[str, object]:
    """One line a request: verb, user, object, answer; never the bodies."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }


def containerd(cni_configuration: Path, cni_plugins: Path, pause_image: str) -> str:
    """containerd's config.toml. `restrict_oom_score_adj`: the machine may lack CAP_SYS_RESOURCE."""
    return f"""version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = {json.dumps(str(CONTAINERD_SOCKET))}

[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
pinned_images = {{ sandbox = {json.dumps(pause_image)} }}

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
device_ownership_from_security_context = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [{json.dumps(str(cni_plugins))}]
conf_dir = {json.dumps(str(cni_configuration))}

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def coredns(kubeconfig: Path) -> str:
    """The Corefile: names of the cluster, and nothing outside, since there is no way out."""
    return f"""{DNS_DOMAIN}:53 in-addr.arpa:53 {{
    bind {NODE_ADDRESS}
    errors
    ready {DNS_READINESS}
    kubernetes {DNS_DOMAIN} in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
.:53 {{
    bind {NODE_ADDRESS}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""

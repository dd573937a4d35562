"""The programs that make up the cluster: a name and an argv each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from local.addresses import (
    API_PORT,
    DNS_DOMAIN,
    ETCD_PEER_URL,
    ETCD_URL,
    NODE_ADDRESS,
    NODE_NAME,
    POD_RANGE,
    SERVICE_RANGE,
)
from local.certificates import (
    CONTROLLER_MANAGER,
    DNS,
    FRONT_PROXY,
    KUBELET,
    PROXY,
    SCHEDULER,
    Identity,
)
from local.devices import DEFAULT_COUNT
from local.layout import AUDIT_LOG, CONFIG, ETCD, PKI
from local.node_labels import amd_labels

SERVICE_ACCOUNT_ISSUER = f"https://kubernetes.default.svc.{DNS_DOMAIN}"


@dataclass(frozen=True)
class Program:
    """A program that the supervisor keeps running. Its log is named after it."""

    name: str
    argv: tuple[str, ...]


def client_config(identity: Identity) -> Path:
    """Where the kubeconfig of a component lies."""
    return CONFIG / f"{identity.file}.kubeconfig"


def programs(binaries: Path) -> tuple[Program, ...]:
    """All programs; each waits for, or is restarted until, the ones that it needs."""
    run = binaries.joinpath
    return (
        Program("etcd", (str(run("etcd")), *_etcd())),
        Program("kube-apiserver", (str(run("kube-apiserver")), *_api_server())),
        Program(
            "kube-controller-manager", (str(run("kube-controller-manager")), *_controller_manager())
        ),
        Program("kube-scheduler", (str(run("kube-scheduler")), *_scheduler())),
        Program(
            "containerd", (str(run("containerd")), "--config", str(CONFIG / "containerd.toml"))
        ),
        Program("kubelet", (str(run("kubelet")), *_kubelet())),
        Program("kube-proxy", (str(run("kube-proxy")), "--config", str(CONFIG / "proxy.json"))),
        Program("coredns", (str(run("coredns")), "-conf", str(CONFIG / "Corefile"))),
        Program("device-plugin", (sys.executable, "-m", "local.device_plugin")),
    )


def _etcd() -> tuple[str, ...]:
    return (
        f"--data-dir={ETCD}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
        f"--initial-cluster=default={ETCD_PEER_URL}",
        "--unsafe-no-fsync",  # the state is thrown away with the cluster
        "--log-level=warn",
    )


def _api_server() -> tuple[str, ...]:
    return (
        f"--advertise-address={NODE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--etcd-servers={ETCD_URL}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--client-ca-file={PKI / 'ca.crt'}",
        f"--tls-cert-file={PKI / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={PKI / 'kube-apiserver.key'}",
        f"--kubelet-client-certificate={PKI / 'kubelet-client.crt'}",
        f"--kubelet-client-key={PKI / 'kubelet-client.key'}",
        f"--kubelet-certificate-authority={PKI / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={PKI / 'ca.crt'}",
        f"--requestheader-allowed-names={FRONT_PROXY.user}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={PKI / f'{FRONT_PROXY.file}.crt'}",
        f"--proxy-client-key-file={PKI / f'{FRONT_PROXY.file}.key'}",
        f"--service-account-key-file={PKI / 'service-account.pub'}",
        f"--service-account-signing-key-file={PKI / 'service-account.key'}",
        f"--service-account-issuer={SERVICE_ACCOUNT_ISSUER}",
        f"--audit-policy-file={CONFIG / 'audit-policy.json'}",
        f"--audit-log-path={AUDIT_LOG}",
        "--audit-log-mode=blocking",  # a test that reads the log must find its own request in it
        "--audit-log-maxsize=500",
        "--audit-log-maxbackup=1",
        "--profiling=false",
    )


def _controller_manager() -> tuple[str, ...]:
    kubeconfig = client_config(CONTROLLER_MANAGER)
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={PKI / 'service-account.key'}",
        f"--root-ca-file={PKI / 'ca.crt'}",
        "--bind-address=127.0.0.1",
        f"--cluster-cidr={POD_RANGE}",
        "--leader-elect=false",
        "--horizontal-pod-autoscaler-sync-period=2s",
        # A burst of 200 models shall wait for the operator, not for the ReplicaSet controller.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    )


def _scheduler() -> tuple[str, ...]:
    kubeconfig = client_config(SCHEDULER)
    return (
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    )


def _kubelet() -> tuple[str, ...]:
    labels = ",".join(f"{key}={value}" for key, value in amd_labels(DEFAULT_COUNT).items())
    return (
        f"--kubeconfig={client_config(KUBELET)}",
        f"--config={CONFIG / 'kubelet.json'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-labels={labels}",
    )


COMPONENT_CONFIGS = (CONTROLLER_MANAGER, SCHEDULER, KUBELET, PROXY, DNS)

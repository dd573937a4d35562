"""The cluster's keys and certificates, made with openssl: one authority signs all."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from local.addresses import (
    API_SERVICE_ADDRESS,
    DNS_DOMAIN,
    NODE_ADDRESS,
    NODE_NAME,
)

DAYS = "3650"
API_SERVER_NAMES = (
    f"IP:{NODE_ADDRESS}",
    f"IP:{API_SERVICE_ADDRESS}",
    "IP:127.0.0.1",
    "DNS:localhost",
    "DNS:kubernetes",
    "DNS:kubernetes.default",
    "DNS:kubernetes.default.svc",
    f"DNS:kubernetes.default.svc.{DNS_DOMAIN}",
)
KUBELET_NAMES = (f"IP:{NODE_ADDRESS}", f"DNS:{NODE_NAME}")


@dataclass(frozen=True)
class Identity:
    """A certificate: Kubernetes reads its common name as user, its organisation as group."""

    file: str
    user: str
    group: str = ""
    names: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return (f"/O={self.group}" if self.group else "") + f"/CN={self.user}"


ADMIN = Identity("admin", "local-admin", "system:masters")
API_SERVER = Identity("kube-apiserver", "kube-apiserver", names=API_SERVER_NAMES)
API_SERVER_TO_KUBELET = Identity("kubelet-client", "kube-apiserver", "system:masters")
FRONT_PROXY = Identity("front-proxy-client", "front-proxy-client")
"""What the API server shows to an aggregated API that it hands a request on to."""
CONTROLLER_MANAGER = Identity("kube-controller-manager", "system:kube-controller-manager")
SCHEDULER = Identity("kube-scheduler", "system:kube-scheduler")
KUBELET = Identity("kubelet", f"system:node:{NODE_NAME}", "system:nodes", KUBELET_NAMES)
PROXY = Identity("kube-proxy", "system:kube-proxy")
DNS = Identity("coredns", "local:coredns")

CLIENTS = (ADMIN, CONTROLLER_MANAGER, SCHEDULER, KUBELET, PROXY, DNS)
IDENTITIES = (*CLIENTS, API_SERVER, API_SERVER_TO_KUBELET, FRONT_PROXY)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _private_key(path: Path) -> None:
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def make(folder: Path) -> None:
    """Writes `ca.crt`, the pair `service-account.{key,pub}` and NAME.{key,crt} of each identity;
    what is there already, of an earlier start, stays."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    authority, certificate = folder / "ca.key", folder / "ca.crt"
    if not certificate.exists():
        _private_key(authority)
        _openssl(
            "req", "-x509", "-new", "-key", str(authority), "-days", DAYS,
            "-subj", "/CN=local-cluster", "-out", str(certificate),
        )  # fmt: skip
    account = folder / "service-account.key"
    if not account.exists():
        _private_key(account)
        _openssl("ec", "-in", str(account), "-pubout", "-out", str(account.with_suffix(".pub")))
    for identity in IDENTITIES:
        if not (folder / f"{identity.file}.crt").exists():
            _sign(folder, identity, authority, certificate)


def _sign(folder: Path, identity: Identity, authority: Path, certificate: Path) -> None:
    key = folder / f"{identity.file}.key"
    request = folder / f"{identity.file}.csr"
    extensions = folder / f"{identity.file}.ext"
    _private_key(key)
    _openssl("req", "-new", "-key", str(key), "-subj", identity.subject, "-out", str(request))
    lines = ["extendedKeyUsage=clientAuth,serverAuth"]
    if identity.names:
        lines.append(f"subjectAltName={','.join(identity.names)}")
    extensions.write_text("\n".join(lines) + "\n")
    _openssl(
        "x509", "-req", "-in", str(request), "-CA", str(certificate), "-CAkey", str(authority),
        "-CAcreateserial", "-days", DAYS, "-extfile", str(extensions),
        "-out", str(folder / f"{identity.file}.crt"),
    )  # fmt: skip
    request.unlink()
    extensions.unlink()

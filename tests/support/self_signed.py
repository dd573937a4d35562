"""Certificates for servers that only a test talks to."""

from __future__ import annotations

import subprocess
from pathlib import Path


def self_signed(folder: Path, address: str) -> tuple[Path, Path]:
    """Makes `tls.key` and `tls.crt`, which is its own authority, for a server at an IP address."""
    key, certificate = folder / "tls.key", folder / "tls.crt"
    command = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "1", "-subj", f"/CN={address}"),
        *("-addext", f"subjectAltName=IP:{address}", "-keyout", key, "-out", certificate),
    )
    subprocess.run(command, check=True, capture_output=True)
    return key, certificate

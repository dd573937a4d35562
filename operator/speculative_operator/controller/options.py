"""What the operator's process is told from outside: flags and environment, read once."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from speculative_operator.api.runtime import PullPolicy
from speculative_operator.cluster.lease import LeaseSettings
from speculative_operator.engine.prometheus import PrometheusSettings
from speculative_operator.plan.settings import Settings

DEFAULT_WORKERS = 16
DEFAULT_PORT = 8080


@dataclass(frozen=True)
class Options:
    """Everything that an installation decides.

    namespaces  those that are looked at; () for all
    kubeconfig  how the API server is reached from outside of the cluster
    workers     models that are worked on at once
    prometheus  where models with tuning.source: Prometheus are read; None where there is none
    capacity    whether nodes and everybody's pods may be read, to count free GPUs
    """

    namespaces: tuple[str, ...]
    kubeconfig: Path | None
    log_level: str
    workers: int
    port: int
    capacity: bool
    settings: Settings
    lease: LeaseSettings
    prometheus: PrometheusSettings | None


def read_options(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Flags win over nothing: what may differ between pods of one Deployment is environment."""
    parser = argparse.ArgumentParser(
        prog="speculative-operator", description="Runs SpeculativeModels and tunes them."
    )
    parser.add_argument(
        "--namespaces", default="", help="look at these only, with commas between them"
    )
    parser.add_argument(
        "--kubeconfig", type=Path, help="reach the API server by this file; else as a pod does"
    )
    parser.add_argument("--log-level", default="info", choices=("debug", "info", "warning"))
    parser.add_argument("--workers", type=int, default=DEFAULT_WORKERS, help="models at once")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="of probes and /metrics")
    parser.add_argument(
        "--count-gpus", action="store_true", help="read nodes and all pods to count free GPUs"
    )
    parser.add_argument("--prometheus-url", help="where tuning.source: Prometheus reads")
    parser.add_argument("--prometheus-token-file", type=Path, help="the bearer token for it")
    parser.add_argument("--prometheus-ca-file", type=Path, help="certificates to check it by")
    parser.add_argument(
        "--plugin-image-volume",
        action="store_true",
        help="mount the plugin's image into engines instead of copying from it",
    )
    flags = parser.parse_args(arguments)
    if not flags.prometheus_url and (flags.prometheus_token_file or flags.prometheus_ca_file):
        parser.error("a token or certificates are for a Prometheus: set --prometheus-url, too")
    missing = [
        name for name in ("SPM_ENGINE_IMAGE", "SPM_PLUGIN_IMAGE") if not environment.get(name)
    ]
    if missing:
        parser.error(f"set {' and '.join(missing)}: the images that pods of models run")
    return Options(
        namespaces=tuple(name for name in flags.namespaces.split(",") if name),
        kubeconfig=flags.kubeconfig,
        log_level=flags.log_level.upper(),
        workers=flags.workers,
        port=flags.port,
        capacity=flags.count_gpus,
        settings=Settings(
            engine_image=environment["SPM_ENGINE_IMAGE"],
            plugin_image=environment["SPM_PLUGIN_IMAGE"],
            plugin_pull_policy=PullPolicy(
                environment.get("SPM_PLUGIN_PULL_POLICY", PullPolicy.IF_NOT_PRESENT.value)
            ),
            plugin_image_volume=flags.plugin_image_volume,
        ),
        lease=LeaseSettings(
            namespace=environment.get("SPM_LEASE_NAMESPACE", "default"),
            name=environment.get("SPM_LEASE_NAME", "speculative-operator"),
            identity=environment.get("SPM_POD_NAME") or socket.gethostname(),
        ),
        prometheus=PrometheusSettings(
            flags.prometheus_url, flags.prometheus_token_file, flags.prometheus_ca_file
        )
        if flags.prometheus_url
        else None,
    )

"""How the API server is reached: by the pod's service account, or by a kubeconfig file."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import (
    ConfigException,
    kube_config,
    load_incluster_config,
    load_kube_config,
)
from yaml import YAMLError

from speculative_operator.errors import ClusterFault, in_a_line

REQUEST_TIMEOUT_SECONDS = 30
CONNECTIONS = 32
ERROR_NUMBER = re.compile(r"^\[Errno \d+\] ")
KEEP_ALIVE_SECONDS = 60
"""Below the 90 s after which the API server closes an idle connection: a new model on a quiet
cluster does not wait for handshakes."""


async def load(kubeconfig: Path | None, context: str | None = None) -> Configuration:
    """The connection to the cluster around this pod, or to the one that the file names."""
    configuration = Configuration()
    if kubeconfig is None:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    else:
        await load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig), context=context, client_configuration=configuration
        )
    return configuration


async def load_as_user(kubeconfig: str, context: str | None) -> tuple[Configuration, str]:
    """The connection and the namespace that kubectl would take from these files, which stand as in
    the variable KUBECONFIG. Raises ClusterFault."""
    if not any(map(os.path.isfile, map(os.path.expanduser, kubeconfig.split(os.pathsep)))):
        raise ClusterFault(f"there is no kubeconfig {kubeconfig}: name one by --kubeconfig")
    configuration = Configuration()
    try:
        with _complaints() as complaints:
            loader = await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=kubeconfig,
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
    except (ConfigException, YAMLError, UnicodeDecodeError, OSError) as error:
        raise ClusterFault(f"{kubeconfig}: {in_a_line(error)}") from error
    if complaints:
        raise ClusterFault(f"{kubeconfig}: no credentials: {'; '.join(complaints)}")
    chosen = loader.current_context["context"]
    return configuration, str(chosen.get("namespace") or "default")


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the library logs where a program that gives credentials fails: it would go on without
    them."""
    told: list[str] = []

    def listen(record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        told.append(ERROR_NUMBER.sub("", record.getMessage()))
        return False

    library = logging.getLogger(kube_config.__name__)
    library.addFilter(listen)
    try:
        yield told
    finally:
        library.removeFilter(listen)


def session(configuration: Configuration) -> aiohttp.ClientSession:
    """An HTTP session with the connection's certificates; requests end within bounded time."""
    rest = RESTClientObject(configuration)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=CONNECTIONS, keepalive_timeout=KEEP_ALIVE_SECONDS, ssl=rest.ssl_context
        ),
        timeout=aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_SECONDS),
    )


async def bearer_token(configuration: Configuration) -> str | None:
    """The token of today, without its scheme; service account tokens change every hour."""
    header = await configuration.get_api_key_with_prefix("BearerToken")
    return header.split(" ", 1)[-1].strip() if header else None

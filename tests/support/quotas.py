"""Quotas that hold from the first moment on."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.api import KubernetesApi, until

NAME = "quota"


def obeyed_quota(api: KubernetesApi, namespace: str, hard: Mapping[str, str]) -> None:
    """Creates one, and waits until its controller has written a status: before that the API server
    does not obey it."""
    api.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": NAME},
            "spec": {"hard": dict(hard)},
        },
        namespace,
    )

    def counted() -> bool:
        found = api.get("ResourceQuota", namespace, NAME) or {}
        return bool(found.get("status", {}).get("hard", {}).keys() == hard.keys())

    until("the quota is obeyed", counted)

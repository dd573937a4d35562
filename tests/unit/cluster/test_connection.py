"""The connection that kubectl would take."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from speculative_operator.cluster.connection import load_as_user
from speculative_operator.errors import ClusterFault


def a_kubeconfig(path: Path, *, namespace: str | None = "prod") -> Path:
    """Two contexts; only `first` names a namespace, and is the current one."""
    contexts: list[dict[str, Any]] = [
        {"name": name, "context": {"cluster": name, "user": "me"}} for name in ("first", "second")
    ]
    if namespace is not None:
        contexts[0]["context"]["namespace"] = namespace
    clusters = [
        {"name": name, "cluster": {"server": f"https://{name}.example:6443"}}
        for name in ("first", "second")
    ]
    users = [{"name": "me", "user": {"token": "secret"}}]
    body = {"current-context": "first", "clusters": clusters, "users": users, "contexts": contexts}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **body}))
    return path


async def test_server_and_namespace_are_those_of_the_current_context(tmp_path: Path) -> None:
    """What `kubectl get` without flags would ask."""
    configuration, namespace = await load_as_user(str(a_kubeconfig(tmp_path / "config")), None)

    assert configuration.host == "https://first.example:6443"
    assert namespace == "prod"


async def test_another_context_has_its_own_namespace(tmp_path: Path) -> None:
    """`default` where it names none."""
    file = a_kubeconfig(tmp_path / "config")

    configuration, namespace = await load_as_user(str(file), "second")

    assert configuration.host == "https://second.example:6443"
    assert namespace == "default"


async def test_several_files_are_merged_as_kubectl_does(tmp_path: Path) -> None:
    """One that is not there does not matter."""
    missing, file = tmp_path / "missing", a_kubeconfig(tmp_path / "config")

    _, namespace = await load_as_user(os.pathsep.join((str(missing), str(file))), None)

    assert namespace == "prod"


async def test_without_a_file_it_says_how_to_name_one(tmp_path: Path) -> None:
    """A new machine."""
    with pytest.raises(ClusterFault, match=r"no kubeconfig .*missing: name one by --kubeconfig"):
        await load_as_user(str(tmp_path / "missing"), None)


@pytest.mark.parametrize("context", ["third", None])
async def test_a_file_that_is_wrong_is_named(tmp_path: Path, context: str | None) -> None:
    """A context that is not there; a text that is no kubeconfig."""
    file = a_kubeconfig(tmp_path / "config")
    if context is None:
        file.write_text("contexts: {")

    with pytest.raises(ClusterFault, match="config") as fault:
        await load_as_user(str(file), context)

    assert "\n" not in str(fault.value)


async def test_a_program_for_credentials_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The library would go on without a token, and the API server's 401 says nothing of why."""
    file = a_kubeconfig(tmp_path / "config")
    config = json.loads(file.read_text())
    called = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-login"}
    config["users"] = [{**user, "user": {"exec": called}} for user in config["users"]]
    file.write_text(json.dumps(config))

    with pytest.raises(
        ClusterFault, match=r"no credentials: No such file .*'no-such-login'"
    ) as told:
        await load_as_user(str(file), None)

    assert "Errno" not in str(told.value)

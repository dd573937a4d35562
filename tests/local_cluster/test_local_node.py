"""The local cluster's node is a real one: GPUs, Services, names, logs, exec, volumes, faults."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local import access, devices, images, kubectl, machine
from local.addresses import NODE_NAME

NAMESPACE = "local-node-test"
LABEL = "pod-security.kubernetes.io/enforce"
SERVE = (
    "from http.server import *; HTTPServer(('', 8080), SimpleHTTPRequestHandler).serve_forever()"
)
FETCH = "import urllib.request as u; print(u.urlopen('http://{host}:80/{path}', timeout=10).status)"


class Cluster:
    """kubectl in the test's own namespace, and waiting for what it shows."""

    def __init__(self) -> None:
        self._machine = machine.require()

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        return kubectl.run(self._machine, f"--namespace={NAMESPACE}", *arguments, stdin=stdin)

    def apply(self, *manifests: dict[str, Any]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.run("apply", "--server-side", "--filename=-", stdin=text)

    def python(self, pod: str, code: str) -> str:
        """Output of a Python program in a pod; a name that DNS has not learnt yet fails it."""
        return self.run("exec", pod, "--", "python3", "-c", code).strip()

    def field(self, thing: str, path: str) -> str:
        return self.run("get", thing, f"--output=jsonpath={path}")

    def eventually(self, expected: str, seen: Callable[[], str], seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while (now := _answer(seen)) != expected:
            assert time.monotonic() < until, f"still {now!r}, not {expected!r}"
            time.sleep(0.1)


def _answer(seen: Callable[[], str]) -> str:
    try:
        return seen()
    except kubectl.KubectlError as error:
        return str(error)


def _pod(name: str, command: list[str], **extra: Any) -> dict[str, Any]:
    """A pod as enforced restricted pod security wants it, with a user that no passwd file knows."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 54321,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": images.reference("vllm-cpu"),
                    "imagePullPolicy": "Never",
                    "command": command,
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    **extra.pop("container", {}),
                }
            ],
            **extra,
        },
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if not access.cluster_access().is_local:
        pytest.skip("is about the local cluster's own node")
    images.load([images.build(["vllm-cpu"])["vllm-cpu"]])
    cluster = Cluster()
    kubectl.run(
        machine.require(),
        "apply",
        "--server-side",
        "--filename=-",
        stdin=json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": NAMESPACE, "labels": {LABEL: "restricted"}},
            }
        ),
    )
    cluster.eventually(
        "default", lambda: cluster.field("serviceaccount/default", "{.metadata.name}")
    )
    cluster.apply(
        _pod(
            "server",
            ["python3", "-c", f"print('serving', flush=True); {SERVE}"],
            container={
                "workingDir": "/etc/test",
                "resources": {"limits": {"amd.com/gpu": "1"}},
                "volumeMounts": [{"name": "words", "mountPath": "/etc/test"}],
            },
            volumes=[{"name": "words", "configMap": {"name": "words"}}],
        ),
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "words"},
            "data": {"k": "1"},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "words"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    cluster.run("wait", "--for=condition=Ready", "pod/server", "--timeout=120s")
    yield cluster
    devices.mark_healthy()
    kubectl.run(machine.require(), "delete", "namespace", NAMESPACE, "--wait=false")


def test_a_gpu_pod_runs_as_a_user_without_a_passwd_entry_under_restricted_security(
    cluster: Cluster,
) -> None:
    """So run the operator's engine pods, and so they must be able to run here."""
    assert cluster.python("server", "import os; print(os.getuid())") == "54321"


def test_a_service_answers_by_its_cluster_name(cluster: Cluster) -> None:
    """Address translation and cluster DNS both take part."""
    fetch = FETCH.format(host=f"words.{NAMESPACE}.svc.cluster.local", path="k")

    cluster.eventually("200", lambda: cluster.python("server", fetch))


def test_a_name_outside_the_cluster_fails_at_once(cluster: Cluster) -> None:
    """There is no way out; a resolver that waits would make every such mistake slow."""
    code = (
        "import socket, time; t = time.monotonic()\n"
        "try: socket.getaddrinfo('example.org', 80)\n"
        "except socket.gaierror: print(time.monotonic() - t < 4)"
    )

    assert cluster.python("server", code) == "True"


def test_the_api_server_answers_a_pods_service_account(cluster: Cluster) -> None:
    """The operator's own way in: token, authority and the address in the environment."""
    code = (
        "import os, ssl, urllib.request as u; d='/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "r = u.Request('https://kubernetes.default.svc/api/v1', headers={'Authorization': "
        "'Bearer ' + open(d + 'token').read()})\n"
        "print(u.urlopen(r, context=ssl.create_default_context(cafile=d + 'ca.crt')).status)"
    )

    assert cluster.python("server", code) == "200"


def test_logs_are_read_through_the_api_server(cluster: Cluster) -> None:
    """The API server must reach the kubelet under the address in its certificate."""
    cluster.eventually("serving", lambda: cluster.run("logs", "server").splitlines()[0])


def test_a_config_map_reaches_a_pod_that_is_annotated(cluster: Cluster) -> None:
    """The operator relies on the kubelet syncing a pod at once when it changes.

    The two watches race, so the annotation changes again until the pod has it.
    """
    read = "print(open('/etc/test/k').read())"
    cluster.run("patch", "configmap", "words", "--patch", json.dumps({"data": {"k": "2"}}))

    started = time.monotonic()
    for attempt in range(40):
        cluster.run("annotate", "--overwrite", "pod", "server", f"attempt={attempt}")
        try:
            cluster.eventually("2", lambda: cluster.python("server", read), seconds=2)
        except AssertionError:
            continue
        break
    print(f"in the pod after {time.monotonic() - started:.2f} s")

    assert cluster.python("server", read) == "2"


def test_an_unhealthy_device_leaves_the_allocatable_gpus(cluster: Cluster) -> None:
    """A fault as the kubelet reports one on real hardware; the running pod keeps its device."""
    gpus = r"{.status.allocatable.amd\.com/gpu}"
    devices.mark_unhealthy("gpu-2", "gpu-5")
    cluster.eventually("6", lambda: cluster.field(f"node/{NODE_NAME}", gpus))

    devices.mark_healthy()

    cluster.eventually("8", lambda: cluster.field(f"node/{NODE_NAME}", gpus))
    assert cluster.field("pod/server", "{.status.phase}") == "Running"


def test_the_node_has_the_labels_of_amds_node_labeller(cluster: Cluster) -> None:
    """Engine pods select GPUs by device id, then by product name."""
    labels = json.loads(cluster.field(f"node/{NODE_NAME}", "{.metadata.labels}"))

    assert labels["amd.com/gpu.device-id"] == "74a1"
    assert labels["amd.com/gpu.product-name"] == "AMD_Instinct_MI300X_OAM"
    assert labels["beta.amd.com/gpu.device-id.74a1"] == "8"


@pytest.mark.long  # the local example's pod shows the same, see tests/e2e
def test_the_real_vllm_becomes_healthy_in_a_restricted_pod(cluster: Cluster) -> None:
    """The image stands in for AMD's: same entry point, real engine, nothing writable but /tmp."""
    argv = [
        "vllm", "serve", "/opt/vllm/models/target", "--served-model-name=tiny", "--port=8000",
        "--dtype=float32", "--enforce-eager", "--max-model-len=512", "--max-num-seqs=8",
        "--max-num-batched-tokens=512", "--kv-cache-memory-bytes=67108864",
    ]  # fmt: skip
    home = ("HOME", "USER", "LOGNAME", "VLLM_CACHE_ROOT", "HF_HOME", "TORCHINDUCTOR_CACHE_DIR")
    cluster.apply(
        _pod(
            "engine",
            argv,
            container={
                "resources": {"requests": {"cpu": "1"}, "limits": {"amd.com/gpu": "1"}},
                "env": [
                    {"name": name, "value": "vllm" if name in ("USER", "LOGNAME") else "/tmp/home"}
                    for name in home
                ],
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                "readinessProbe": {
                    "httpGet": {"path": "/health", "port": 8000},
                    "periodSeconds": 1,
                },
            },
            volumes=[{"name": "tmp", "emptyDir": {}}],
        )
    )

    started = time.monotonic()
    cluster.run("wait", "--for=condition=Ready", "pod/engine", "--timeout=240s")
    print(f"healthy after {time.monotonic() - started:.0f} s")

    assert cluster.field("pod/engine", "{.status.containerStatuses[0].restartCount}") == "0"

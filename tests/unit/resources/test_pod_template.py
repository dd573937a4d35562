"""The rules that a pod keeps; how it looks as a whole is in the golden files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from speculative_operator.plan.model import plan
from speculative_operator.plan.weights import METHOD_WORDS
from speculative_operator.resources.pod_template import pod_template
from tests.unit.plan.builders import SETTINGS, a_model

DRAFT_MODEL = {"method": "draft_model"}
KEY = "speculation.dev/revision"


def template(**sections: Any) -> dict[str, Any]:
    return pod_template(plan(a_model(**sections), SETTINGS))


def pod(**sections: Any) -> dict[str, Any]:
    found: dict[str, Any] = template(**sections)["spec"]
    return found


def engine(**sections: Any) -> dict[str, Any]:
    (found,) = pod(**sections)["containers"]
    return dict(found)


def mounts(**sections: Any) -> dict[str, dict[str, Any]]:
    return {mount["mountPath"]: mount for mount in engine(**sections)["volumeMounts"]}


def volumes(**sections: Any) -> dict[str, dict[str, Any]]:
    return {volume["name"]: volume for volume in pod(**sections)["volumes"]}


def test_gpus_are_requested_as_they_are_limited() -> None:
    """An extended resource cannot be shared, and typed clients refuse a number."""
    accelerator = {"products": ["MI300X"], "count": 8}
    resources = engine(accelerator=accelerator)["resources"]

    assert resources == {"requests": {"amd.com/gpu": "8"}, "limits": {"amd.com/gpu": "8"}}


def test_resources_of_the_user_are_kept() -> None:
    """They know their nodes."""
    wanted = {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"memory": "96Gi"}}
    resources = engine(runtime={"resources": wanted})["resources"]

    assert resources["requests"] == {"cpu": "8", "memory": "64Gi", "amd.com/gpu": "1"}
    assert resources["limits"] == {"memory": "96Gi", "amd.com/gpu": "1"}


def test_every_container_passes_restricted_pod_security() -> None:
    """Namespaces enforce it, and a pod that is refused is never even created."""
    spec = pod()

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*spec["initContainers"], *spec["containers"]):
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in security
    allowed = {"configMap", "emptyDir", "persistentVolumeClaim"}
    assert all(set(volume) - {"name"} <= allowed for volume in spec["volumes"])


def test_the_user_may_override_security() -> None:
    """AMD's own example loosens seccomp and adds a capability."""
    loosened = {
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"add": ["SYS_PTRACE"]},
        "seccompProfile": {"type": "Unconfined"},
    }
    spec = pod(runtime={"securityContext": loosened, "supplementalGroups": [44, 110]})

    assert spec["securityContext"]["runAsUser"] == 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "Unconfined"}
    assert spec["securityContext"]["supplementalGroups"] == [44, 110]
    assert spec["containers"][0]["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE"]


def test_everything_that_is_written_lies_on_a_volume() -> None:
    """The root file system may be read-only, and belongs to root anyway."""
    found = volumes()
    written = [mounts()[path]["name"] for path in ("/home/engine", "/tmp", "/dev/shm")]

    assert all("emptyDir" in found[name] for name in written)


def test_shared_memory_has_its_size() -> None:
    """Tensor parallelism fails with the 64 MiB that a container has by default."""
    assert volumes(runtime={"sharedMemory": "16Gi"})["shm"]["emptyDir"] == {
        "medium": "Memory",
        "sizeLimit": "16Gi",
    }


def test_liveness_waits_for_the_start() -> None:
    """A kubelet that kills engines while they load never lets one finish."""
    container = engine(runtime={"startupTimeoutSeconds": 3605})
    probe = container["startupProbe"]

    assert probe["failureThreshold"] * probe["periodSeconds"] >= 3605
    assert "initialDelaySeconds" not in container["livenessProbe"]


def test_all_probes_ask_health() -> None:
    """It is open also when an API key is set, unlike /v1."""
    container = engine()
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]

    assert probes == [{"path": "/health", "port": "http"}] * 3


@pytest.mark.parametrize("drain", [0, 120, 3600])
def test_the_grace_period_is_longer_than_the_drain(drain: int) -> None:
    """Else the kubelet kills the engine among its last requests."""
    spec = pod(runtime={"drainSeconds": drain})
    container = spec["containers"][0]
    sleep = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    told = int(container["args"][container["args"].index("--shutdown-timeout") + 1])

    assert told == drain
    assert sleep > 0
    assert spec["terminationGracePeriodSeconds"] > sleep + drain + 15


def test_an_engine_is_always_restarted() -> None:
    """vLLM exits 0 when its engine core dies."""
    assert pod()["restartPolicy"] == "Always"


def test_variables_of_services_stay_out() -> None:
    """A Service called vllm would set VLLM_PORT, which vLLM reads."""
    assert pod()["enableServiceLinks"] is False


def test_the_plugin_is_copied_to_where_python_looks() -> None:
    """A stock image of vLLM finds it there by its entry point."""
    spec = pod()
    (init,) = spec["initContainers"]
    variables = {v["name"]: v.get("value") for v in spec["containers"][0]["env"]}

    assert init["image"] == SETTINGS.plugin_image
    assert init["args"] == ["install", variables["PYTHONPATH"]]
    assert init["volumeMounts"][0]["mountPath"] == variables["PYTHONPATH"]
    assert mounts()[variables["PYTHONPATH"]]["readOnly"] is True


def test_the_plugin_can_be_mounted_without_an_init_container() -> None:
    """Where nodes mount images, a pod starts one container sooner; all else stays as it is."""
    settings = replace(SETTINGS, plugin_image_volume=True)
    mounted, copied = pod_template(plan(a_model(), settings))["spec"], pod()
    (engine,) = mounted["containers"]
    (volume,) = (v for v in mounted["volumes"] if v["name"] == "live-speculation")
    (mount,) = (m for m in engine["volumeMounts"] if m["name"] == "live-speculation")

    assert "initContainers" not in mounted
    assert volume["image"] == {"reference": SETTINGS.plugin_image, "pullPolicy": "IfNotPresent"}
    assert mount["readOnly"] is True
    assert (mount["mountPath"], mount["subPath"]) == ("/opt/speculation", "plugin")
    assert engine["env"] == copied["containers"][0]["env"]
    kubernetes_validate.validate(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": mounted},
        "1.37",
        strict=True,
    )


def test_the_schedule_is_mounted_as_a_folder() -> None:
    """A single file of a ConfigMap is never updated in a running pod."""
    spec = a_model()
    planned = plan(spec, SETTINGS)
    mount = mounts()["/etc/speculation"]

    assert "subPath" not in mount
    assert volumes()["schedule"]["configMap"] == {
        "name": f"llama-{planned.key}-schedule",
        "optional": True,
    }


def test_a_folder_of_a_claim_is_mounted_at_a_neutral_path() -> None:
    """vLLM reads the method out of the draft's path."""
    draft = {"source": "pvc://models/heads/eagle3-head"}
    found = mounts(speculation={**DRAFT_MODEL, "draft": draft})
    (path,) = (path for path, mount in found.items() if "subPath" in mount)

    assert found[path]["subPath"] == "heads/eagle3-head"
    assert found[path]["readOnly"] is True
    assert not any(word in path for word in METHOD_WORDS)


def test_one_claim_for_target_and_draft_is_one_volume() -> None:
    """A pod may list a claim once a volume; ReadWriteOnce would refuse a second attachment."""
    sections: dict[str, Any] = {
        "model": {"source": "pvc://models/target"},
        "speculation": {**DRAFT_MODEL, "draft": {"source": "pvc://models/draft"}},
    }
    claims = [v for v in volumes(**sections).values() if "persistentVolumeClaim" in v]

    assert claims == [
        {"name": "weights-0", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}}
    ]
    assert {m["subPath"] for m in mounts(**sections).values() if "subPath" in m} == {
        "target",
        "draft",
    }


def test_the_image_of_the_user_comes_before_the_operators() -> None:
    """A model may need a newer vLLM."""
    assert engine()["image"] == SETTINGS.engine_image
    assert engine(runtime={"image": "mine:1"})["image"] == "mine:1"


def test_no_token_of_the_cluster_is_mounted() -> None:
    """An engine has nothing to ask the API server, and it may run code of a checkpoint."""
    assert pod()["automountServiceAccountToken"] is False


def test_labels_of_the_overlay_are_added() -> None:
    """The overlay never takes one of the operator's away."""
    over = {"podTemplate": {"metadata": {"labels": {"team": "a"}}}}
    labels = template(runtime=over)["metadata"]["labels"]
    plain = template()["metadata"]["labels"]

    assert labels == {**plain, KEY: labels[KEY], "team": "a"}


def test_a_sidecar_of_the_overlay_stands_beside_the_engine() -> None:
    """Metrics agents and log shippers are common."""
    over = {"podTemplate": {"spec": {"containers": [{"name": "agent", "image": "x"}]}}}
    names = [container["name"] for container in pod(runtime=over)["containers"]]

    assert names == ["engine", "agent"]


def test_downloads_may_be_kept_on_a_claim() -> None:
    """As docs/engines.md says it: else each replacement of a pod downloads its weights anew."""
    page = Path(__file__).resolve().parents[3] / "docs" / "engines.md"
    (block,) = (
        b for b in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL) if "HF_HOME" in b
    )
    runtime = yaml.safe_load(block)["spec"]["runtime"]

    cache = volumes(runtime=runtime)["cache"]["persistentVolumeClaim"]["claimName"]
    (home,) = (v["value"] for v in engine(runtime=runtime)["env"] if v["name"] == "HF_HOME")

    assert cache == "hugging-face"
    assert mounts(runtime=runtime)["/cache"]["name"] == "cache"
    assert home.startswith("/cache/")
    assert pod(runtime=runtime)["securityContext"]["fsGroup"] == 1000

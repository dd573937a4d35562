"""The pod of one engine: vLLM, the plugin beside it, probes, drain, and restricted security."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from speculative_operator.api.names import (
    LABEL_SERVING,
    PORT_HTTP,
    PORT_HTTP_NUMBER,
    PORT_SPECULATION,
    PORT_SPECULATION_NUMBER,
)
from speculative_operator.plan import overlay
from speculative_operator.plan.environment import HOME, PLUGIN_PATH, SCHEDULE_FOLDER
from speculative_operator.plan.model import EnginePlan
from speculative_operator.plan.names import model_names, revision_names
from speculative_operator.resources.metadata import Manifest, labels, pods_of

PROBE_SECONDS = 10
PLUGIN_FOLDER = "plugin"
"""Of the plugin's image."""
UNROUTE_SECONDS = 5
"""After the order to stop, until no Service sends requests any more."""
SPARE_SECONDS = 20
"""On top of un-routing and drain, for vLLM's processes to end; 15 s were seen."""


def pod_template(plan: EnginePlan) -> Manifest:
    """The template that is recorded. Raises ModelInvalid for an overlay of a wrong shape."""
    template = {
        "metadata": {
            "labels": {
                **labels(plan.owner, "engine", revision=plan.key),
                LABEL_SERVING: "true",
            }
        },
        "spec": _pod(plan),
    }
    return overlay.laid_over(template, plan.runtime.pod_template or {})


def _pod(plan: EnginePlan) -> Manifest:
    runtime, names = plan.runtime, model_names(plan.owner)
    security = runtime.security_context
    pull_secrets = [{"name": name} for name in runtime.image_pull_secrets]
    groups = list(runtime.supplemental_groups)
    priority = runtime.priority_class_name
    return {
        "serviceAccountName": runtime.service_account_name or names.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": UNROUTE_SECONDS + runtime.drain_seconds + SPARE_SECONDS,
        **({"imagePullSecrets": pull_secrets} if pull_secrets else {}),
        **({"priorityClassName": priority} if priority is not None else {}),
        "securityContext": {
            "runAsUser": security.run_as_user,
            "runAsGroup": security.run_as_group,
            "runAsNonRoot": security.run_as_non_root,
            "seccompProfile": _seccomp(plan),
            **({"supplementalGroups": groups} if groups else {}),
        },
        "affinity": _affinity(plan),
        **(
            {"nodeSelector": dict(plan.placement.node_selector)}
            if plan.placement.node_selector
            else {}
        ),
        "topologySpreadConstraints": [_spread(plan)],
        "tolerations": [dict(toleration) for toleration in plan.placement.tolerations],
        **({} if plan.settings.plugin_image_volume else {"initContainers": [_plugin(plan)]}),
        "containers": [_engine(plan)],
        "volumes": list(_volumes(plan)),
    }


def _engine(plan: EnginePlan) -> Manifest:
    return {
        "name": overlay.ENGINE,
        "image": plan.engine_image,
        "imagePullPolicy": plan.runtime.image_pull_policy.value,
        "command": ["vllm", "serve"],
        "args": list(plan.arguments),
        "env": [dict(variable) for variable in plan.environment],
        "ports": [
            {"name": PORT_HTTP, "containerPort": PORT_HTTP_NUMBER, "protocol": "TCP"},
            {"name": PORT_SPECULATION, "containerPort": PORT_SPECULATION_NUMBER, "protocol": "TCP"},
        ],
        "resources": _resources(plan),
        "securityContext": _container_security(plan),
        "startupProbe": {
            **_health(PROBE_SECONDS),
            "failureThreshold": ceil(plan.runtime.startup_timeout_seconds / PROBE_SECONDS),
        },
        "readinessProbe": {**_health(5), "failureThreshold": 3},
        "livenessProbe": {**_health(PROBE_SECONDS), "failureThreshold": 6},
        "lifecycle": {"preStop": {"sleep": {"seconds": UNROUTE_SECONDS}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(_mounts(plan)),
    }


def _plugin(plan: EnginePlan) -> Manifest:
    """Copies the plugin to where the engine's Python looks for it."""
    return {
        "name": overlay.PLUGIN,
        "image": plan.settings.plugin_image,
        "imagePullPolicy": plan.settings.plugin_pull_policy.value,
        "args": ["install", PLUGIN_PATH],
        "resources": {
            "requests": {"cpu": "10m", "memory": "32Mi"},
            "limits": {"memory": "128Mi"},
        },
        "securityContext": _container_security(plan),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": overlay.PLUGIN, "mountPath": PLUGIN_PATH}],
    }


def _mounts(plan: EnginePlan) -> Iterator[Manifest]:
    yield {
        "name": overlay.PLUGIN,
        "mountPath": PLUGIN_PATH,
        "readOnly": True,
        **({"subPath": PLUGIN_FOLDER} if plan.settings.plugin_image_volume else {}),
    }
    yield {"name": overlay.SCHEDULE, "mountPath": SCHEDULE_FOLDER, "readOnly": True}
    yield {"name": overlay.HOME_VOLUME, "mountPath": HOME}
    yield {"name": overlay.TEMPORARY, "mountPath": "/tmp"}  # noqa: S108 - a path in the pod
    yield {"name": overlay.SHARED_MEMORY, "mountPath": "/dev/shm"}  # noqa: S108
    claims = _claims(plan)
    for mount in plan.mounts:
        yield {
            "name": f"{overlay.WEIGHTS}-{claims.index(mount.claim)}",
            "mountPath": mount.path,
            "readOnly": True,
            **({} if mount.folder is None else {"subPath": mount.folder}),
        }


def _volumes(plan: EnginePlan) -> Iterator[Manifest]:
    """The schedule may be missing: an engine must start also where nobody has written one."""
    yield {"name": overlay.PLUGIN, **_plugin_source(plan)}
    schedule = revision_names(plan.owner, plan.key).schedule
    yield {"name": overlay.SCHEDULE, "configMap": {"name": schedule, "optional": True}}
    yield {"name": overlay.HOME_VOLUME, "emptyDir": {}}
    yield {"name": overlay.TEMPORARY, "emptyDir": {}}
    yield {
        "name": overlay.SHARED_MEMORY,
        "emptyDir": {"medium": "Memory", "sizeLimit": plan.runtime.shared_memory},
    }
    for number, claim in enumerate(_claims(plan)):
        yield {
            "name": f"{overlay.WEIGHTS}-{number}",
            "persistentVolumeClaim": {"claimName": claim, "readOnly": True},
        }


def _plugin_source(plan: EnginePlan) -> Manifest:
    settings = plan.settings
    if not settings.plugin_image_volume:
        return {"emptyDir": {}}
    policy = settings.plugin_pull_policy.value
    return {"image": {"reference": settings.plugin_image, "pullPolicy": policy}}


def _claims(plan: EnginePlan) -> list[str]:
    """Target and draft may lie in one claim, which is one volume then."""
    return list(dict.fromkeys(mount.claim for mount in plan.mounts))


def _affinity(plan: EnginePlan) -> Manifest:
    terms = [
        {"matchExpressions": [dict(requirement) for requirement in term]}
        for term in plan.placement.terms
    ]
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }
    }


def _spread(plan: EnginePlan) -> Manifest:
    """Over nodes, so that the loss of one takes few replicas; never at the price of a start."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(pods_of(plan.owner))},
    }


def _resources(plan: EnginePlan) -> Manifest:
    """An extended resource cannot be shared, so its request is its limit."""
    gpus = {plan.gpus.resource_name: str(plan.gpus.count)}
    return {
        "requests": {**plan.runtime.resources.requests, **gpus},
        "limits": {**plan.runtime.resources.limits, **gpus},
    }


def _health(period: int) -> Manifest:
    """/health is open also with an API key, and 200 only once the model is loaded."""
    return {
        "httpGet": {"path": "/health", "port": PORT_HTTP},
        "periodSeconds": period,
        "timeoutSeconds": 5,
    }


def _container_security(plan: EnginePlan) -> Manifest:
    security = plan.runtime.security_context
    added = list(security.capabilities.add)
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": security.read_only_root_filesystem,
        "capabilities": {
            "drop": list(security.capabilities.drop),
            **({"add": added} if added else {}),
        },
    }


def _seccomp(plan: EnginePlan) -> dict[str, Any]:
    return plan.runtime.security_context.seccomp_profile.model_dump(
        mode="json", by_alias=True, exclude_none=True
    )

"""The CustomResourceDefinition, made from the pydantic models.

Kubernetes wants a structural schema: every `$ref` inlined, no `anyOf` with null (an absent field
says the same), no titles. What pydantic has no word for (rules, list types) stands in the models as
`x-kubernetes-…` extras and passes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from speculative_operator.api.base import GROUP, KIND, PLURAL, VERSION, ApiModel
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.status import ModelStatus

CRD_NAME = f"{PLURAL}.{GROUP}"
SHORT_NAME = "spm"
CATEGORY = "all"

Schema = dict[str, Any]

_LEFT_OUT = frozenset({"title", "anyOf", "$ref", "propertyNames", "const", "default"})


def structural(model: type[ApiModel], mode: Literal["validation", "serialization"]) -> Schema:
    """The structural schema of a model: as users write it, or as the operator serialises it."""
    whole = model.model_json_schema(by_alias=True, mode=mode)
    return _inlined(whole, whole.get("$defs", {}))


def _inlined(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """One node without references, unions with null, titles and defaults that say nothing."""
    node = _merged(node, definitions)
    if "const" in node:
        node = {**node, "enum": [node["const"]]}
    result = {key: value for key, value in node.items() if key not in _LEFT_OUT and key != "$defs"}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "properties" in node:
        result["properties"] = {
            name: _inlined(each, definitions) for name, each in node["properties"].items()
        }
    if isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _inlined(node["additionalProperties"], definitions)
    elif "additionalProperties" in node:
        del result["additionalProperties"]
    if "patternProperties" in node:
        del result["patternProperties"]
    if node.get("type") == "array":
        result["items"] = _inlined(node["items"], definitions)
        result.setdefault("x-kubernetes-list-type", "atomic")
    if result.get("x-kubernetes-int-or-string"):
        del result["type"]
    if isinstance(node.get("default"), str | int | float):
        result["default"] = node["default"]
    return result


def _merged(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """The node with what it refers to, or its only alternative besides null, laid under it."""
    if "anyOf" in node:
        (alternative,) = (each for each in node["anyOf"] if each.get("type") != "null")
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        return _merged({**alternative, **rest}, definitions)
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix("#/$defs/")]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _merged({**target, **rest}, definitions)
    return dict(node)


def _column(name: str, kind: str, path: str, *, wide: bool = False) -> Schema:
    """A column of `kubectl get`; wide ones show with `-o wide` only."""
    column = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": 1} if wide else column


UNSEEN = {"observedGeneration": -1}
"""The status of a model that no operator has seen yet. No generation is -1, so that kstatus, which
takes an object without a status for finished, waits. Flux's own kinds do the same."""

COLUMNS = (
    _column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
    _column("Mode", "string", ".status.mode"),
    _column("K", "integer", ".status.proposalLength"),
    _column("Acceptance", "string", ".status.evidence.acceptance"),
    _column("Speedup", "string", ".status.evidence.speedup"),
    _column("Age", "date", ".metadata.creationTimestamp"),
    _column("Method", "string", ".spec.speculation.method", wide=True),
    _column("Replicas", "integer", ".status.replicas", wide=True),
    _column("Length", "string", ".status.evidence.acceptanceLength", wide=True),
    _column("Tuned", "string", '.status.conditions[?(@.type=="Tuned")].reason', wide=True),
    _column("Revision", "string", ".status.revisions.current", wide=True),
    _column("Why", "string", '.status.conditions[?(@.type=="Ready")].reason', wide=True),
)


def custom_resource_definition() -> Schema:
    """The whole CustomResourceDefinition, ready to be applied."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": [CATEGORY],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": list(COLUMNS),
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        },
                    },
                    "schema": {"openAPIV3Schema": _resource_schema()},
                }
            ],
        },
    }


def _resource_schema() -> Schema:
    return {
        "type": "object",
        "description": "A model served on AMD GPUs with speculative decoding, whose proposal "
        "length is tuned by measurement.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{KIND}."},
            "metadata": {"type": "object"},
            "spec": structural(SpeculativeModelSpec, "validation"),
            "status": {**structural(ModelStatus, "serialization"), "default": UNSEEN},
        },
    }

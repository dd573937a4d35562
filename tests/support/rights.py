"""What an account may do, and what it was seen to do: as sets that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from local.audit import Request

Manifest = Mapping[str, Any]

EXPLAINED = re.compile(r"# not seen in tests: (?P<verb>\w+) (?P<resource>[\w./]+): (?P<why>.+)")
FORBIDDEN = 403


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource, which is written `leases.coordination.k8s.io` or `pods`, with a
    subresource behind a stroke."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def rules_of(account: str, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Every rule of each role that is bound to a service account of that name."""
    made = tuple(manifests)
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in made
        if binding["kind"].endswith("RoleBinding")
        and any(subject["name"] == account for subject in binding["subjects"])
    }
    for role in made:
        if (role["kind"], role["metadata"]["name"]) in bound:
            yield from role["rules"]


def granted(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    """By rules of roles; names of resources are left out of account."""
    return {
        Right(verb, _resource(resource, group))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(requests: Iterable[Request], user: str) -> set[Right]:
    """By the audit log, as far as it was allowed."""
    return {
        Right(request.verb, _resource(f"{request.resource}/{request.subresource}", request.group))
        for request in requests
        if request.user == user and request.resource and request.code != FORBIDDEN
    }


def explained(template: str) -> Iterator[Right]:
    """Rights of which the template says why no test needs them."""
    for found in EXPLAINED.finditer(template):
        yield Right(found["verb"], found["resource"])


def _resource(path: str, group: str) -> str:
    name, _, subresource = path.partition("/")
    full = f"{name}.{group}" if group else name
    return f"{full}/{subresource}" if subresource else full

"""Names of a model's children: DNS labels of at most 63 characters that never collide.

A model's name may be longer, hold dots or start with a digit, which a Service's may not. Such a
name is cut and cleaned, and a hash of the whole name is put in its place, so that two models that
are cut alike stay apart.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from speculative_operator.api.resource import SpeculativeModel

LONGEST = 63
HASH_LENGTH = 8
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True)
class Owner:
    """The model that children belong to."""

    name: str
    namespace: str
    uid: str

    @classmethod
    def of(cls, model: SpeculativeModel) -> Owner:
        return cls(model.metadata.name, model.metadata.namespace, model.metadata.uid)


@dataclass(frozen=True)
class ModelNames:
    """Children that a model has once."""

    service: str
    service_account: str
    memory: str
    """The ConfigMap that holds the tuner's memory."""
    disruption_budget: str


@dataclass(frozen=True)
class RevisionNames:
    """Children that every revision has."""

    deployment: str
    controller_revision: str
    schedule: str
    """The ConfigMap that holds the schedule file."""


def model_names(owner: Owner) -> ModelNames:
    """Names of the children of `owner` that outlive revisions."""
    plain = child_name(owner.name)
    return ModelNames(
        service=plain,
        service_account=plain,
        memory=child_name(owner.name, "tuning"),
        disruption_budget=plain,
    )


def revision_names(owner: Owner, key: str) -> RevisionNames:
    """Names of the children of `owner` for the revision `key`."""
    plain = child_name(owner.name, key)
    return RevisionNames(
        deployment=plain,
        controller_revision=plain,
        schedule=child_name(owner.name, key, "schedule"),
    )


def child_name(model: str, *suffixes: str) -> str:
    """`<model>-<suffix>…`, with the model's part replaced as the module says where it must be."""
    whole = "-".join((model, *suffixes))
    if len(whole) <= LONGEST and DNS_LABEL.fullmatch(model):
        return whole
    room = LONGEST - sum(len(suffix) + 1 for suffix in suffixes) - HASH_LENGTH - 1
    cleaned = re.sub(r"[^a-z0-9-]", "-", model)
    if not cleaned[0].isalpha():
        cleaned = f"m-{cleaned}"
    return "-".join((cleaned[:room].rstrip("-"), _hash(model), *suffixes))


def label_value(name: str) -> str:
    """`name` as a label value: itself, or cut to 63 characters with a hash."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - HASH_LENGTH - 1].rstrip('-.')}-{_hash(name)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]

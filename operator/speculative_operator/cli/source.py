"""What is known of a model, and its memory as a saved ConfigMap has it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from speculative_operator.api.status import ModelStatus
from speculative_operator.errors import OperatorError, in_a_line
from speculative_operator.tuning.history import Entry, entries
from speculative_operator.tuning.memory import UNDERSTOOD, VERSION, Memory, format_of, from_data
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State


class NothingKnown(OperatorError):
    """There is no such model, or nothing was recorded of it; the message says what to do."""


@dataclass(frozen=True)
class Record:
    """What the tuner remembers of one model: its past, oldest first, and what it knows of the
    revision that was tuned last."""

    past: tuple[Entry, ...]
    state: State

    @property
    def policy(self) -> Policy:
        """The settings of the last decision."""
        return self.past[-1].policy


@dataclass(frozen=True)
class Found:
    """One model. `record` is None where nothing could be had, and `gap` says why."""

    title: str
    status: ModelStatus | None
    record: Record | None
    gap: str = ""

    def recorded(self) -> Record:
        """The record; raises NothingKnown."""
        if self.record is None:
            raise NothingKnown(self.gap)
        return self.record


def from_file(path: Path) -> Found:
    """What `kubectl get configmap NAME-tuning -o yaml` has saved."""
    try:
        manifest = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise NothingKnown(f"{path} cannot be read: {in_a_line(error)}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("data"), dict):
        raise NothingKnown(
            f"{path} is no ConfigMap with data: "
            "save one by `kubectl get configmap NAME-tuning -o yaml`"
        )
    metadata = manifest.get("metadata") or {}
    record = record_of(manifest)
    gap = "" if record else f"{path}: {why_nothing(manifest)}"
    return Found(str(metadata.get("name", path.name)), None, record, gap)


NO_HISTORY = (
    "no window was recorded yet; one needs 400 drafts or a minute of traffic, on engines that can "
    "be tuned"
)


def why_nothing(config_map: Mapping[str, Any]) -> str:
    """Why a tuning ConfigMap holds no record."""
    found = format_of(config_map.get("data") or {})
    if found is None or found in UNDERSTOOD:
        return NO_HISTORY
    return (
        f"was written in memory format {found}, and this command reads format {VERSION}: take the "
        "command of the operator's version, see `kubectl speculation version`"
    )


def record_of(config_map: Mapping[str, Any]) -> Record | None:
    """What a tuning ConfigMap holds; None where it has no history."""
    memory = _memory(config_map)
    past = tuple(entries(memory.history))
    if not past or past[-1].key not in memory.revisions:
        return None
    return Record(past, memory.revisions[past[-1].key])


def _memory(config_map: Mapping[str, Any]) -> Memory:
    try:
        binary = {
            str(key): base64.b64decode(value, validate=True)
            for key, value in (config_map.get("binaryData") or {}).items()
        }
    except (binascii.Error, TypeError, ValueError):
        binary = {}
    return from_data(config_map.get("data") or {}, binary)

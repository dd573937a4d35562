"""The stored resource, read. What an API server once accepted may not fit the models of today."""

from __future__ import annotations

from pydantic import ValidationError

from speculative_operator.api.resource import SpeculativeModel
from speculative_operator.cluster.manifests import Manifest
from speculative_operator.errors import ModelInvalid


def stored_model(manifest: Manifest) -> SpeculativeModel:
    """The model. Raises ModelInvalid, which names each field that does not fit."""
    try:
        return SpeculativeModel.model_validate(manifest)
    except ValidationError as error:
        problems = (f"{_path(entry['loc'])}: {entry['msg']}" for entry in error.errors())
        raise ModelInvalid("; ".join(problems)) from error


def _path(location: tuple[int | str, ...]) -> str:
    """`spec.tuning.bounds`, `spec.model.servedNames[0]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")

"""The program that `helm test` runs in its pod."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import pytest

from speculative_operator.api.conditions import Reason
from tests.support.helm import CHART


@pytest.fixture
def program() -> ModuleType:
    """The file, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("test_model", CHART / "files" / "test_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_model(reason: str, *, kind: str = "Ready", status: str = "False") -> dict[str, Any]:
    told = {"type": kind, "status": status, "reason": reason, "message": "words"}
    return {
        "metadata": {"name": "m", "generation": 2},
        "status": {"conditions": [{**told, "observedGeneration": 2}]},
    }


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (a_model(Reason.NO_NODE_FITS), "write a product that you have into test.model"),
        (a_model("StartFailed", kind="Stalled", status="True"), "StartFailed: words"),
    ],
)
def test_the_test_ends_where_the_model_cannot_become_ready(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, model: dict[str, Any], words: str
) -> None:
    """Half an hour of waiting would end in the same, without a reason."""
    monkeypatch.setattr(program, "call", lambda verb, path: model)
    monkeypatch.setattr(program.time, "sleep", lambda seconds: None)

    with pytest.raises(SystemExit, match=words):
        program.wait("/m")


def test_the_test_waits_for_a_node_that_is_made_for_it(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool that scales from zero has none at first."""
    nowhere = [a_model(Reason.NO_NODE_FITS)] * program.PATIENCE
    seen = iter([*nowhere, a_model("Serving", status="True")])
    monkeypatch.setattr(program, "call", lambda verb, path: next(seen))
    monkeypatch.setattr(program.time, "sleep", lambda seconds: None)

    program.wait("/m")


def test_the_test_waits_for_gpus_that_are_in_use(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may come free, and of an older spec nothing is believed."""
    old = a_model(Reason.NO_NODE_FITS)
    old["metadata"]["generation"] = 3
    seen = iter([a_model(Reason.WAITING_FOR_GPUS), old, a_model("Serving", status="True")])
    monkeypatch.setattr(program, "call", lambda verb, path: next(seen))
    monkeypatch.setattr(program.time, "sleep", lambda seconds: None)

    program.wait("/m")

    assert next(seen, None) is None

"""The simulated GPUs: what tests say about them and what the kubelet will hear."""

from __future__ import annotations

from pathlib import Path

import pytest

from local import devices


@pytest.fixture(autouse=True)
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "devices.json"
    monkeypatch.setattr(devices, "DEVICES", file)
    return file


def test_without_a_file_there_are_eight_healthy_devices() -> None:
    """A new cluster offers what a node of eight MI300X offers."""
    assert devices.read().ids == tuple(f"gpu-{n}" for n in range(8))
    assert devices.read().unhealthy == frozenset()


def test_a_device_stays_unhealthy_until_it_is_healed() -> None:
    """A second fault must not heal the first one."""
    devices.mark_unhealthy("gpu-1")
    devices.mark_unhealthy("gpu-3")

    assert devices.read().unhealthy == {"gpu-1", "gpu-3"}

    devices.mark_healthy("gpu-1")

    assert devices.read().unhealthy == {"gpu-3"}


def test_healing_without_ids_heals_all() -> None:
    """A test's clean-up does not know which devices it broke."""
    devices.mark_unhealthy("gpu-0", "gpu-7")

    assert devices.mark_healthy().unhealthy == frozenset()


def test_an_unknown_device_is_refused_by_name() -> None:
    """A typing error would otherwise be a fault that never happens."""
    with pytest.raises(ValueError, match="no such device: gpu-8"):
        devices.mark_unhealthy("gpu-8")


def test_a_smaller_count_keeps_the_fault_of_a_device_that_is_gone() -> None:
    """The device comes back as it was: unhealthy."""
    devices.mark_unhealthy("gpu-7")
    devices.set_count(4)

    assert len(devices.read().ids) == 4

    assert "gpu-7" in devices.set_count(8).unhealthy

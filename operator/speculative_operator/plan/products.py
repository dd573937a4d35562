"""AMD's accelerators as nodes know them: device ids, product names, architecture.

Source: ROCm/k8s-device-plugin and the kernel's amdgpu.ids. Device ids of virtual functions are
listed too; such nodes carry no product name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from speculative_operator.api.hardware import Product


@dataclass(frozen=True)
class Accelerator:
    """One product."""

    gfx: str
    memory: int
    """HBM in GiB."""
    device_ids: tuple[str, ...]
    """PCI device ids in the labels' form: lower case, no 0x."""
    product_names: tuple[str, ...]
    """Values of the label `amd.com/gpu.product-name`."""

    @property
    def has_aiter(self) -> bool:
        """AITER's kernels exist for CDNA 3 and 4 only."""
        return self.gfx in {"gfx942", "gfx950"}


def _names(*models: str) -> tuple[str, ...]:
    return tuple(f"AMD_Instinct_{model}" for model in models)


ACCELERATORS: Mapping[Product, Accelerator] = MappingProxyType(
    {
        Product.MI210: Accelerator("gfx90a", 64, ("740f", "7410"), _names("MI210")),
        Product.MI250X: Accelerator(
            "gfx90a", 128, ("7408", "740c"), _names("MI250", "MI250X", "MI250X_MI250")
        ),
        Product.MI300A: Accelerator("gfx942", 128, ("74a0",), _names("MI300A")),
        Product.MI300X: Accelerator(
            "gfx942",
            192,
            ("74a1", "74a9", "74b5", "74bd"),
            _names("MI300X", "MI300X_OAM", "MI300X_HF"),
        ),
        Product.MI308X: Accelerator(
            "gfx942",
            192,
            ("74a2", "74a8", "74b6", "74bc"),
            _names("MI308X", "MI308X_OAM", "MI308X_HF"),
        ),
        Product.MI325X: Accelerator(
            "gfx942", 256, ("74a5", "74b9"), _names("MI325X", "MI325X_OAM")
        ),
        Product.MI350X: Accelerator(
            "gfx950", 288, ("75a0", "75b0"), _names("MI350X", "MI350X_OAM")
        ),
        Product.MI355X: Accelerator(
            "gfx950", 288, ("75a3", "75b3"), _names("MI355X", "MI355X_OAM")
        ),
    }
)

"""The simulated GPUs of the node: how many there are and which are healthy.

`python -m local.devices` lists them; `unhealthy ID…`, `healthy ID…` and `count N` change them. The
device plugin reads the same file and tells the kubelet within a fraction of a second; the node's
status follows within two more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from local.layout import DEVICES

DEFAULT_COUNT = 8


@dataclass(frozen=True)
class Devices:
    """`count` devices, `gpu-0` and up, of which some are unhealthy."""

    count: int = DEFAULT_COUNT
    unhealthy: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(f"gpu-{number}" for number in range(self.count))


def read() -> Devices:
    """The devices as last written; eight healthy ones when nobody wrote any."""
    if not DEVICES.exists():
        return Devices()
    stored = json.loads(DEVICES.read_text())
    return Devices(stored["count"], frozenset(stored["unhealthy"]))


def _write(devices: Devices) -> Devices:
    DEVICES.parent.mkdir(parents=True, exist_ok=True)
    scratch = DEVICES.with_suffix(".new")
    scratch.write_text(json.dumps({"count": devices.count, "unhealthy": sorted(devices.unhealthy)}))
    scratch.replace(DEVICES)
    return devices


def set_count(count: int) -> Devices:
    """Offers `count` devices; zero is a node whose GPUs are all gone."""
    return _write(replace(read(), count=count))


def mark_unhealthy(*ids: str) -> Devices:
    """The kubelet takes these out of the node's allocatable GPUs; running pods keep theirs."""
    devices = read()
    return _write(replace(devices, unhealthy=devices.unhealthy | _known(devices, ids)))


def mark_healthy(*ids: str) -> Devices:
    """Takes a fault back; without ids, all of them."""
    devices = read()
    healed = _known(devices, ids) if ids else devices.unhealthy
    return _write(replace(devices, unhealthy=devices.unhealthy - healed))


def _known(devices: Devices, ids: Sequence[str]) -> frozenset[str]:
    if unknown := sorted(set(ids) - set(devices.ids)):
        raise ValueError(f"no such device: {', '.join(unknown)}; there are {devices.ids}")
    return frozenset(ids)


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case []:
            devices = read()
        case ["unhealthy", *ids] if ids:
            devices = mark_unhealthy(*ids)
        case ["healthy", *ids]:
            devices = mark_healthy(*ids)
        case ["count", number] if number.isdecimal():
            devices = set_count(int(number))
        case _:
            sys.exit("usage: python -m local.devices [unhealthy ID… | healthy [ID…] | count N]")
    for name in devices.ids:
        print(name, "Unhealthy" if name in devices.unhealthy else "Healthy")


if __name__ == "__main__":
    main(sys.argv[1:])

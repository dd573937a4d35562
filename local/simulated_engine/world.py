"""What a test may change about a simulated engine while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum


class PageFault(StrEnum):
    """What is wrong with the pages that the engine serves; `local.simulated_engine.faults` does it.

    `RESET` happens once, when it is set: the counters start at zero again and the pages are whole.
    `UNMEASURED` is no fault of a page: the plugin says that it does not know this vLLM.
    """

    NONE = "none"
    VANISHED = "vanished"
    TRUNCATED = "truncated"
    NAN = "nan"
    TWO_MODELS = "two-models"
    UNREACHABLE = "unreachable"
    RESET = "reset"
    CONTRADICTORY = "contradictory"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class World:
    """Conditions from the next step on. The defaults are the table's own figures."""

    acceptance: float = 1.0
    """Position i (from 1) is accepted `acceptance`^i times as often: 1 healthy, 0 a dead draft."""
    speculation_cost: float = 1.0
    """Factor on c(K) of every K > 0."""
    slowdown: float = 1.0
    """Factor on every step, plain ones too."""
    silent: bool = False
    """True: no drafts are made, whatever K asks for, and steps take as long as with them."""
    page: PageFault = PageFault.NONE
    healthy: bool = True
    """False: /health answers 503, all else goes on."""
    hung: bool = False
    """True: no step finishes any more; requests stay running and /health says 200."""
    speaker: str = ""
    """Another one says something else to the same prompt, as a model with other weights does."""
    age: float = 0.0
    """Seconds by which its page tells of an earlier start than its own."""
    crash: str = ""
    """Not empty: the engine core dies with this message."""

    def changed(self, wanted: Mapping[str, object]) -> World:
        """This world with some fields changed. ValueError names a field or value that is wrong."""
        types = {field.name: type(getattr(World(), field.name)) for field in fields(World)}
        unknown = sorted(set(wanted) - set(types))
        if unknown:
            raise ValueError(f"no such condition: {', '.join(unknown)}; there are {list(types)}")
        values = {}
        for name, value in wanted.items():
            kind = types[name]
            plain = str if kind is PageFault else (int, float) if kind is float else kind
            if not isinstance(value, plain) or (kind is float and isinstance(value, bool)):
                raise ValueError(f"{name}: must be of type {kind.__name__}, not {value!r}")
            values[name] = kind(value)
        return replace(self, **values)

    def to_json(self) -> str:
        """All conditions, as the control port answers them."""
        return json.dumps(asdict(self))

"""What the policy would have decided on recorded windows, with the same settings or with others.

The windows stay what they were. Once a decision differs, later windows hold the steps of what was
played, not of what replay has in force; what they tell of other K still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.history import Entry
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State


@dataclass(frozen=True, slots=True)
class Step:
    """What was decided, and what would have been."""

    entry: Entry
    decision: Decision

    @property
    def same(self) -> bool:
        """Whether the engines would have been told the same."""
        return self.entry.plays_as(self.decision)


def replayed(
    entries: Iterable[Entry], changed: Callable[[Policy], Policy] = lambda policy: policy
) -> Iterator[Step]:
    """The steps from the first entry on that holds its state; `changed` gives other settings.

    While nothing differs, a state that is held is gone on from: it also has what a restart of the
    operator lost. After that the replay goes on from its own, until another revision begins.
    """
    key, state, same = "", None, True
    for entry in entries:
        if entry.key != key:
            key, state, same = entry.key, None, True
        state = _state(entry, state, same=same)
        if state is None:
            continue
        decision = decide(entry.window, state, changed(entry.policy), entry.occasion)
        step = Step(entry, decision)
        state, same = decision.state, same and step.same
        yield step


def _state(entry: Entry, state: State | None, *, same: bool) -> State | None:
    held = entry.before is not None and (state is None or same)
    return entry.before if held else state

"""The decisions on one model, one after the other, with what is kept and counted of them."""

from __future__ import annotations

from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.history import Entry, History
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.state import State
from speculative_operator.tuning.tally import Tally
from speculative_operator.tuning.window import Window


class Decisions:
    """`history` goes on from what was saved, `tally` counts from now."""

    def __init__(self, key: str, history: History) -> None:
        self.history = history
        self.tally = Tally()
        self._key = key

    def next(
        self, window: Window | None, state: State, policy: Policy, occasion: Occasion
    ) -> Decision:
        """The decision, which goes into the history unless it says nothing new."""
        decision = decide(window, state, policy, occasion)
        if window is not None or decision.state != state:
            entry = Entry(
                key=self._key,
                policy=policy,
                occasion=occasion,
                window=window,
                table=decision.table,
                trials=decision.trials,
                changes=decision.changes,
                variant=decision.variant,
                sensor=decision.sensor,
                before=state,
            )
            self.history = self.history.after(entry)
            self.tally = self.tally.after(state, decision, window, policy)
        return decision


def to_be_known(before: Decision, after: Decision) -> bool:
    """Whether what is to be played, run or waited for is another than before: a new operator has to
    know that, or it would begin the same look or the same wait again."""
    old, new = before.state, after.state
    return bool(after.changes) or (before.table, before.sensor, old.look, old.asked, old.fault) != (
        after.table,
        after.sensor,
        new.look,
        new.asked,
        new.fault,
    )

"""The decision: evidence and policy in, schedule and reasons out. One pure function.

obey the user       bounds and mode, at once and without evidence
check the counters  broken ones teach nothing
learn               acceptance, and step cost per batch bucket
faults              acceptance that no sound draft has is told, and the draft given up
choose              per bucket the K of the highest expected goodput, or of shorter steps
look                trials of other K where they are worth their cost
restart             engines without speculation, where that pays for the restart, and back
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from speculative_operator.api.tuning import TuningMode
from speculative_operator.tuning.acceptance import Lengths
from speculative_operator.tuning.asked import heard, refused
from speculative_operator.tuning.bounds import within_bounds
from speculative_operator.tuning.choose import chosen
from speculative_operator.tuning.conditions import health, tuned
from speculative_operator.tuning.explain import evidence, speedup
from speculative_operator.tuning.faults import broken, still_broken
from speculative_operator.tuning.guard import guarded
from speculative_operator.tuning.learn import learned
from speculative_operator.tuning.looks import looked
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.policy import Policy
from speculative_operator.tuning.restart import restarted, sensing
from speculative_operator.tuning.schedule import Table, Trial
from speculative_operator.tuning.state import State
from speculative_operator.tuning.variant import Variant
from speculative_operator.tuning.variant_looks import Grounds
from speculative_operator.tuning.verdict import Change, Notice, Verdict
from speculative_operator.tuning.window import Window


@dataclass(frozen=True, slots=True)
class Decision:
    """What to play, what is now known, and what to tell.

    `variant` is how the engines are to be started; with `sensor` one replica is to speculate
    although the others do not. `changes` are new in this decision; all that are kept are in
    `state.changes`.
    """

    state: State
    table: Table
    trials: tuple[Trial, ...]
    healthy: Verdict
    tuned: Verdict
    variant: Variant = Variant.SPECULATIVE
    sensor: bool = False
    changes: tuple[Change, ...] = ()
    notices: tuple[Notice, ...] = ()


def decide(window: Window | None, state: State, policy: Policy, at: Occasion) -> Decision:
    """The schedule to play after a window with evidence, or after none (then only the user's
    commands count), and the variant to run.
    """
    before = state.asked
    state, changes = within_bounds(state, policy, at.now)
    notices: tuple[Notice, ...] = ()
    lengths: Mapping[int, Lengths] = {}
    if window is not None:
        state = replace(
            state,
            broken=still_broken(state.broken, broken(window, policy.method)),
            repeats=state.repeats.after(window.prompts),
        )
        if state.broken is None:
            state = learned(state, window, policy, at.now)
            lengths = state.lengths(policy)
            told = evidence(window, speedup(state, lengths), now=at.now)
            state = replace(state, evidence=told)
            state, notices = guarded(state, window, policy, at.now)
            state, better = chosen(state, lengths, window, policy, at.now)
            changes += better
    asked = heard(state, policy, at.asked, window)
    ask = asked != before
    notices += refused(state, policy) if ask else ()
    measured = window if state.broken is None else None
    state = looked(state, lengths, measured, policy, asked)
    grounds = Grounds(policy, measured, lengths, at.running, at.now, ask)
    state, moved, said = restarted(state, grounds)
    changes, notices = changes + moved, notices + said
    off = policy.mode is TuningMode.OFF
    return Decision(
        state=state,
        table=policy.fixed if off else state.table,
        trials=state.look.trials if state.look and not policy.hands_off else (),
        healthy=health(state, policy),
        tuned=tuned(state, policy),
        variant=state.restart.variant,
        sensor=sensing(state, policy),
        changes=changes,
        notices=notices + tuple(Notice(change.reason, change.message) for change in changes),
    )

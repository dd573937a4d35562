"""What a model's spec allows the tuner, for the revision that runs."""

from __future__ import annotations

from collections.abc import Mapping

from speculative_operator.api.exposure import RolloutStrategy
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.tuning import FallbackLevel, TuningMode
from speculative_operator.plan.facts import RevisionFacts
from speculative_operator.plan.schedule import fixed_table
from speculative_operator.tuning.decide import Decision, decide
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.policy import Policy, RestartLimits, WindowLimits
from speculative_operator.tuning.prior import prior_of
from speculative_operator.tuning.schedule import ScheduleFile, Trial
from speculative_operator.tuning.state import State
from speculative_operator.tuning.trials import LONGEST_BLOCK

SURGES: Mapping[RolloutStrategy, bool | None] = {
    RolloutStrategy.SURGE: True,
    RolloutStrategy.IN_PLACE: False,
    RolloutStrategy.AUTO: None,
}
"""Whether a restart starts one pod more first; None where that depends on free GPUs."""

TRIAL_ROUNDS = 100_000
"""Of a revision on trial: more than it is ever on trial for."""


def policy_of(spec: SpeculativeModelSpec, facts: RevisionFacts) -> Policy:
    """Live limits from the spec of today; what the engine can do from its recorded revision.

    Started without a schedule, vLLM plays the capacity at every batch size.
    """
    tuning = spec.tuning
    at_capacity = bool(facts.choices) and not facts.schedule
    started = facts.capacity if at_capacity else facts.initial
    fixed = fixed_table(spec, facts.choices)
    return Policy(
        mode=tuning.mode,
        method=facts.method.value,
        choices=facts.choices,
        initial=started,
        max_num_seqs=facts.max_num_seqs,
        fixed=((1, facts.max_num_seqs, started),) if at_capacity else fixed,
        low=tuning.bounds.min or 0,
        high=facts.capacity if tuning.bounds.max is None else tuning.bounds.max,
        minimum_gain=tuning.minimum_gain_percent / 100,
        throughput_loss=tuning.throughput_loss,
        trial_share=tuning.trial_share_percent / 100,
        restart=RestartLimits(
            wanted=tuning.fallback.level is FallbackLevel.RESTART,
            downtime=tuning.fallback.allow_downtime,
            sensor=tuning.fallback.sensor,
            surge=SURGES[spec.rollout.strategy],
            replicas=spec.replicas,
            drain=spec.runtime.drain_seconds,
        ),
        window=WindowLimits(
            drafts=tuning.window.drafts,
            least_seconds=tuning.window.min_seconds,
            most_seconds=tuning.window.max_seconds,
        ),
        prior=prior_of(facts.method.value),
    )


def first_decision(policy: Policy) -> Decision:
    """What the tuner says of a revision of which nothing is known yet."""
    return decide(None, State(), policy, Occasion(0.0))


def trial_text(policy: Policy) -> str:
    """The schedule file of a revision on trial: all its lengths in turn, since it is held against
    the running one at its best."""
    first = first_decision(policy)
    played = {k for _, _, k in first.table}
    others = tuple(k for k in trial_arms(policy) if k not in played)
    trial = Trial(
        batch=(1, policy.max_num_seqs),
        arms=others,
        share=policy.trial_share,
        block=LONGEST_BLOCK,
        rounds=TRIAL_ROUNDS,
    )
    trials = (trial,) if others else ()
    return ScheduleFile(first.table, trials, look=first.state.looks).to_json()


def trial_arms(policy: Policy) -> tuple[int, ...]:
    """The lengths that tuning may choose, where it may try them; else those that are played."""
    tried = policy.mode is TuningMode.AUTO and policy.live and policy.trial_share > 0
    if tried:
        return policy.arms
    return tuple(sorted({k for _, _, k in first_decision(policy).table}))


def start_text(policy: Policy) -> str:
    """The schedule file of a revision that nobody has tuned yet."""
    first = first_decision(policy)
    return ScheduleFile(first.table, first.trials, look=first.state.looks).to_json()

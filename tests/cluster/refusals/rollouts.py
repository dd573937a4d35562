"""How a change reaches the running pods."""

from __future__ import annotations

from tests.cluster.refusals.refusal import Refusal

TRIAL = "rollout.trial"

ROLLOUT_REFUSALS = (
    Refusal(
        "an unknown strategy",
        {"rollout.strategy": "Recreate"},
        r'spec.rollout.strategy: .*supported values: "Auto", "Surge", "InPlace"',
        {"rollout.strategy": "Auto"},
    ),
    Refusal(
        "a surge without time",
        {"rollout.surgeTimeoutSeconds": 0},
        "spec.rollout.surgeTimeoutSeconds: .*should be greater than or equal to 1",
        {"rollout.surgeTimeoutSeconds": 600},
    ),
    Refusal(
        "no pod that may be missing",
        {"rollout.maxUnavailable": 0},
        "spec.rollout.maxUnavailable: .*should be greater than or equal to 1",
        {"rollout.maxUnavailable": 2},
    ),
    Refusal(
        "a share of pods that may be missing",
        {"rollout.maxUnavailable": "25%"},
        "spec.rollout.maxUnavailable: .*must be of type integer",
    ),
    Refusal(
        "a progress deadline before anything could start",
        {"rollout.progressDeadlineSeconds": 5},
        "spec.rollout.progressDeadlineSeconds: .*should be greater than or equal to 30",
        {"rollout.progressDeadlineSeconds": 3600},
    ),
    Refusal(
        "weights of no size",
        {"model.weightsSize": "large"},
        "spec.model.weightsSize: .*not a quantity",
        {"model.weightsSize": "140Gi"},
    ),
    Refusal(
        "a cache of no size",
        {"model.kvCachePerToken": "18 KiB"},
        "spec.model.kvCachePerToken: .*not a quantity",
        {"model.kvCachePerToken": "18Ki"},
    ),
)

TRIAL_REFUSALS = (
    Refusal(
        "an unknown mode of trials",
        {f"{TRIAL}.mode": "Sometimes"},
        r'spec.rollout.trial.mode: .*supported values: "Auto", "Off"',
        {f"{TRIAL}.mode": "Off"},
    ),
    Refusal(
        "a tolerance below 0",
        {f"{TRIAL}.tolerance": -0.1},
        "spec.rollout.trial.tolerance: .*should be greater than or equal to 0",
        {f"{TRIAL}.tolerance": 0},
    ),
    Refusal(
        "a tolerance of a whole vocabulary",
        {f"{TRIAL}.tolerance": 21},
        "spec.rollout.trial.tolerance: .*should be less than or equal to 20",
        {f"{TRIAL}.tolerance": 0.25},
    ),
    *(
        Refusal(
            f"a slowdown of {percent} %",
            {f"{TRIAL}.maxSlowdownPercent": percent},
            f"spec.rollout.trial.maxSlowdownPercent: .*should be {words}",
            {f"{TRIAL}.maxSlowdownPercent": 50},
        )
        for percent, words in ((0, "greater than or equal to 1"), (91, "less than or equal to 90"))
    ),
    Refusal(
        "a trial without time",
        {f"{TRIAL}.timeoutSeconds": 0},
        "spec.rollout.trial.timeoutSeconds: .*should be greater than or equal to 1",
        {f"{TRIAL}.timeoutSeconds": 60},
    ),
)

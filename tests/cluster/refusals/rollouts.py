"""How a change reaches the running pods."""

from __future__ import annotations

from tests.cluster.refusals.refusal import Refusal

TRIAL = "rollout.trial"

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

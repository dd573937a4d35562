"""Proposal lengths, the fixed table and the limits of tuning."""

from __future__ import annotations

from tests.cluster.refusals.refusal import LENGTHS, METHOD, NO_DRAFT, Refusal

TABLE = f"{LENGTHS}.perBatch"


def rows(*table: tuple[int, int, int]) -> list[dict[str, int]]:
    return [
        {"minBatch": low, "maxBatch": high, "proposalLength": length} for low, high, length in table
    ]


LENGTH_REFUSALS = (
    Refusal(
        "a capacity of 0",
        {f"{LENGTHS}.capacity": 0},
        "proposalLength.capacity: Invalid value: 0: a proposal length is 1 or more: "
        "0, plain decoding, is always possible and never listed; for plain decoding alone write "
        "method: none",
        {f"{LENGTHS}.capacity": 1},
    ),
    Refusal(
        "a negative capacity",
        {f"{LENGTHS}.capacity": -1},
        "proposalLength.capacity: Invalid value: -1: a proposal length is 1 or more",
    ),
    Refusal(
        "an initial length of 0",
        {f"{LENGTHS}.initial": 0},
        "spec.speculation.proposalLength.initial: Invalid value: 0: a proposal length is 1 or more",
        {f"{LENGTHS}.initial": 1},
    ),
    Refusal(
        "a choice of 0",
        {f"{LENGTHS}.choices": [0, 7]},
        r"proposalLength.choices\[0\]: Invalid value: 0: a proposal length is 1 or more: 0, plain "
        "decoding, is always possible and never listed",
        {f"{LENGTHS}.choices": [1, 7]},
    ),
    Refusal(
        "no choices",
        {f"{LENGTHS}.choices": []},
        "spec.speculation.proposalLength.choices: .* at least 1 items",
        {f"{LENGTHS}.choices": [7]},
    ),
    Refusal(
        "initial above capacity",
        {f"{LENGTHS}.initial": 5, f"{LENGTHS}.capacity": 3},
        "spec.speculation.proposalLength.initial: .*initial 5 is above capacity 3: lower initial "
        "or raise capacity",
        {f"{LENGTHS}.initial": 3, f"{LENGTHS}.capacity": 3},
    ),
    Refusal(
        "initial above the capacity that is not written",
        {f"{LENGTHS}.initial": 8},
        "initial 8 is above capacity 7",
        {f"{LENGTHS}.initial": 7},
    ),
    Refusal(
        "a choice above capacity",
        {f"{LENGTHS}.choices": [1, 9], f"{LENGTHS}.capacity": 5},
        "spec.speculation.proposalLength.choices: .*choice 9 is above capacity 5: take it out or "
        "raise capacity",
        {f"{LENGTHS}.choices": [1, 9], f"{LENGTHS}.capacity": 9},
    ),
    Refusal(
        "a choice twice",
        {f"{LENGTHS}.choices": [1, 3, 3]},
        "choice 3 is listed twice: list each length once",
        {f"{LENGTHS}.choices": [1, 3]},
    ),
    Refusal(
        "an initial length that is not among the choices",
        {f"{LENGTHS}.initial": 5, f"{LENGTHS}.choices": [1, 3, 7]},
        r"proposalLength.initial: .*initial 5 is not among the choices \[1, 3, 7\]",
        {f"{LENGTHS}.initial": 3, f"{LENGTHS}.choices": [1, 3, 7]},
    ),
    Refusal(
        "an initial length that is not among the usual choices",
        {f"{LENGTHS}.initial": 4},
        r"initial 4 is not among the choices \[1, 2, 3, 5, 7\], and vLLM prepares graphs for these "
        "only: write one of them, or add it to choices",
        {f"{LENGTHS}.initial": 4, f"{LENGTHS}.capacity": 4},
    ),
    Refusal(
        "a sequential drafter's length for a block drafter",
        {METHOD: "dflash", f"{LENGTHS}.initial": 2},
        r"initial 2 is not among the choices \[3, 5, 7\]",
        {METHOD: "dflash", f"{LENGTHS}.initial": 3},
    ),
)

TABLE_REFUSALS = (
    Refusal(
        "an empty table",
        {TABLE: []},
        "spec.speculation.proposalLength.perBatch: .* at least 1 items",
        {TABLE: rows((1, 8, 3))},
    ),
    Refusal(
        "a table that does not start at 1",
        {TABLE: rows((2, 8, 3))},
        "spec.speculation.proposalLength.perBatch: .*the first row must start at minBatch 1, not 2",
        {TABLE: rows((1, 8, 3), (12, 16, 0))},
    ),
    Refusal(
        "a row that ends before it starts",
        {TABLE: rows((1, 8, 3), (16, 9, 1))},
        "a row's minBatch 16 is above its maxBatch 9: write the smaller number first",
        {TABLE: rows((1, 8, 3), (9, 16, 1))},
    ),
    Refusal(
        "rows out of order",
        {TABLE: rows((1, 8, 3), (17, 32, 0), (9, 16, 1))},
        "the rows are out of order: sort them by minBatch, smallest first",
        {TABLE: rows((1, 8, 3), (9, 16, 1), (17, 32, 0))},
    ),
    Refusal(
        "overlapping rows",
        {TABLE: rows((1, 8, 3), (8, 16, 1))},
        "two rows overlap: start each row above the maxBatch of the one before it",
        {TABLE: rows((1, 8, 3), (9, 16, 1))},
    ),
    Refusal(
        "a row above capacity",
        {TABLE: rows((1, 8, 9))},
        "spec.speculation.proposalLength.perBatch: .*proposalLength 9 is above capacity 7: lower "
        "it or raise capacity",
        {TABLE: rows((1, 8, 9)), f"{LENGTHS}.capacity": 9},
    ),
    Refusal(
        "a row that is not among the choices",
        {TABLE: rows((1, 8, 4))},
        r"a row's proposalLength 4 is not among the choices \[1, 2, 3, 5, 7\], and vLLM prepares "
        "graphs for these only: write 0 or one of them, or add it to choices",
        {TABLE: rows((1, 8, 4), (9, 16, 0)), f"{LENGTHS}.choices": [4, 7]},
    ),
    Refusal(
        "fewer batch sizes than proposal lengths",
        {"model.maxNumSeqs": 5},
        r"spec.model.maxNumSeqs: .*maxNumSeqs 5 is too few for 6 proposal lengths "
        r"\(0 and \[1, 2, 3, 5, 7\]\), since each needs a batch size of its own in the start "
        "schedule: write maxNumSeqs: 6 or more, or list fewer speculation.proposalLength.choices",
        {"model.maxNumSeqs": 6},
    ),
    Refusal(
        "fewer batch sizes than proposal lengths for a table that is played while tuning is off",
        {"model.maxNumSeqs": 1, "tuning.mode": "Off", TABLE: rows((1, 1, 3))},
        "maxNumSeqs 1 is too few for 6 proposal lengths",
        {"model.maxNumSeqs": 1, "tuning.mode": "Off"},
    ),
    Refusal(
        "a batch size of 0",
        {TABLE: rows((0, 8, 3))},
        r"perBatch\[0\].minBatch: Invalid value: 0: .* greater than or equal to 1",
    ),
    Refusal(
        "a table with data parallelism",
        {TABLE: rows((1, 8, 3)), "parallelism.data": 2, "accelerator.count": 2},
        "spec.speculation.proposalLength.perBatch: Forbidden: vLLM drops the table when data is "
        "above 1, since its engines would disagree: leave perBatch out, or write "
        "parallelism.data: 1",
        {TABLE: rows((1, 8, 3)), "parallelism.data": 1, "accelerator.count": 2},
    ),
)

TUNING_REFUSALS = (
    Refusal(
        "bounds the wrong way round",
        {"tuning.bounds": {"min": 5, "max": 2}},
        "spec.tuning.bounds.min: .*min 5 is above max 2: write the smaller number as min, or both "
        "the same to pin the length",
        {"tuning.bounds": {"min": 2, "max": 5}},
    ),
    Refusal(
        "bounds above capacity",
        {"tuning.bounds": {"max": 9}},
        "spec.tuning.bounds: .*bounds 0 to 9 reach above capacity 7: lower them, or raise "
        "speculation.proposalLength.capacity",
        {"tuning.bounds": {"max": 9}, f"{LENGTHS}.capacity": 9},
    ),
    Refusal(
        "a pin that is not among the choices",
        {"tuning.bounds": {"min": 4, "max": 4}},
        r"no choice lies within bounds 4 to 4 \(choices: \[1, 2, 3, 5, 7\]\): widen the bounds, or "
        "add a length to speculation.proposalLength.choices",
        {"tuning.bounds": {"min": 5, "max": 5}},
    ),
    Refusal(
        "a longest length below the smallest choice",
        {METHOD: "dflash", "tuning.bounds": {"max": 2}},
        "spec.tuning.bounds.max: .*max 2 is below the smallest choice 3, so that "
        "only plain decoding is left: write max: 0 to switch speculation off, or list a length up "
        "to 2 in speculation.proposalLength.choices",
        {METHOD: "dflash", "tuning.bounds": {"max": 2}, f"{LENGTHS}.choices": [2, 7]},
    ),
    Refusal(
        "a longest length below every listed choice",
        {f"{LENGTHS}.choices": [7, 5], "tuning.bounds": {"min": 0, "max": 4}},
        "max 4 is below the smallest choice 5",
        {f"{LENGTHS}.choices": [7, 5], "tuning.bounds": {"min": 0, "max": 0}},
    ),
    Refusal(
        "a negative bound",
        {"tuning.bounds": {"min": -1}},
        "spec.tuning.bounds.min: Invalid value: -1: .* greater than or equal to 0",
        {"tuning.bounds": {"min": 0, "max": 0}},
    ),
    Refusal(
        "a window that must end before it may",
        {"tuning.window": {"minSeconds": 30, "maxSeconds": 10}},
        "minSeconds 30 is above maxSeconds 10: lower minSeconds or raise maxSeconds",
        {"tuning.window": {"minSeconds": 10, "maxSeconds": 10}},
    ),
    Refusal(
        "an unknown mode",
        {"tuning.mode": "On"},
        'spec.tuning.mode: Unsupported value: "On": supported values: "Auto", "Recommend", "Off"',
        {"tuning.mode": "Recommend"},
    ),
    Refusal(
        "an objective that nobody tunes for",
        {"tuning.objective": "Tokens"},
        'spec.tuning.objective: Unsupported value: "Tokens": supported values: "Throughput", '
        '"Latency"',
        {"tuning.objective": "Latency"},
    ),
    Refusal(
        "a loss of throughput for objective Throughput",
        {"tuning.maxThroughputLossPercent": 5},
        "spec.tuning.maxThroughputLossPercent: Forbidden: objective Throughput gives up no "
        "throughput: leave maxThroughputLossPercent out, or write objective: Latency",
        {"tuning.objective": "Latency", "tuning.maxThroughputLossPercent": 5},
    ),
    Refusal(
        "a loss of no throughput at all",
        {"tuning.objective": "Latency", "tuning.maxThroughputLossPercent": 0},
        "spec.tuning.maxThroughputLossPercent: Invalid value: 0: "
        "spec.tuning.maxThroughputLossPercent in body should be greater than or equal to 1",
        {"tuning.objective": "Latency", "tuning.maxThroughputLossPercent": 1},
    ),
    Refusal(
        "downtime of a fallback that restarts nothing",
        {"tuning.fallback": {"allowDowntime": True}},
        "spec.tuning.fallback.allowDowntime: Forbidden: level Live restarts nothing: leave "
        "allowDowntime out, or write level: Restart",
        {"tuning.fallback": {"level": "Restart", "allowDowntime": True}},
    ),
    Refusal(
        "a sensor beside engines that all speculate",
        {"tuning.fallback": {"level": "Live", "sensor": True}},
        "spec.tuning.fallback.sensor: Forbidden: level Live restarts nothing, so every replica can "
        "speculate: leave sensor out, or write level: Restart",
        {"tuning.fallback": {"level": "Restart", "sensor": True}},
    ),
    Refusal(
        "a restart off a method without a length",
        {METHOD: "suffix", **NO_DRAFT, "tuning.fallback": {"level": "Restart"}},
        "spec.tuning.fallback.level: Forbidden: method suffix has no proposal length that could be "
        "compared live: leave fallback.level out, or choose another method",
        {METHOD: "ngram", **NO_DRAFT, "tuning.fallback": {"level": "Restart"}},
    ),
    Refusal(
        "a restart with data parallelism",
        {
            "accelerator.count": 2,
            "parallelism.data": 2,
            "tuning.fallback": {"level": "Restart"},
        },
        "spec.tuning.fallback.level: Forbidden: with parallelism.data 2 nothing is measured live "
        "that a restart could be weighed by: leave fallback.level out, or write parallelism.data: "
        "1",
        {"accelerator.count": 2, "tuning.fallback": {"level": "Restart"}},
    ),
    Refusal(
        "a restart off speculation that the bounds forbid",
        {"tuning.bounds": {"min": 1}, "tuning.fallback": {"level": "Restart"}},
        "spec.tuning.fallback.level: Forbidden: bounds.min 1 forbids fallback: write min: 0, or "
        "leave fallback.level out",
        {"tuning.bounds": {"max": 5}, "tuning.fallback": {"level": "Restart"}},
    ),
    Refusal(
        "an unknown answer to a failed start",
        {"tuning.fallback": {"onStartFailure": "Retry"}},
        'spec.tuning.fallback.onStartFailure: Unsupported value: "Retry": supported values: '
        '"Serve", "Fail"',
        {"tuning.fallback": {"onStartFailure": "Fail"}},
    ),
    Refusal(
        "an unknown level of fallback",
        {"tuning.fallback": {"level": "Cold"}},
        'spec.tuning.fallback.level: Unsupported value: "Cold": supported values: "Live", '
        '"Restart"',
        {"tuning.fallback": {"level": "Live"}},
    ),
)

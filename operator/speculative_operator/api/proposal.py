"""`spec.speculation.proposalLength`: how many tokens may be proposed at a step."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from speculative_operator.api.base import (
    ApiModel,
    BatchSize,
    LengthOrNone,
    ProposalLength,
    Rule,
    rules,
)

DEFAULT_CAPACITY = 7
SEQUENTIAL_CHOICES = (1, 2, 3, 5, 7)
BLOCK_CHOICES = (3, 5, 7)
LONGEST_DEFAULT_START = 7


class BatchRange(ApiModel):
    """One row of a fixed table: the proposal length for a range of batch sizes, both ends in."""

    min_batch: BatchSize = Field(description="Smallest number of requests in a step.")
    max_batch: BatchSize = Field(description="Largest number of requests in a step, included.")
    proposal_length: LengthOrNone = Field(
        description="Draft tokens proposed for each request; 0 is plain decoding."
    )


TABLE_RULES = rules(
    Rule(
        "self.size() == 0 || self[0].minBatch == 1",
        "the first row must start at minBatch 1, not %d, so that every batch size has a length",
        ("self[0].minBatch",),
    ),
    Rule(
        "self.all(row, row.minBatch <= row.maxBatch)",
        "a row's minBatch %d is above its maxBatch %d: write the smaller number first",
        tuple(
            f"self.filter(row, row.minBatch > row.maxBatch)[0].{end}"
            for end in ("minBatch", "maxBatch")
        ),
    ),
    Rule(
        "self.map(row, row.minBatch).isSorted()",
        "the rows are out of order: sort them by minBatch, smallest first",
    ),
    Rule(
        "self.all(row, row.minBatch > row.maxBatch || self.exists_one(other, "
        "row.minBatch <= other.maxBatch && other.minBatch <= row.maxBatch))",
        "two rows overlap: start each row above the maxBatch of the one before it",
    ),
)


class ProposalLengths(ApiModel):
    """Which proposal lengths the engine is started for, starts with and may use."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!has(self.initial) || self.initial <= self.capacity",
                "initial %d is above capacity %d: lower initial or raise capacity",
                ("self.initial", "self.capacity"),
                field=".initial",
            ),
            Rule(
                "!has(self.choices) || self.choices.all(k, k <= self.capacity)",
                "choice %d is above capacity %d: take it out or raise capacity",
                ("self.choices.filter(k, k > self.capacity)[0]", "self.capacity"),
                field=".choices",
            ),
            Rule(
                "!has(self.perBatch) || self.perBatch.all(row, "
                "row.proposalLength <= self.capacity)",
                "a row's proposalLength %d is above capacity %d: lower it or raise capacity",
                (
                    "self.perBatch.map(row, row.proposalLength).filter(k, k > self.capacity)[0]",
                    "self.capacity",
                ),
                field=".perBatch",
            ),
        )
    )

    capacity: ProposalLength = Field(
        default=DEFAULT_CAPACITY,
        description="The longest proposal that the engine is started for; changing it restarts.",
    )
    initial: ProposalLength | None = Field(
        default=None,
        description="What a new engine starts with, one of the choices; by default the longest "
        "of them up to 7. Engines whose length cannot change (mode Off without perBatch, suffix, "
        "parallelism.data above 1) play the capacity.",
    )
    choices: tuple[ProposalLength, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        description="What tuning may choose from besides 0, which is always allowed. By default "
        "1, 2, 3, 5, 7 (dflash and dspark: 3, 5, 7) as far as the capacity reaches, and the "
        "capacity itself. Each choice costs start-up time and graph memory.",
        json_schema_extra=rules(
            Rule(
                "self.all(k, self.exists_one(other, other == k))",
                "choice %d is listed twice: list each length once",
                ("self.filter(k, !self.exists_one(other, other == k))[0]",),
            )
        ),
    )
    per_batch: tuple[BatchRange, ...] = Field(
        default=(),
        min_length=1,
        max_length=32,
        description="A fixed table by batch size. It is only played once tuning.mode is Off; with "
        "Auto and Recommend it waits, and tuning starts from initial.",
        json_schema_extra=TABLE_RULES,
    )

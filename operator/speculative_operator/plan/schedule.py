"""Which proposal length is played at which batch size before anything was measured.

vLLM captures graphs for a proposal length up to the widest batch that the start schedule gives it
(`vllm.config.vllm`, decode tiers), and the table ends at the most requests of a step. So the start
table plays the wanted lengths from batch 1 on, and gives each further length that may be chosen
later one batch size at the very top: every length then has graphs for nearly the full batch. vLLM's
own ceiling of 512 tokens a graph comes on top of that: at K=7 it is 64 requests, with or without a
schedule, and `--max-cudagraph-capture-size` among the arguments raises it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from speculative_operator.api import defaults
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.speculation import Method
from speculative_operator.api.tuning import TuningMode
from speculative_operator.errors import ModelInvalid
from speculative_operator.tuning.schedule import Table, joined

UNTUNABLE = frozenset({Method.SUFFIX, Method.NONE})
"""Suffix decoding asserts its configured length, and none has no length."""


def needs_schedule(spec: SpeculativeModelSpec) -> bool:
    """Whether the engine starts with a schedule, without which its length cannot change live.

    Data parallelism makes vLLM drop it, and on engines without full graphs it costs some speed, so
    there is none where nothing would use it.
    """
    used = spec.tuning.mode is not TuningMode.OFF or spec.speculation.proposal_length.per_batch
    return spec.speculation.method not in UNTUNABLE and spec.parallelism.data == 1 and bool(used)


def fixed_table(spec: SpeculativeModelSpec, prepared: Collection[int]) -> Table:
    """What is played while tuning is off: `perBatch`, else the initial length at every batch.

    Gaps and the tail carry the last length on, as in vLLM. `prepared` are the lengths of the
    running revision; one that it lacks, since the spec was changed after its start, is played as
    the next shorter one.
    """
    most = spec.model.max_num_seqs
    rows = sorted(spec.speculation.proposal_length.per_batch, key=lambda row: row.min_batch)
    starts = [(row.min_batch, row.proposal_length) for row in rows if row.min_batch <= most]
    if not starts:
        starts = [(1, defaults.initial_length(spec))]
    ends = [*(low - 1 for low, _ in starts[1:]), most]
    return joined(
        (low, high, max((k for k in prepared if k <= length), default=0))
        for (low, length), high in zip(starts, ends, strict=True)
    )


def base_table(spec: SpeculativeModelSpec) -> Table:
    """What a new engine plays: the fixed table while tuning is off, else the initial length."""
    if spec.tuning.mode is TuningMode.OFF:
        return fixed_table(spec, defaults.choices(spec))
    return ((1, spec.model.max_num_seqs, defaults.initial_length(spec)),)


def start_table(base: Table, lengths: Sequence[int]) -> Table:
    """The schedule that the engine is started with, in rows (first batch, last batch, K).

    `base` covers all batch sizes. It is cut at the top, where each of `lengths` (0 comes by
    itself), except the one that `base` plays there, gets one batch size, the longest first.
    Raises ModelInvalid where there are fewer batch sizes than lengths.
    """
    *_, (_, most, everywhere) = base
    others = sorted({0, *lengths} - {everywhere}, reverse=True)
    widest = most - len(others)
    if widest < 1:
        raise ModelInvalid(
            f"spec.model.maxNumSeqs: {most} is too few for {len(others) + 1} proposal lengths "
            f"({', '.join(map(str, sorted({everywhere, *others})))}), since each needs a batch "
            f"size of its own in the start schedule. Write maxNumSeqs: {len(others) + 1} or more, "
            f"or list fewer spec.speculation.proposalLength.choices."
        )
    kept = tuple((low, min(high, widest), k) for low, high, k in base if low <= widest)
    top = tuple((widest + n, widest + n, k) for n, k in enumerate(others, start=1))
    return kept + top

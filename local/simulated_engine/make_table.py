"""Makes `data/engines.csv` from AMD's measured rows: `python -m local.simulated_engine.make_table`.

A row of the table is one (target, method, hardware, workload, K). Its mean tokens a step are
E = 1 + Σ p_i from that K's own row, its cost c = E ÷ measured speed-up, so that the goodput of the
table is the measured one. The header of the table names every law that the rows do not hold.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from local.simulated_engine.table import COLUMNS, REFERENCE_BATCH, TABLE

ROWS = TABLE.with_name("amd_speculation.csv")

METHODS = {
    "Gemma 4 MTP": "mtp",
    "Native MTP": "mtp",
    "EAGLE-3": "eagle3",
    "DFlash": "dflash",
    "DSpark": "dspark",
}
"""The study's names of methods, as vLLM's."""

HEADER = f"""\
# Made by `python -m local.simulated_engine.make_table` from amd_speculation.csv
# (vLLM blog "Exploring Speculative Decoding in vLLM on AMD GPUs", August 2026). Do not edit.
# acceptance: unconditional, by position, from each K's own row. cost: E / speedup, E = 1 + sum p.
# Assumed: the rows name no concurrency. {REFERENCE_BATCH} running requests are assumed, so an
#   autoregressive step takes {REFERENCE_BATCH} / throughput seconds.
# Growth with batch: step_cost_by_batch.csv (vllm#32374, Llama-3.1-8B EAGLE), relative to
#   {REFERENCE_BATCH} requests, see growth.py.
# K=0 live costs 6.6% over autoregressive at 1 request and 21.6% at 189 (measured), between them
#   linear in the logarithm of the batch.
# K that was not measured: acceptance of the next larger measured K cut short; cost on the line
#   between its measured neighbours, outside them on the least-squares line a + b*K.
# A prefill token takes 1/200 of an autoregressive step (assumed).
"""


def make_table(rows: Iterable[Mapping[str, str]]) -> str:
    """The text of `engines.csv`, groups in the order of the rows."""
    measured = list(rows)
    plain = {
        (row["target"], row["hardware"], row["workload"]): float(row["throughput_tok_s"])
        for row in measured
        if row["method"] == "none"
    }
    text = io.StringIO()
    text.write(HEADER)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in measured:
        if row["method"] == "none":
            continue
        step = REFERENCE_BATCH / plain[row["target"], row["hardware"], row["workload"]]
        length = 1 + sum(float(p) for p in row["per_position"].split(";"))
        writer.writerow(
            (
                row["target"],
                METHODS[row["method"]],
                row["hardware"],
                row["workload"],
                row["K"],
                row["per_position"],
                f"{1000 * step:.4f}",
                f"{length / float(row['speedup_vs_ar']):.4f}",
            )
        )
    return text.getvalue()


def read_rows(path: Path = ROWS) -> list[dict[str, str]]:
    """AMD's rows as they were published."""
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


if __name__ == "__main__":
    TABLE.write_text(make_table(read_rows()))

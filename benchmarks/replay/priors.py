"""Fits what is known of a drafter's kind from measured rows: `python -m benchmarks.replay.priors`.

For the replay of a target it is fitted without that target. What is printed for all of the public
rows are the constants of `speculative_operator.tuning.prior`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from itertools import combinations

from benchmarks.replay.files import Arm, Group, read_groups
from local.simulated_engine.make_table import ROWS
from speculative_operator.tuning.prior import Prior
from speculative_operator.tuning.rows import Row

MARGIN = 1.3
"""Drafters to come differ by more than those that were seen."""

TAIL_MARGIN = 3.0
"""The same of one K's time about the line, and of acceptance beyond the positions that were seen:
where kernels, graphs or a draft's training end, both jump, by several times the usual error."""

LEAST_PRICE_ERROR = 0.45
"""The price depends on the target above all, and the rows have few targets."""

LEAST_GROUPS = 4
"""With less of a kind they tell nothing of others."""

VAGUE = Prior(
    price=0.5,
    price_error=0.6,
    slope=0.12,
    slope_error=0.08,
    own_error=0.12,
    cut=0.04,
    cut_error=0.06,
    decline=0.95,
    carried_error=0.02,
)
"""Round numbers, for a kind that no other target has."""

DRAFTS = 1e6
"""So many that a row's own shares are exact."""

DECLINES = tuple(0.9 + 0.005 * step for step in range(21))


def priors_without(
    target: str, groups: Iterable[Group], public: Iterable[Group] = ()
) -> dict[bool, Prior]:
    """The prior of sequential (False) and of block drafters (True), from all other targets: those
    of `groups`, and those of `public` as well where they are too few."""
    return {
        block: fit(_others(target, block, groups)) or fit(_others(target, block, public)) or VAGUE
        for block in (False, True)
    }


def _others(target: str, block: bool, groups: Iterable[Group]) -> list[Group]:
    """Groups of one kind and of other targets. A target may be named with or without its owner."""
    name = _plain_name(target)
    return [
        group
        for group in groups
        if group.block is block and not (name and _same(name, _plain_name(group.target)))
    ]


def _plain_name(target: str) -> str:
    return target.rsplit("/", 1)[-1].lower()


def _same(one: str, other: str) -> bool:
    """Also where one names a precision, or the instructed variant, besides."""
    return one.startswith(other) or other.startswith(one)


def fit(groups: Sequence[Group]) -> Prior | None:
    """The prior of one kind from its groups; None where they are too few."""
    if len(groups) < LEAST_GROUPS:
        return None
    lines = [_line(group) for group in groups]
    prices = [math.log(max(price, 0.1)) for price, _ in lines]
    slopes = [slope / max(price, 0.1) for price, slope in lines]
    off = [
        math.log(arm.cost / (price + slope * k))
        for group, (price, slope) in zip(groups, lines, strict=True)
        for k, arm in group.arms.items()
        if len(group.arms) > 2 and price + slope * k > 0
    ]
    pairs = [pair for group in groups for pair in combinations(group.arms.items(), 2)]
    flat = replace(VAGUE, cut=0.0)
    cuts = [_missing(short, long, flat) for short, long in pairs]
    decline = min(DECLINES, key=lambda value: _carried_error(pairs, replace(flat, decline=value)))
    return Prior(
        price=statistics.fmean(prices),
        price_error=max(MARGIN * statistics.stdev(prices), LEAST_PRICE_ERROR),
        slope=statistics.fmean(slopes),
        slope_error=MARGIN * statistics.stdev(slopes),
        own_error=TAIL_MARGIN * (statistics.pstdev(off) if off else VAGUE.own_error / TAIL_MARGIN),
        cut=statistics.fmean(cuts),
        cut_error=MARGIN * statistics.pstdev(cuts),
        decline=decline,
        carried_error=TAIL_MARGIN * _carried_error(pairs, replace(flat, decline=decline)),
    )


def _line(group: Group) -> tuple[float, float]:
    """Least squares of c = price + slope · K."""
    slope, price = statistics.linear_regression(
        list(group.arms), [arm.cost for arm in group.arms.values()]
    )
    return price, slope


Point = tuple[int, Arm]


def _missing(short: Point, long: Point, prior: Prior) -> float:
    """log E(K) of the shorter row above what the longer one says of it, as a share of E - 1."""
    k, arm = short
    length = 1.0 + sum(arm.acceptance)
    said = _row(long[1]).lengths((k,), prior)[k].mean
    return (math.log(length) - said) / (1.0 - 1.0 / length)


def _carried_error(pairs: Iterable[tuple[Point, Point]], prior: Prior) -> float:
    """Root mean square error of log E carried on, for each position."""
    errors = []
    for (of, short), (k, long) in pairs:
        said = _row(short).lengths((k,), prior)[k].mean
        errors.append((math.log(1.0 + sum(long.acceptance)) - said) / (k - of))
    return math.sqrt(statistics.fmean(error**2 for error in errors))


def _row(arm: Arm) -> Row:
    return Row(DRAFTS, DRAFTS, tuple(DRAFTS * p for p in arm.acceptance))


def main() -> None:
    """Prints the constants of the public rows."""
    for block, prior in priors_without("", read_groups(ROWS)).items():
        print("BLOCK" if block else "SEQUENTIAL")
        for field in fields(prior):
            print(f"    {field.name}={getattr(prior, field.name):.3f},")


if __name__ == "__main__":
    main()

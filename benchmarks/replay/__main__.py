"""Policies for the proposal length on measured rows: `python -m benchmarks.replay`.

Every policy plays the same episodes with the same seeds, see `episodes` for the sets, `engine` for
the noise, `score` for what is counted. The product is the operator's own `decide`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.replay.baselines import BASELINES, Player
from benchmarks.replay.engine import Engine, Measuring
from benchmarks.replay.episodes import SETS, Data, Episode
from benchmarks.replay.files import FileRefused, read_costs, read_groups
from benchmarks.replay.priors import priors_without
from benchmarks.replay.product import Product, policy_of
from benchmarks.replay.score import Outcome, Summary, outcome, summary
from local.simulated_engine.growth import GRID
from local.simulated_engine.make_table import ROWS
from speculative_operator.api.speculation import BLOCK_DRAFTERS
from speculative_operator.tuning.prior import Prior

SEEDS = 20
PRODUCT = "product"


def play(episode: Episode, player: Player, measuring: Measuring) -> Outcome:
    """One policy through one episode."""
    engine = Engine(episode, measuring)
    lengths = []
    for condition in episode.conditions:
        wanted = player.play(condition.batch)
        lengths.append(wanted.length)
        player.see(engine.window(wanted))
    return outcome(episode, engine.goodputs, lengths)


def the_product(
    measuring: Measuring, priors: Mapping[str, Mapping[bool, Prior]], episode: Episode
) -> Player:
    """The product with a prior that leaves the episode's target out."""
    prior = priors[episode.target][episode.method in BLOCK_DRAFTERS]
    return Product(policy_of(episode, measuring, prior), episode.broken)


def play_set(
    name: str, data: Data, wanted: Iterable[str], measurings: Iterable[Measuring]
) -> dict[str, Summary]:
    """All wanted policies on one set."""
    episodes = list(SETS[name](data))
    if not episodes:
        return {}
    found = {}
    for policy, make in BASELINES.items():
        if policy in wanted:
            found[policy] = _summary(episodes, make, Measuring.QUARTER)
    targets = {episode.target for episode in episodes}
    public = read_groups(ROWS)
    priors = {target: priors_without(target, data.groups, public) for target in targets}
    for measuring in measurings:
        if PRODUCT in wanted:
            make = partial(the_product, measuring, priors)
            found[f"{PRODUCT}, {measuring}"] = _summary(episodes, make, measuring)
    return found


def _summary(
    episodes: Iterable[Episode], make: Callable[[Episode], Player], measuring: Measuring
) -> Summary:
    return summary([play(episode, make(episode), measuring) for episode in episodes])


def printed(name: str, found: Mapping[str, Summary]) -> None:
    """A table of one set."""
    print(
        f"\n{name:26}  mean   p95 worst final  <=2% conv.  rec. sw./h  late  vs AR  vs K=0 (worst)",
        flush=True,
    )
    for policy, each in found.items():
        recovery = "    -" if each.recovery_windows is None else f"{each.recovery_windows:5.1f}"
        print(
            f"{policy:26} {each.mean:5.2f} {each.p95:5.1f} {each.worst:5.1f} {each.final:5.2f} "
            f"{each.within_2_percent:5.1f} {each.windows_to_converge:5.1f} {recovery} "
            f"{each.switches_an_hour:5.1f} {each.late_switches_an_hour:5.1f} "
            f"{each.loss_against_autoregressive:6.1f} {each.worst_loss_against_live_zero:7.1f}   "
            f"{each.worst_group}",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--rows", type=Path, default=ROWS, help="CSV as amd_speculation.csv")
    parser.add_argument("--costs", type=Path, default=GRID, help="CSV as step_cost_by_batch.csv")
    parser.add_argument("--sets", default=",".join(SETS), help=f"of {','.join(SETS)}")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="episodes of each group")
    parser.add_argument(
        "--policies",
        default=",".join((*BASELINES, PRODUCT)).replace(", ", ";"),
        help="some of them, joined by ',' (a ',' in a name is written ';')",
    )
    parser.add_argument(
        "--measuring",
        default=",".join(Measuring),
        help=f"how the product measures, of {','.join(Measuring)}",
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    wanted = parser.parse_args()
    wanted.sets = wanted.sets.split(",")
    unknown = [name for name in wanted.sets if name not in SETS]
    if unknown:
        parser.error(f"--sets: no set {', '.join(unknown)}; there are {', '.join(SETS)}")
    wanted.policies = [name.replace(";", ", ") for name in wanted.policies.split(",")]
    wanted.policies = [name.replace(",  ", ", ") for name in wanted.policies]
    unknown = [name for name in wanted.policies if name not in (*BASELINES, PRODUCT)]
    if unknown:
        parser.error(f"--policies: no policy {unknown}; there are {[*BASELINES, PRODUCT]}")
    try:
        wanted.measuring = [Measuring(name) for name in wanted.measuring.split(",")]
    except ValueError as error:
        parser.error(f"--measuring: {error}; there are {', '.join(Measuring)}")
    if wanted.seeds < 1 or wanted.jobs < 1:
        parser.error("--seeds and --jobs: at least 1")
    if wanted.json and not wanted.json.parent.is_dir():
        parser.error(f"--json: there is no folder {wanted.json.parent}")
    return wanted


def main() -> int:
    """Prints a table a set, and writes the figures."""
    wanted = arguments()
    began = time.monotonic()
    try:
        data = Data(read_groups(wanted.rows), read_costs(wanted.costs), wanted.seeds)
    except FileRefused as error:
        print(error, file=sys.stderr)
        return 2
    work = partial(play_set, data=data, wanted=wanted.policies, measurings=wanted.measuring)
    if wanted.jobs == 1:
        _shown(wanted, map(work, wanted.sets))
    else:
        with ProcessPoolExecutor(wanted.jobs) as pool:
            _shown(wanted, pool.map(work, wanted.sets))
    print(f"\n{time.monotonic() - began:.0f} s")
    return 0


def _shown(wanted: argparse.Namespace, results: Iterable[Mapping[str, Summary]]) -> None:
    """Prints each set and writes all that there are so far, since the rest may take hours."""
    sets = {}
    for name, found in zip(wanted.sets, results, strict=True):
        printed(name, found)
        sets[name] = {policy: each.to_json() for policy, each in found.items()}
        if wanted.json:
            body = {"seeds": wanted.seeds, "sets": sets}
            wanted.json.write_text(json.dumps(body, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

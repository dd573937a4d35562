"""The pictures of docs/tuning.md: the report's plots of a model that is played in virtual time.

Run `python -m tools.pictures` when the plots or the policy have changed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from local.simulated_engine.assembly import choose_group
from local.virtual_time.clock import EPOCH, run
from local.virtual_time.scene import Scene
from speculative_operator.cli import figures
from speculative_operator.cli.source import Record
from speculative_operator.tuning.history import entries
from speculative_operator.tuning.memory import from_data

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PLOTS = {
    "goodput-over-time.svg": lambda played: figures.goodput_over_time(played, EPOCH),
    "expected-goodput.svg": figures.expected_goodput,
    "step-cost.svg": figures.step_cost,
    "acceptance.svg": figures.acceptance_by_position,
}


def record(folder: Path) -> Record:
    """Half an hour at three batch sizes, and with a draft that fits less for a while."""
    scene = Scene(choose_group("Qwen/Qwen3.5-27B", "mtp", "gsm8k"), folder)

    async def play() -> None:
        async with scene.playing():
            for clients, acceptance in ((16, 1.0), (4, 1.0), (48, 1.0), (16, 0.4), (16, 1.0)):
                scene.send(clients)
                scene.change(acceptance=acceptance)
                await scene.pass_seconds(360)

    run(play())
    (data,) = scene.memories.kept.values()
    memory = from_data(data.data, data.binary_data)
    past = tuple(entries(memory.history))
    return Record(past, memory.revisions[past[-1].key])


def main() -> None:
    """Draws them all."""
    with TemporaryDirectory() as folder:
        played = record(Path(folder))
    FOLDER.mkdir(exist_ok=True)
    for name, plot in PLOTS.items():
        (FOLDER / name).write_text(plot(played))


if __name__ == "__main__":
    main()

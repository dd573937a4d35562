"""The folder that a stock vLLM finds the plugin in."""

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from live_speculation import __version__

PACKAGE = Path(__file__).parents[3] / "images" / "vllm-plugin" / "package.py"


def test_vllm_finds_the_entry_point_in_the_folder(tmp_path: Path) -> None:
    """vLLM looks for `vllm.general_plugins` in every folder of PYTHONPATH."""
    subprocess.run([sys.executable, PACKAGE, tmp_path], check=True)

    found = list(distributions(path=[str(tmp_path)]))
    assert [(one.name, one.version) for one in found] == [("live-speculation", __version__)]
    (entry,) = found[0].entry_points
    assert (entry.group, entry.value) == (
        "vllm.general_plugins",
        "live_speculation.plugin:register",
    )


def test_making_it_again_replaces_it_and_leaves_the_rest(tmp_path: Path) -> None:
    """The volume may be shared with the user's own plugins."""
    (tmp_path / "live_speculation").mkdir()
    (tmp_path / "live_speculation" / "old.py").touch()
    (tmp_path / "theirs.py").touch()
    for _ in range(2):
        subprocess.run([sys.executable, PACKAGE, tmp_path], check=True)

    assert not (tmp_path / "live_speculation" / "old.py").exists()
    assert (tmp_path / "theirs.py").exists()
    assert (tmp_path / "live_speculation" / "plugin.py").exists()
    assert not list(tmp_path.rglob("__pycache__"))

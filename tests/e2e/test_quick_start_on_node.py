"""The quick start on the local cluster, typed as it stands in the docs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from local import install
from speculative_operator import __version__
from tests.e2e.conftest import Operator
from tests.support.api import KubernetesApi
from tests.support.pages import CHECKOUT, DOCS, blocks

PAGE = DOCS / "quick-start-local.md"
EXECUTED = (PAGE,)
"""Pages with blocks marked `run`, each with a test here."""
STRICT = "set -euo pipefail\n"


def test_the_quick_start_does_what_it_says(
    api: KubernetesApi, operator: Operator, tmp_path: Path
) -> None:
    """One shell reads the page's lines as from a terminal, and so does the one that they open."""
    del operator
    strict = tmp_path / "strict"
    strict.write_text(STRICT)
    typed = "".join(block.typed for block in blocks(PAGE) if block.mark == "run")

    done = subprocess.run(
        ["bash"],
        input=typed,
        env={**os.environ, "BASH_ENV": str(strict)},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"operator             chart {__version__} in {install.NAMESPACE}" in done.stdout
    assert "speculativemodel.speculation.dev/simulated condition met" in done.stdout
    assert '"object":"text_completion"' in done.stdout.replace(" ", "")
    assert "0 failed" in done.stdout
    assert "why not" in done.stdout
    assert api.get("SpeculativeModel", "default", "simulated") is None

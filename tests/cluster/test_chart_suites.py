"""The suites of charts/speculative-operator/tests, which chart developers know how to read."""

from __future__ import annotations

import subprocess

import pytest

from local import binaries
from tests.support.helm import CHART

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # seconds: it is built first


def test_the_suites_of_the_chart_pass() -> None:
    """By helm-unittest, which is built here from its Go module."""
    program = binaries.build(binaries.HELM_UNITTEST) / "helm-unittest"

    played = subprocess.run([program, "."], cwd=CHART, capture_output=True, text=True, check=False)

    assert played.returncode == 0, played.stdout
    assert len(list((CHART / "tests").glob("*_test.yaml"))) > 0

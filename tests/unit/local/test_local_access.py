"""Which cluster the tests talk to."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.access import ClusterAccessError, cluster_access


def test_kubeconfig_is_ignored(tmp_path: Path) -> None:
    """People have production there: only the two variables of our own select a cluster."""
    chosen = tmp_path / "chosen"
    chosen.touch()

    access = cluster_access(
        {
            "KUBECONFIG": "production",
            "SPM_TEST_KUBECONFIG": str(chosen),
            "SPM_TEST_CONTEXT": "test",
        }
    )

    assert (access.kubeconfig, access.context, access.is_local) == (chosen, "test", False)


@pytest.mark.parametrize("name", ["SPM_TEST_KUBECONFIG", "SPM_TEST_CONTEXT"])
def test_a_kubeconfig_without_a_context_is_refused(name: str) -> None:
    """The current context of a file changes behind a test's back."""
    with pytest.raises(ClusterAccessError, match="only together: set both"):
        cluster_access({name: "x"})


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    """Falling back to another cluster would run the tests where nobody wanted them."""
    missing = tmp_path / "missing"

    with pytest.raises(ClusterAccessError, match=f"no file {missing}"):
        cluster_access({"SPM_TEST_KUBECONFIG": str(missing), "SPM_TEST_CONTEXT": "test"})

"""What a machine lacks is said in one line each, with the command that mends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local import prerequisites


@pytest.mark.parametrize(
    ("lack", "answer", "words"),
    [
        ("os.geteuid", lambda: 1000, "sudo -E make cluster"),
        ("_debian_release", lambda: "ubuntu 24.04", "not Debian 12: run"),
        ("missing_packages", lambda: ("runc",), "apt-get install -y runc"),
        ("_go_version", lambda: None, "no Go, but Kubernetes needs 1.26"),
        ("_go_version", lambda: (1, 19), "Go 1.19, but Kubernetes needs 1.26"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(
    lack: str, answer: Callable[[], object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has just cloned the project and knows none of its parts."""
    monkeypatch.setattr(f"local.prerequisites.{lack}", answer)

    lines = [line for line in prerequisites.problems() if words in line]

    assert len(lines) == 1
    assert "\n" not in lines[0]

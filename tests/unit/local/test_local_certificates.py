"""The local cluster's keys and certificates."""

from __future__ import annotations

from pathlib import Path

from local import certificates


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_an_identity_that_has_come_since_is_made_and_the_others_stay(tmp_path: Path) -> None:
    """A machine that went down with a cluster of an earlier checkout on it: pods hold tokens and
    components certificates of that authority."""
    certificates.make(tmp_path)
    before = contents(tmp_path)
    (tmp_path / f"{certificates.FRONT_PROXY.file}.crt").unlink()

    certificates.make(tmp_path)

    after = contents(tmp_path)
    assert after.keys() == before.keys()
    new = {name for name, content in after.items() if content != before[name]} - {"ca.srl"}
    assert new == {f"{certificates.FRONT_PROXY.file}.{kind}" for kind in ("key", "crt")}

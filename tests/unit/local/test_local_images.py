"""Images are named after what they are made of, so nothing is built or imported twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from local import images


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one image, `thing`, that copies `app/` and one file."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("1")
    (tmp_path / "requirements.txt").write_text("aiohttp")
    (tmp_path / "README.md").write_text("words")
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text(
        "FROM python:3.11-slim AS base\n"
        "COPY requirements.txt \\\n    /requirements.txt\n"
        "COPY --from=base /opt /opt\n"
        "COPY --chmod=755 app /app\n"
    )
    monkeypatch.setattr(images, "CHECKOUT", tmp_path)
    monkeypatch.setattr(images, "SOURCES", {"thing": images.Source(dockerfile, tmp_path)})
    return tmp_path


@pytest.mark.parametrize("file", ["app/main.py", "requirements.txt", "Dockerfile"])
def test_an_edit_of_a_copied_file_gives_a_new_reference(context: Path, file: str) -> None:
    """A pod with the new reference then runs the new content, whatever the node has cached."""
    before = images.reference("thing")

    with (context / file).open("a") as edited:
        edited.write("\n")

    assert images.reference("thing") != before


@pytest.mark.parametrize("file", ["README.md", "app/__pycache__/main.cpython-311.pyc"])
def test_a_file_that_is_not_in_the_image_changes_nothing(context: Path, file: str) -> None:
    """Running the tests must not make the operator's image anew."""
    before = images.reference("thing")

    (context / file).parent.mkdir(exist_ok=True)
    (context / file).write_text("other")

    assert images.reference("thing") == before


def test_a_moved_file_gives_a_new_reference(context: Path) -> None:
    """The same bytes in another place are another program."""
    before = images.reference("thing")

    (context / "app" / "main.py").rename(context / "app" / "other.py")

    assert images.reference("thing") != before


def test_a_missing_file_is_named(context: Path) -> None:
    """Before buildah is started, and with the path."""
    (context / "requirements.txt").unlink()

    with pytest.raises(FileNotFoundError, match=r"requirements\.txt is copied by a Dockerfile"):
        images.reference("thing")

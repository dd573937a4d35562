"""One recorded model for all tests of this room: playing it takes a second."""

from __future__ import annotations

import pytest

from tests.support.recorded import RecordedModel, a_recorded_model


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> RecordedModel:
    """Ten minutes of traffic at three batch sizes."""
    return a_recorded_model(tmp_path_factory.mktemp("engines"))

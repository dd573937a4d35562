"""The termination log: the first fatal exception of any process of a server."""

import logging
import logging.config
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from live_speculation.termination import MAX_BYTES, describe, watch, write_first

PLUGIN = Path(__file__).parents[3] / "images" / "vllm-plugin"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """As the kubelet makes it: there, and empty."""
    path = tmp_path / "termination-log"
    path.touch()
    return path


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_the_text_holds_process_type_message_and_place() -> None:
    """What vLLM's last log lines do not say."""
    text = describe(raised(ValueError("K must be positive")))

    assert text.startswith("MainProcess: ValueError: K must be positive\nat ")
    assert re.search(r"test_termination\.py:\d+ in raised$", text)


def test_the_place_is_the_last_frame_of_vllms_own_code() -> None:
    """The innermost frame is often in torch or the standard library."""
    namespace: dict[str, Any] = {"__name__": "vllm.v1.engine.core"}
    exec("import json\ndef step():\n    json.loads('{')\n", namespace)
    with pytest.raises(ValueError, match="Expecting") as caught:
        namespace["step"]()

    assert describe(caught.value).endswith("\nat vllm/v1/engine/core.py:3 in step")


def test_vllms_code_for_drafts_is_named_where_it_is_on_the_way() -> None:
    """A loader of weights fails in the same place for target and draft."""
    loader: dict[str, Any] = {"__name__": "vllm.model_executor.layers.linear"}
    exec("def load():\n    raise AssertionError('shapes')\n", loader)
    draft: dict[str, Any] = {"__name__": "vllm.v1.spec_decode.eagle", "load": loader["load"]}
    exec("def load_model():\n    load()\n", draft)
    with pytest.raises(AssertionError) as caught:
        draft["load_model"]()

    assert describe(caught.value).endswith(
        "\nat vllm/model_executor/layers/linear.py:2 in load"
        "\ncalled by vllm/v1/spec_decode/eagle.py:2 in load_model"
    )


def test_a_cause_is_named() -> None:
    """vLLM wraps errors of its workers."""
    try:
        raise RuntimeError("engine failed") from KeyError("draft")
    except RuntimeError as error:
        assert describe(error).endswith("caused by KeyError: 'draft'")


def test_the_text_fits_into_3_kib(log: Path) -> None:
    """The kubelet cuts at 4 KiB, and pydantic's messages are long."""
    write_first(log, describe(raised(ValueError("ü" * 100_000))))

    assert 0 < log.stat().st_size <= MAX_BYTES
    assert "ValueError: üüü" in log.read_text()


def test_the_first_writer_wins(log: Path) -> None:
    """What follows is the consequence of the first."""
    assert write_first(log, "first")
    assert not write_first(log, "second")
    assert log.read_text() == "first"


def test_a_missing_log_is_not_made(tmp_path: Path) -> None:
    """Outside Kubernetes there is none, and none is needed."""
    assert not write_first(tmp_path / "none", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_new_logging_configuration_takes_nothing_away(log: Path) -> None:
    """vLLM configures logging anew in a forked engine core."""
    watch(log, ["test.forked"], {"EngineCore failed to start."})
    logging.config.dictConfig(
        {"version": 1, "disable_existing_loggers": False, "loggers": {"test": {"level": "INFO"}}}
    )
    try:
        raise ValueError("late")
    except ValueError:
        logging.getLogger("test.forked").exception("EngineCore failed to start.")

    assert "ValueError: late" in log.read_text()


def test_a_logged_exception_counts_only_with_a_fatal_message(log: Path) -> None:
    """The engine core also logs exceptions of single requests."""
    logger = logging.getLogger("test.core")
    watch(log, ["test.core"], {"EngineCore failed to start."})
    try:
        raise ValueError("one request")
    except ValueError:
        logger.exception("Unexpected error pre-processing request")
    assert log.read_text() == ""
    try:
        raise ValueError("no memory for the cache")
    except ValueError:
        logger.exception("EngineCore failed to start.")

    assert "ValueError: no memory for the cache" in log.read_text()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("raise OSError('address in use')", "OSError: address in use"),
        ("raise SystemExit(2)", ""),
        ("raise KeyboardInterrupt", ""),
    ],
)
def test_an_uncaught_exception_is_written_and_still_shown(
    log: Path, statement: str, words: str
) -> None:
    """An exit that was asked for is no error. What vLLM printed before, it prints still."""
    program = (
        "from pathlib import Path\nfrom live_speculation.termination import watch\n"
        f"watch(Path({str(log)!r}), [], set())\n{statement}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(PLUGIN)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert words in log.read_text()
    assert bool(log.read_text()) == bool(words)
    assert words in done.stderr

"""What the entry point does with the vLLM that it finds."""

import pytest

from live_speculation import plugin, termination, vllm_hooks
from live_speculation.live import LiveSpeculation
from live_speculation.pages import state


def test_a_vllm_that_was_never_read_is_served_an_empty_page_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is hooked, so the operator must not take the empty books for an engine that stands
    still: it reads vLLM's own numbers instead."""
    served: list[LiveSpeculation] = []
    monkeypatch.setattr(termination, "watch", lambda *_: None)
    monkeypatch.setattr(vllm_hooks, "vllm_version", lambda: "0.99.0")
    monkeypatch.setattr(vllm_hooks, "inside_engine_core", lambda: True)
    monkeypatch.setattr(plugin, "_serve", served.append)

    plugin.register()

    (live,) = served
    page = state(live)
    assert (page["measured"], page["tunable"], page["rows"]) == (False, False, [])
    assert "0.99.0 is not one of" in page["reason"]

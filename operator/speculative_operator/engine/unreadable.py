"""The two ways of getting no evidence of an engine: it is silent, or what it says is no page."""

from __future__ import annotations

from speculative_operator.errors import EngineSilent


class PageUnreadable(EngineSilent):
    """The engine answered, but not with a page that can be understood; the message says why."""

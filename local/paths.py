"""Where the local cluster keeps things: caches outside the checkout, state inside it.

Caches are keyed by the content they were made from, so they are rebuilt only when that content
changes and two checkouts share them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
LOCAL = CHECKOUT / "local"
STATE = Path(os.environ.get("SPM_STATE") or CHECKOUT / ".state")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "speculative-operator"


def content_key(files: Iterable[Path], *salt: str) -> str:
    """12 hex digits over the names and bytes of `files` and over `salt`."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for part in salt:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:12]

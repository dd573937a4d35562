"""Services that can be reached: a node's proxy learns of an engine a moment after it is ready."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import closing

from tests.support.api import until


def reach(url: str) -> None:
    """Returns once the engine behind an address answers, whatever it says."""

    def answers() -> bool:
        try:
            with closing(urllib.request.urlopen(f"{url}/v1/models", timeout=10)):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    until(f"{url} answers", answers)

"""What can go wrong, sorted by what the caller does about it.

    OperatorError
    ├─ ModelInvalid     the user must edit: Accepted=False, no retry
    ├─ NotOurs          a foreign object or field stands there: a condition, slow retry
    ├─ ClusterFault     API server or network: back-off
    └─ EngineSilent     no evidence this window; never stops a reconcile

Foreign exceptions are translated at the rim (`engine`, `cluster`) and decided on in one place
(`controller`).
"""


class OperatorError(Exception):
    """Base of every error that the operator raises itself."""


class ModelInvalid(OperatorError):
    """The resource asks for something that cannot be; the message says what to write instead."""


class NotOurs(OperatorError):
    """An object of the name that we need belongs to somebody else."""


class ClusterFault(OperatorError):
    """The API server refused, failed or could not be reached."""


class EngineSilent(OperatorError):
    """An engine gave no page that could be read; that is no evidence, never zero."""

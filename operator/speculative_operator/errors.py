"""What can go wrong, sorted by what the caller does about it.

    OperatorError
    ├─ ModelInvalid     the user must edit: Accepted=False, no retry
    ├─ NotOurs          a foreign object or field stands there: a condition, slow retry
    │  └─ Contested     somebody answers each of our writes with one of their own
    ├─ NotAllowed       the API server forbids what is needed: a condition, slow retry
    ├─ ClusterFault     API server or network: back-off
    └─ EngineSilent     no evidence this window; never stops a reconcile

Foreign exceptions are translated at the rim (`engine`, `cluster`) and decided on in one place
(`controller`).
"""

from yaml import Mark, MarkedYAMLError


class OperatorError(Exception):
    """Base of every error that the operator raises itself."""


class ModelInvalid(OperatorError):
    """The resource asks for something that cannot be; the message says what to write instead."""


class NotOurs(OperatorError):
    """An object of the name that we need belongs to somebody else."""


class Contested(NotOurs):
    """Somebody else writes a field of ours again whenever we have written it."""


class NotAllowed(OperatorError):
    """The API server forbids an object: a quota, a policy or a missing right, in its own words."""


class ClusterFault(OperatorError):
    """The API server refused, failed or could not be reached."""


class EngineSilent(OperatorError):
    """An engine gave no page that could be read; that is no evidence, never zero."""


Refusal = ModelInvalid | NotOurs | NotAllowed
"""What somebody has to resolve before the rest of a model can be done."""


def in_a_line(error: Exception) -> str:
    """What a library says of a file, for people: without error numbers and drawings."""
    match error:
        case OSError():
            return (error.strerror or str(error)).lower()
        case UnicodeDecodeError():
            return "it is no text"
        case MarkedYAMLError(problem=str(problem), problem_mark=Mark(line=line)):
            return f"no YAML: {problem} in line {line + 1}"
        case _:
            return " ".join(str(error).split())

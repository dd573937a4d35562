"""Where an engine finds weights: a Hugging Face name, or a volume mounted at a neutral path.

vLLM looks for `eagle-`, `eagle3`, `dflash` and `dspark` in the draft's path, and what it finds
overrides the methods `draft_model` and `mtp`. So volumes are mounted at paths without these words,
a folder inside of the claim as a subPath, and a Hugging Face name that has one of them is refused
for those two methods.
"""

from __future__ import annotations

from dataclasses import dataclass

from speculative_operator.api.model import Weights
from speculative_operator.api.resource import SpeculativeModelSpec
from speculative_operator.api.speculation import Method
from speculative_operator.errors import ModelInvalid

TARGET_PATH = "/weights/target"
DRAFT_PATH = "/weights/draft"

METHOD_WORDS = ("eagle-", "eagle3", "dflash", "dspark")
READS_PATH = frozenset({Method.DRAFT_MODEL, Method.MTP})
"""Methods that vLLM replaces when the draft's path has one of the words."""


@dataclass(frozen=True)
class ClaimMount:
    """A folder of a PersistentVolumeClaim, mounted read-only."""

    claim: str
    folder: str | None
    """Inside the claim; None is its root."""
    path: str


@dataclass(frozen=True)
class Located:
    """What vLLM is told about one set of weights."""

    name: str
    """Repository id, or path inside the container."""
    revision: str | None
    mount: ClaimMount | None


def target(spec: SpeculativeModelSpec) -> Located:
    """The served model."""
    return _locate(spec.model, TARGET_PATH)


def draft(spec: SpeculativeModelSpec) -> Located | None:
    """The draft's weights, or None for a method that needs none of its own."""
    if spec.speculation.draft is None:
        return None
    return _locate(spec.speculation.draft, DRAFT_PATH)


def refuse_misread_method(spec: SpeculativeModelSpec) -> None:
    """Raises ModelInvalid where vLLM would read another method out of the draft's name."""
    method = spec.speculation.method
    if method not in READS_PATH:
        return
    read = draft(spec) or target(spec)
    word = next((word for word in METHOD_WORDS if word in read.name.lower()), None)
    if word is not None:
        where = "spec.speculation.draft.source" if spec.speculation.draft else "spec.model.source"
        raise ModelInvalid(
            f"{where}: vLLM takes {word!r} in {read.name} for a method of its own and ignores "
            f"method {method.value}. Set spec.speculation.method to what the weights are, or copy "
            f"them to a volume and write pvc://claim/path."
        )


def token_secret(spec: SpeculativeModelSpec) -> str | None:
    """The Secret whose key HF_TOKEN the engine gets; an engine has one token for all it loads."""
    of_target = spec.model.credentials
    of_draft = spec.speculation.draft.credentials if spec.speculation.draft else None
    if of_target and of_draft and of_target != of_draft:
        raise ModelInvalid(
            f"spec.speculation.draft.credentials: {of_draft} differs from spec.model.credentials "
            f"{of_target}, but vLLM reads one token, HF_TOKEN, for both. Name one Secret whose "
            f"token may read both, in both places or in spec.model.credentials alone."
        )
    return of_target or of_draft


def _locate(weights: Weights, path: str) -> Located:
    scheme, _, rest = weights.source.partition("://")
    if scheme == "pvc":
        claim, _, folder = rest.partition("/")
        return Located(name=path, revision=None, mount=ClaimMount(claim, folder or None, path))
    return Located(name=rest, revision=weights.revision, mount=None)

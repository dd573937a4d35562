"""The reserved flags against the real vLLM's own parser: nothing gets past the rules."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from local import vllm_environment
from speculative_operator.api.reserved import RESERVED_FLAGS
from tests.cluster.conftest import CopiedKind
from tests.support.kubectl import Kubectl

SCRIPT = Path(__file__).with_name("flags_of_vllm.py")
CONFIG = '{"method": "ngram"}'
SPECULATIVE = {"speculative_config", "spec_method", "spec_model", "spec_tokens"}

WITH_JSON = ("--speculative-config", "-sc")
SPELLINGS: tuple[Sequence[str], ...] = (
    *([flag[:length], CONFIG] for flag in WITH_JSON for length in range(2, len(flag) + 1)),
    *([f"{flag[:length]}={CONFIG}"] for flag in WITH_JSON for length in range(2, len(flag) + 1)),
    *([f"{flag[:length]}.method", "ngram"] for flag in WITH_JSON for length in (2, 8, 20)),
    ["--speculative_config", CONFIG],
    ["--speculative_config.method=ngram"],
    ["--speculative-config.method+", "ngram"],
    *(["--spec-method"[:length], word] for length in range(6, 14) for word in ("ngram", CONFIG)),
    ["--spec_method=ngram"],
    ["--spec-model", "org/draft"],
    ["--spec_tokens=3"],
)
SHORTENED: Mapping[str, Sequence[str]] = {
    "max_num_seqs": ["--max_num_seqs=8"],
    "tensor_parallel_size": ["-t", "2"],
    "quantization": ["-qfp8"],
    "nnodes": ["-n2"],
    "enable_expert_parallel": ["-e"],
    "served_model_name": ["--served", "name"],
    "shutdown_timeout": ["--shutdown=1"],
}
FROM_33_ON = {"--disable-expert-parallel"}


@pytest.fixture(scope="module")
def parser() -> Mapping[str, Any]:
    """What vLLM's parser has and what it makes of the spellings, asked in one process."""
    python = vllm_environment.folder() / "venv" / "bin" / "python"
    if not python.exists():
        pytest.fail(f"there is no {python}: run: make setup", pytrace=False)
    asked = json.dumps([*SPELLINGS, *SHORTENED.values()])
    done = subprocess.run(
        [python, SCRIPT], input=asked, capture_output=True, text=True, check=False, timeout=250
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def accepted(
    kubectl: Kubectl, copied_kind: CopiedKind, arguments: Sequence[Sequence[str]]
) -> list[Sequence[str]]:
    """Those of the argument lists that the API server lets into `spec.runtime.args`."""
    spec = {
        "model": {"source": "hf://Qwen/Qwen3-8B"},
        "speculation": {"method": "ngram"},
        "accelerator": {"products": ["MI300X"]},
    }
    objects = tuple(
        copied_kind.model(f"flag-{number}", {**spec, "runtime": {"args": list(each)}})
        for number, each in enumerate(arguments)
    )
    said = kubectl.attempt("create", "-f", "-", "--dry-run=server", objects=objects)
    refused = len(re.findall("spec.runtime.args: Forbidden", said.complaint))
    numbers = [int(number) for number in re.findall(r"/flag-(\d+) created", said.output)]
    assert refused + len(numbers) == len(arguments), said.complaint
    return [arguments[number] for number in numbers]


def test_every_spelling_that_vllm_reads_as_speculation_is_refused(
    kubectl: Kubectl, copied_kind: CopiedKind, parser: Mapping[str, Any]
) -> None:
    """Two speculative configurations do not merge: the later one would win in silence."""
    reached = [
        spelling
        for spelling, changed in zip(SPELLINGS, parser["changed"], strict=False)
        if changed and SPECULATIVE & set(changed)
    ]

    assert len(reached) > len(WITH_JSON)
    assert accepted(kubectl, copied_kind, reached) == []


def test_short_and_shortened_flags_are_refused(
    kubectl: Kubectl, copied_kind: CopiedKind, parser: Mapping[str, Any]
) -> None:
    """vLLM's parser takes them, so comparing whole words would not be enough."""
    assert parser["changed"][len(SPELLINGS) :] == [[setting] for setting in SHORTENED]
    assert accepted(kubectl, copied_kind, [*SHORTENED.values()]) == []


def test_every_reserved_flag_exists(parser: Mapping[str, Any]) -> None:
    """A flag that vLLM has renamed would be reserved under a name that nobody writes."""
    reserved = {flag for flag, _ in RESERVED_FLAGS} - FROM_33_ON

    assert reserved - set(parser["options"]) == set()


def test_every_other_name_of_a_reserved_setting_is_refused(
    kubectl: Kubectl, copied_kind: CopiedKind, parser: Mapping[str, Any]
) -> None:
    """A new alias in a new vLLM would be a way around. What is off may be switched off again."""
    options = parser["options"]
    settings = {options[flag] for flag, _ in RESERVED_FLAGS if flag in options} | SPECULATIVE
    names = [
        [option]
        for option, setting in options.items()
        if setting in settings and not option.startswith("--no-")
    ]

    assert accepted(kubectl, copied_kind, names) == []


def test_the_rest_of_vllms_flags_is_free(
    kubectl: Kubectl, copied_kind: CopiedKind, parser: Mapping[str, Any]
) -> None:
    """The operator has no opinion on what it does not need."""
    options = parser["options"]
    settings = {options[flag] for flag, _ in RESERVED_FLAGS if flag in options} | SPECULATIVE
    others = [[option] for option, setting in options.items() if setting not in settings]

    assert len(accepted(kubectl, copied_kind, others)) == len(others) - len([["--config"]])

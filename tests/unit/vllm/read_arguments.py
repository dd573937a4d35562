"""Runs inside vLLM's own environment: reads argument lists as `vllm serve` does.

From standard input: {"models": folder of the tiny models, "engines": {name: arguments}}. To
standard output, as JSON: what vLLM makes of each engine, and the options of a speculative config.
The checkpoints of the arguments are not here, so before a config is made they are replaced by tiny
ones of the same method, on one CPU; all else stays as it was written.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

from vllm.config import CUDAGraphMode, SpeculativeConfig, VllmConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.model_executor.models.registry import ModelRegistry
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup

TARGETS = {"mtp": "mimo-mtp"}
DRAFTS = {
    "eagle": "eagle-head",
    "eagle3": "eagle3-head",
    "dflash": "dflash-head",
    "draft_model": "draft-same",
    "mtp": "mimo-mtp",
    "dspark": "dspark-head",
}

ARCHITECTURES = (
    "LlamaForCausalLM",
    "LlamaForCausalLMEagle3",
    "EagleLlamaForCausalLM",
    "DFlashDraftModel",
    "MiMoForCausalLM",
    "MiMoMTPModel",
    "Qwen3DSparkModel",
)
"""Of the tiny models. vLLM looks at each in a process of its own, which takes a minute a piece."""

PARSER = make_arg_parser(FlexibleArgumentParser())


def parsed(arguments: list[str]) -> Any:
    """The namespace that `vllm serve` works with. Raises ValueError with argparse's words."""
    errors = _Words()
    with contextlib.redirect_stderr(errors):
        try:
            space = PARSER.parse_args(arguments)
        except SystemExit:
            raise ValueError(errors.last) from None
    space.model = space.model_tag
    validate_parsed_serve_args(space)
    return space


class _Words(io.StringIO):
    """Keeps the last line that argparse writes; the rest is its usage, pages of it."""

    last = ""

    def write(self, text: str) -> int:
        self.last = text.strip() or self.last
        return len(text)


def read(arguments: list[str], models: Path) -> dict[str, Any]:
    """What vLLM understood, and then what its validation of the whole config made of it."""
    space = parsed(arguments)
    wanted = dict(space.speculative_config or {})
    table = wanted.get("num_speculative_tokens_per_batch_size")
    written = {
        "model": space.model_tag,
        "served": space.served_model_name,
        "port": space.port,
        "shutdown": space.shutdown_timeout,
        "tensor": space.tensor_parallel_size,
        "pipeline": space.pipeline_parallel_size,
        "data": space.data_parallel_size,
        "expert": space.enable_expert_parallel,
        "seqs": space.max_num_seqs,
        "wanted": wanted,
        "lookup": table
        and build_dynamic_sd_schedule_lookup(
            table,
            vllm_max_batch_size=space.max_num_seqs,
            vllm_num_speculative_tokens=wanted["num_speculative_tokens"],
        ),
    }
    _stand_in(space, wanted.get("method", "none"), models)
    try:
        config = AsyncEngineArgs.from_cli_args(space).create_engine_config()
    except Exception as error:
        return {**written, "error": f"{type(error).__name__}: {error}"}
    made = config.speculative_config
    return {
        **written,
        "method": made and made.method,
        "length": made and made.num_speculative_tokens,
        "table": made and made.num_speculative_tokens_per_batch_size,
        "graphs": _graph_sizes(config) if made else None,
    }


def _graph_sizes(config: VllmConfig) -> list[int]:
    """The sizes, in tokens, that vLLM's own rule would capture graphs for on a GPU."""
    config.compilation_config.cudagraph_mode = CUDAGraphMode.FULL_AND_PIECEWISE
    config.compilation_config.cudagraph_capture_sizes = None
    config.compilation_config.max_cudagraph_capture_size = None
    config.model_config.enforce_eager = False
    config._set_cudagraph_sizes()
    sizes: list[int] = config.compilation_config.cudagraph_capture_sizes
    return sizes


def _stand_in(space: Any, method: str, models: Path) -> None:
    space.model = space.model_tag = str(models / TARGETS.get(method, "target"))
    space.revision = space.quantization = space.max_model_len = None
    space.trust_remote_code = True
    space.tensor_parallel_size = space.pipeline_parallel_size = space.data_parallel_size = 1
    space.enable_expert_parallel = False
    space.reasoning_parser = ""
    if space.speculative_config and "model" in space.speculative_config:
        kept = {
            name: value
            for name, value in space.speculative_config.items()
            if name not in ("revision", "quantization")
        }
        space.speculative_config = {**kept, "model": str(models / DRAFTS[method])}


def main() -> None:
    answers = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        task = json.load(sys.stdin)
        models = Path(task["models"])
        for name in ARCHITECTURES:
            ModelRegistry.register_model(name, ModelRegistry.models[name].load_model_cls())
        result = {
            "engines": {name: read(argv, models) for name, argv in task["engines"].items()},
            "options": [field.name for field in dataclasses.fields(SpeculativeConfig)],
        }
    json.dump(result, answers)


if __name__ == "__main__":
    main()

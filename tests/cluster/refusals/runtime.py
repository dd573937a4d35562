"""Arguments and variables of the engine, and its pod."""

from __future__ import annotations

from tests.cluster.refusals.refusal import Refusal

SPECULATIVE_SPELLINGS = (
    "--speculative-config",
    "--speculative_config",
    '--speculative-config={"method":"ngram"}',
    "--speculative-config.method",
    "--speculative_config.method=ngram",
    "--speculative-conf",
    "--specu",
    "-sc",
    "-sc.method",
    '-sc={"method":"ngram"}',
    "-s",
    "--spec-method",
    "--spec_method=ngram",
    "--spec-model",
    "--spec-model=org/draft",
    "--spec-tokens",
    "--spec_tokens=3",
    "--spec-m",
)


def reserved(argument: str, words: str, *more: str) -> Refusal:
    """A flag of the operator's own among the arguments."""
    return Refusal(
        f"the argument {argument}",
        {"runtime.args": ["--seed", "1", argument, *more]},
        f"spec.runtime.args: Forbidden: (the operator's own flag )?{words}",
        {"runtime.args": ["--seed", "1", "--max-num-batched-tokens=8192", "--block_size", "16"]},
    )


ARGUMENT_REFUSALS = (
    *(
        reserved(
            spelling,
            "-.*: speculation is set by the operator: write spec.speculation instead",
        )
        for spelling in SPECULATIVE_SPELLINGS
    ),
    *(
        reserved(
            spelling, "--config: a config file may hold any flag: write its flags into args instead"
        )
        for spelling in ("--config", "--config=/etc/vllm.yaml")
    ),
    reserved("--max-num-seqs", "--max-num-seqs: write spec.model.maxNumSeqs instead", "64"),
    reserved("--max_num_seqs=64", "--max-num-seqs: write spec.model.maxNumSeqs instead"),
    reserved("--max-num-s=64", "--max-num-seqs: write spec.model.maxNumSeqs instead"),
    reserved("--max-model-len=1k", "--max-model-len: write spec.model.maxModelLen instead"),
    reserved("--model", "--model: write spec.model.source instead", "org/name"),
    reserved("--served-model-name", "--served-model-name: write spec.model.servedNames", "x"),
    reserved("--trust-remote-code", "--trust-remote-code: write spec.model.trustRemoteCode"),
    reserved("--hf-token=secret", "--hf-token: name a Secret in spec.model.credentials instead"),
    reserved("-tp", "-tp: write spec.parallelism.tensor instead", "2"),
    reserved("-tp=2", "-tp: write spec.parallelism.tensor instead"),
    reserved("-t", "-tp: write spec.parallelism.tensor instead", "2"),
    reserved("--tensor-parallel-size=2", "--tensor-parallel-size: write spec.parallelism.tensor"),
    reserved("--data_parallel_size=2", "--data-parallel-size: write spec.parallelism.data"),
    reserved("-dpl=1", "-dpl: write spec.parallelism.data instead"),
    reserved("-qfp8", "-q: write spec.model.quantization instead"),
    reserved("--port=8001", "--port: the Service, the probes and the tuner reach the engine by"),
    reserved("--host", "--host: the Service, the probes and the tuner reach the engine", "::1"),
    reserved("--ssl-keyfile=k", "--ssl-keyfile: the Service, the probes and the tuner reach"),
    reserved("--shutdown-timeout=1", "--shutdown-timeout: write spec.runtime.drainSeconds"),
    reserved("--disable-log-stats", "--disable-log-stats: the operator reads these counters"),
    reserved("--nnodes=2", "--nnodes: a replica is one pod: write spec.parallelism instead"),
)

ENVIRONMENT_REFUSALS = (
    *(
        Refusal(
            f"the variable {name}",
            {"runtime.env": [{"name": name, "value": "1"}]},
            f"spec.runtime.env: Forbidden: {name}: the operator's plugin inside the engine needs "
            "it: leave it out, or build what it should bring into an image and name that in "
            "spec.runtime.image",
            {"runtime.env": [{"name": f"MY_{name}", "value": "1"}]},
        )
        for name in (
            "PYTHONPATH",
            "PYTHONHOME",
            "VLLM_PLUGINS",
            "VLLM_USE_RUST_FRONTEND",
            "SPECULATION_SCHEDULE",
        )
    ),
    Refusal(
        "a reserved variable from a ConfigMap",
        {
            "runtime.env": [
                {
                    "name": "PYTHONPATH",
                    "valueFrom": {"configMapKeyRef": {"name": "paths", "key": "python"}},
                }
            ]
        },
        "PYTHONPATH: the operator's plugin inside the engine needs it",
    ),
    Refusal(
        "a variable with two values",
        {
            "runtime.env": [
                {
                    "name": "A",
                    "value": "1",
                    "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
                }
            ]
        },
        "variable A: write either value or valueFrom",
        {"runtime.env": [{"name": "A", "value": "1"}]},
    ),
    Refusal(
        "a variable without a value",
        {"runtime.env": [{"name": "A"}]},
        "variable A: write either value or valueFrom",
        {"runtime.env": [{"name": "A", "value": ""}]},
    ),
    Refusal(
        "a value from nowhere",
        {"runtime.env": [{"name": "A", "valueFrom": {}}]},
        "write exactly one of secretKeyRef, configMapKeyRef and fieldRef",
        {"runtime.env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
    ),
    Refusal(
        "a variable twice",
        {"runtime.env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]},
        r'spec.runtime.env\[1\]: Duplicate value: .*"A"',
        {"runtime.env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    ),
    Refusal(
        "a token beside credentials",
        {"model.credentials": "hf-token", "runtime.env": [{"name": "HF_TOKEN", "value": "t"}]},
        "spec.runtime.env: Forbidden: HF_TOKEN comes from credentials already: leave it out of "
        "env, or leave credentials out",
        {"runtime.env": [{"name": "HF_TOKEN", "value": "t"}]},
    ),
    Refusal(
        "AITER on a product that has none of it",
        {
            "accelerator.products": ["MI210", "MI300X"],
            "runtime.env": [{"name": "VLLM_ROCM_USE_AITER", "value": "1"}],
        },
        "VLLM_ROCM_USE_AITER works from MI300 on: leave it out, or take MI210 and MI250X out of "
        "accelerator.products",
        {"runtime.env": [{"name": "VLLM_ROCM_USE_AITER", "value": "1"}]},
    ),
)

POD_REFUSALS = (
    Refusal(
        "GPUs among the resources",
        {"runtime.resources.limits": {"amd.com/gpu": 1}},
        "spec.runtime.resources.limits: Forbidden: GPUs are asked for by spec.accelerator: write "
        "count and resourceName there",
        {"runtime.resources.limits": {"memory": "64Gi", "cpu": 8}},
    ),
    Refusal(
        "a resource that is no quantity",
        {"runtime.resources.requests": {"memory": "much"}},
        r"resources.requests\[memory\]: .*not a quantity; write for example 500m, 4, 16Gi",
        {"runtime.resources.requests": {"memory": "16Gi"}},
    ),
    Refusal(
        "a request above its limit",
        {"runtime.resources": {"requests": {"memory": "2Ti"}, "limits": {"memory": "64Gi"}}},
        "spec.runtime.resources.requests: .*a request is above its limit: lower the request or "
        "raise the limit",
        {"runtime.resources": {"requests": {"memory": 64000000}, "limits": {"memory": "64Gi"}}},
    ),
    Refusal(
        "shared memory that is no quantity",
        {"runtime.sharedMemory": "8 GB"},
        "spec.runtime.sharedMemory: .*not a quantity; write for example 500m, 4, 16Gi",
        {"runtime.sharedMemory": "8G"},
    ),
    Refusal(
        "root that must not be root",
        {"runtime.securityContext": {"runAsUser": 0}},
        "spec.runtime.securityContext.runAsUser: .*user 0 is root: write another runAsUser, or "
        "runAsNonRoot: false",
        {"runtime.securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
    ),
    Refusal(
        "a seccomp profile that is not named",
        {"runtime.securityContext": {"seccompProfile": {"type": "Localhost"}}},
        "type Localhost and localhostProfile go together: write both or neither",
        {
            "runtime.securityContext": {
                "seccompProfile": {"type": "Localhost", "localhostProfile": "rccl.json"}
            }
        },
    ),
)

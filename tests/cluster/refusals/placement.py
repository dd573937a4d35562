"""Where weights come from, and which GPUs they run on."""

from __future__ import annotations

from tests.cluster.refusals.refusal import DRAFT, Refusal

SOURCE_REFUSALS = (
    *(
        Refusal(
            f"a source {source}",
            {"model.source": source},
            r"spec.model.source: .*write hf://org/name for Hugging Face or pvc://claim/path for a "
            r"volume \(s3:// and oci:// do not work yet: copy the weights to a volume\)",
            {"model.source": "pvc://models/qwen"},
        )
        for source in ("s3://bucket/model", "oci://registry/model", "Qwen/Qwen3-8B", "/models/qwen")
    ),
    *(
        Refusal(
            f"a Hugging Face source {source}",
            {"model.source": source},
            "a Hugging Face source is hf://org/name, for example hf://Qwen/Qwen3-8B; a branch or "
            "tag goes into revision",
            {"model.source": "hf://Qwen/Qwen3-8B", "model.revision": "main"},
        )
        for source in ("hf://gpt2", "hf://a/b/c", "hf://Qwen/Qwen3-8B@main", "hf://../..")
    ),
    *(
        Refusal(
            f"a volume source {source}",
            {"model.source": source},
            "a volume source is pvc://claim/path, for example pvc://models/qwen3-8b; no part of "
            "the path is empty or starts with a dot",
            {"model.source": "pvc://models"},
        )
        for source in ("pvc://models/../etc", "pvc:///qwen", "pvc://models//qwen", "pvc://Models/q")
    ),
    Refusal(
        "an unknown source of a draft",
        {f"{DRAFT}.source": "s3://bucket/draft"},
        "spec.speculation.draft.source: .*write hf://org/name for Hugging Face or pvc://claim/path",
        {f"{DRAFT}.source": "pvc://models/draft"},
    ),
    Refusal(
        "a revision of a volume",
        {"model.source": "pvc://models/qwen", "model.revision": "main"},
        "spec.model.revision: Forbidden: revision is for hf:// sources; a volume holds one "
        "version, so leave it out and write the version into the path",
        {"model.source": "pvc://models/qwen/main"},
    ),
    Refusal(
        "credentials for a volume",
        {"model.source": "pvc://models/qwen", "model.credentials": "hf-token"},
        "spec.model.credentials: Forbidden: credentials are for hf:// sources; a volume needs "
        "none, so leave them out",
        {"model.credentials": "hf-token"},
    ),
    Refusal(
        "a served name twice",
        {"model.servedNames": ["a", "a"]},
        "a name is listed twice; list each served name once",
        {"model.servedNames": ["a", "b"]},
    ),
)

HARDWARE_REFUSALS = (
    Refusal(
        "parallelism whose product is not the count",
        {"parallelism": {"tensor": 4}, "accelerator.count": 8},
        "spec.parallelism: .*tensor 4 x pipeline 1 x data 1 is 4, but accelerator.count is 8: make "
        "them equal, or leave tensor out",
        {"parallelism": {"tensor": 4, "pipeline": 2}, "accelerator.count": 8},
    ),
    Refusal(
        "a count that the pipeline cannot share out",
        {"parallelism": {"pipeline": 2}, "accelerator.count": 3},
        "spec.accelerator.count: .*accelerator.count 3 cannot be shared out over pipeline 2 x data "
        "1: write a multiple of 2",
        {"parallelism": {"pipeline": 2}, "accelerator.count": 4},
    ),
    Refusal(
        "an unknown product",
        {"accelerator.products": ["MI300"]},
        r'spec.accelerator.products\[0\]: Unsupported value: "MI300": supported values: "MI210"',
        {"accelerator.products": ["MI300A", "MI308X"]},
    ),
    Refusal(
        "a product twice",
        {"accelerator.products": ["MI300X", "MI300X"]},
        r'spec.accelerator.products\[1\]: Duplicate value: "MI300X"',
    ),
    Refusal(
        "a resource that is not AMD's",
        {"accelerator.resourceName": "nvidia.com/gpu"},
        "spec.accelerator.resourceName: .*write amd.com/gpu, or a partition's resource such as "
        "amd.com/cpx_nps4",
        {"accelerator.resourceName": "amd.com/cpx_nps4"},
    ),
    Refusal(
        "a label that no node can have",
        {"accelerator.nodeSelector": {"zone": "zone a"}},
        "a key or value cannot be a node label: write for example topology.kubernetes.io/zone",
        {"accelerator.nodeSelector": {"topology.kubernetes.io/zone": "zone-a"}},
    ),
    Refusal(
        "a toleration that compares with nothing",
        {"accelerator.tolerations": [{"key": "team", "value": "a"}]},
        "a value is compared by operator Equal only: write operator: Equal, or leave value out",
        {"accelerator.tolerations": [{"key": "team", "operator": "Equal", "value": "a"}]},
    ),
    Refusal(
        "a toleration of no taint",
        {"accelerator.tolerations": [{"operator": "Equal", "value": "a"}]},
        "operator Equal needs a key; without a key write operator: Exists",
        {"accelerator.tolerations": [{"operator": "Exists"}]},
    ),
    Refusal(
        "seconds for a taint that evicts nobody",
        {"accelerator.tolerations": [{"key": "team", "tolerationSeconds": 60}]},
        "tolerationSeconds counts for effect NoExecute only",
        {
            "accelerator.tolerations": [
                {"key": "team", "effect": "NoExecute", "tolerationSeconds": 60}
            ]
        },
    ),
)

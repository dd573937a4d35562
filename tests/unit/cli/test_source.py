"""Where the commands have their data from, and what they say when there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from speculative_operator.cli.cluster import from_cluster
from speculative_operator.cli.source import NothingKnown, from_file
from speculative_operator.cluster.client import Client, Refused
from speculative_operator.cluster.manifests import Manifest, Reference
from speculative_operator.errors import ClusterFault
from tests.support.recorded import RecordedModel


class Cluster(Client):
    """Objects by kind; a number in place of one is the HTTP status of a refusal."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self._objects = objects

    async def read(self, reference: Reference) -> Manifest | None:
        found = self._objects.get(reference.kind)
        if isinstance(found, int):
            raise Refused(f"GET {reference}", found, "", "refused")
        return found


async def test_a_model_is_read_with_its_memory(recorded: RecordedModel) -> None:
    """Both with the user's own rights."""
    cluster = Cluster({"SpeculativeModel": recorded.model, "ConfigMap": recorded.memory})

    found = await from_cluster(cluster, "prod", "qwen")

    assert found.title == "prod/qwen"
    assert found.status is not None
    assert found.status.proposal_length is not None
    assert len(found.recorded().past) > 100
    assert found.recorded().policy.choices == (1, 2, 3, 4, 5, 6, 7)


async def test_a_model_that_is_not_there_is_named_with_its_namespace() -> None:
    """The commonest mistake is the wrong namespace."""
    with pytest.raises(NothingKnown, match=r"no SpeculativeModel qwen in namespace prod: `kubectl"):
        await from_cluster(Cluster({}), "prod", "qwen")


async def test_a_missing_right_is_named_by_verb_and_resource() -> None:
    """So that it can be asked for."""
    with pytest.raises(ClusterFault, match=r"verb get on the resource speculativemodels\.specul"):
        await from_cluster(Cluster({"SpeculativeModel": 403}), "prod", "qwen")


async def test_other_refusals_are_the_api_servers_words() -> None:
    """A login that ran out, for example."""
    with pytest.raises(Refused, match="401"):
        await from_cluster(Cluster({"SpeculativeModel": 401}), "prod", "qwen")


async def test_without_the_right_to_the_memory_there_is_still_the_status(
    recorded: RecordedModel,
) -> None:
    """Viewers of models need not be readers of ConfigMaps."""
    cluster = Cluster({"SpeculativeModel": recorded.model, "ConfigMap": 403})

    found = await from_cluster(cluster, "prod", "qwen")

    assert found.status is not None
    with pytest.raises(NothingKnown, match="verb get on the resource configmaps in namespace prod"):
        found.recorded()


@pytest.mark.parametrize("memory", [None, {}, {"data": {}}, {"data": {"state.json": "{"}}])
async def test_a_model_without_traffic_has_no_history_yet(
    recorded: RecordedModel, memory: Manifest | None
) -> None:
    """It says what is needed for one."""
    cluster = Cluster({"SpeculativeModel": recorded.model, "ConfigMap": memory})

    found = await from_cluster(cluster, "prod", "qwen")

    with pytest.raises(NothingKnown, match=r"prod/qwen-tuning: no window was recorded yet"):
        found.recorded()


async def test_a_memory_of_another_version_is_told_from_none(
    recorded: RecordedModel, tmp_path: Path
) -> None:
    """Waiting for traffic would not help."""
    state = json.loads(recorded.memory["data"]["state.json"]) | {"version": 1}
    data = recorded.memory["data"] | {"state.json": json.dumps(state)}
    memory = recorded.memory | {"data": data}
    path = tmp_path / "memory.yaml"
    path.write_text(yaml.safe_dump(memory))
    cluster = Cluster({"SpeculativeModel": recorded.model, "ConfigMap": memory})

    for found in (from_file(path), await from_cluster(cluster, "prod", "qwen")):
        with pytest.raises(
            NothingKnown, match="in memory format 1, and this command reads format 4: take"
        ):
            found.recorded()


@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_a_saved_config_map_is_as_good_as_the_cluster(
    recorded: RecordedModel, tmp_path: Path, dump: Any
) -> None:
    """It can be sent to somebody who has no access."""
    path = tmp_path / "memory"
    path.write_text(dump(recorded.memory))

    found = from_file(path)

    assert found.title == "qwen-tuning"
    assert len(found.recorded().past) > 100


@pytest.mark.parametrize("text", ["a: b", "- 1", "{", ""])
def test_a_file_that_is_no_config_map_says_how_to_save_one(tmp_path: Path, text: str) -> None:
    """Its name and what is wrong with it."""
    path = tmp_path / "memory.yaml"
    path.write_text(text)

    with pytest.raises(NothingKnown, match=r"memory\.yaml"):
        from_file(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A typing error."""
    with pytest.raises(
        NothingKnown, match="no-such-file cannot be read: no such file or directory"
    ):
        from_file(tmp_path / "no-such-file")


def test_a_file_that_is_no_yaml_says_where_it_is_wrong(tmp_path: Path) -> None:
    """In a line, as everything that the command complains of."""
    path = tmp_path / "memory.yaml"
    path.write_text("data:\n  a: b: c\n")

    with pytest.raises(NothingKnown, match=r"no YAML: .* in line 2$"):
        from_file(path)

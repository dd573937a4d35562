"""The chart as it is installed on the node, and a model that lives through what is done to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from local import images, install
from local.waiting import wait_for
from speculative_operator.api.names import LABEL_MODEL_UID
from speculative_operator.plan.environment import SCHEDULE_KEY
from speculative_operator.tuning.schedule import schedule_hash
from tests.support.goodput import page
from tests.support.helm import CHART, RELEASE, RELEASE_NAMESPACE, helm, on
from tests.support.kubectl import Kubectl
from tests.support.models import QUICK_PROBES

EXAMPLE = CHART.parents[1] / "examples" / "local-simulated.yaml"
READY_LIMIT = 120.0
WRONG = "app.kubernetes.io/name=wrong"
OURS = (RELEASE, f"--namespace={RELEASE_NAMESPACE}")


def upgrade(kubectl: Kubectl, release: Sequence[str], chart: Path, values: Any) -> str:
    """Brings `release` (its name and where it is) to `chart`; returns Helm's words, once it is
    ready."""
    answer = helm(
        "upgrade", *release, str(chart), *on(kubectl.access),
        "--install", "--wait", "--timeout=180s",
        "--force-conflicts",  # other tests scale the operator, which makes its replicas theirs
        values=values,
    )  # fmt: skip
    assert answer.done, answer.complaint
    return answer.output


def roll_back(kubectl: Kubectl, release: Sequence[str]) -> None:
    """Brings `release` back to the chart and the values before the last upgrade."""
    answer = helm("rollback", *release, *on(kubectl.access), "--wait", "--timeout=180s")
    assert answer.done, answer.complaint


def uninstall(kubectl: Kubectl, release: Sequence[str]) -> str:
    """Takes a release away; returns Helm's words."""
    answer = helm("uninstall", *release, *on(kubectl.access), "--wait")
    assert answer.done, answer.complaint
    # Its rights went with the operator, so it could not give its Lease back.
    kubectl("delete", "lease", "--all", release[1])
    return answer.output


def own_values() -> dict[str, Any]:
    """The images that this checkout's install has brought to the node, also for `helm test`."""
    references = {name: images.reference(name) for name in images.PROJECT_IMAGES}
    model = live_model(EXAMPLE, references["simulated-engine"])
    return {**install.values(references), "test": {"model": model["spec"]}}


def live_model(example: Path, image: str) -> dict[str, Any]:
    """An example of a simulated engine, for a node that is waited for."""
    model: dict[str, Any] = yaml.safe_load(example.read_text())
    model["spec"]["runtime"] |= {"image": image, "podTemplate": QUICK_PROBES}
    model["spec"]["accelerator"]["products"] = ["MI300X", "MI325X"]
    return model


class LiveModel:
    """A model with a simulated engine, seen through kubectl."""

    def __init__(
        self, kubectl: Kubectl, namespace: str, model: Mapping[str, Any] | None = None
    ) -> None:
        """Applies it, by default this checkout's example, and waits until it is Ready."""
        self._kubectl = kubectl
        self.namespace = namespace
        self._where = f"--namespace={namespace}"
        model = model or live_model(EXAMPLE, images.reference("simulated-engine"))
        self._name = model["metadata"]["name"]
        kubectl("apply", self._where, "--filename=-", objects=(model,))
        wait_for("the model to be Ready", self.is_ready, limit=READY_LIMIT)

    def read(self) -> dict[str, Any]:
        model: dict[str, Any] = json.loads(
            self._kubectl("get", "spm", self._name, self._where, "--output=json")
        )
        return model

    def is_ready(self) -> bool:
        return self._has("Ready", "True")

    def is_settled(self) -> bool:
        """Whether the operator has seen the newest spec and nothing is under way."""
        model = self.read()
        seen = model["status"]["observedGeneration"] == model["metadata"]["generation"]
        return bool(seen) and self.is_ready() and self._has("Progressing", "False")

    def wait_until_settled(self) -> None:
        wait_for("the edit to be carried out", self.is_settled, limit=READY_LIMIT)

    def containers(self) -> tuple[tuple[str, str], ...]:
        """UID of each pod and id of its container: other ones after any restart."""
        pods = self._pods()
        return tuple(
            (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["containerID"])
            for pod in pods["items"]
        )

    def templates(self) -> set[str]:
        """Hashes of the templates that its pods were made from."""
        pods = self._pods()
        return {pod["metadata"]["labels"]["pod-template-hash"] for pod in pods["items"]}

    def spoil_labels(self, resource: str) -> None:
        """Somebody else labels its objects of a kind."""
        self._kubectl("label", resource, self._where, self._selector(), WRONG, "--overwrite")

    def labelled(self, resource: str) -> bool:
        """Whether its objects of a kind have our label again."""
        wrong = f"{self._selector()},{WRONG}"
        return not self._kubectl("get", resource, self._where, wrong, "--output=name")

    def count(self, resource: str) -> int:
        """Of its objects of a kind."""
        found = self._kubectl("get", resource, self._where, self._selector(), "--output=name")
        return len(found.splitlines())

    def patch(self, spec: Mapping[str, Any]) -> None:
        patch = json.dumps({"spec": spec})
        self._kubectl("patch", "spm", self._name, self._where, "--type=merge", f"--patch={patch}")

    def pin(self, length: int) -> None:
        """Pins the proposal length, and waits until every engine has read that."""
        self.patch({"tuning": {"bounds": {"min": length, "max": length}}})
        wait_for(f"K={length} to be read", lambda: self._has_read(length), limit=READY_LIMIT)

    def _has_read(self, length: int) -> bool:
        (text,) = self._schedules()
        pages = [page(pod["status"]["podIP"]) for pod in self._pods()["items"]]
        (_, _, at_small_batches), *_ = json.loads(text)["table"]
        return at_small_batches == length and all(
            told["hash_read"] == schedule_hash(text) and not told["error"] for told in pages
        )

    def _schedules(self) -> list[str]:
        """The schedule files of all its revisions."""
        found = json.loads(
            self._kubectl("get", "configmaps", self._where, self._selector(), "--output=json")
        )
        return [
            item["data"][SCHEDULE_KEY]
            for item in found["items"]
            if SCHEDULE_KEY in item.get("data", {})
        ]

    def delete(self) -> None:
        """Deletes the model and waits until its pods are gone with it."""
        selector = self._selector()
        self._kubectl("delete", "spm", self._name, self._where)
        self._kubectl("wait", "--for=delete", "pods", self._where, selector, "--timeout=50s")

    def _selector(self) -> str:
        return f"--selector={LABEL_MODEL_UID}={self.read()['metadata']['uid']}"

    def _pods(self) -> Any:
        return json.loads(
            self._kubectl("get", "pods", self._where, self._selector(), "--output=json")
        )

    def _has(self, kind: str, value: str) -> bool:
        conditions = self.read().get("status", {}).get("conditions", ())
        return any(c["type"] == kind and c["status"] == value for c in conditions)

"""The demo: a tiny model on the real vLLM, load on it, and what the operator makes of that.

python -m local.demo              serve, load and watch for a few minutes
python -m local.demo ask PROMPT   one completion of the model
python -m local.demo down         delete the model

Runs inside the cluster's network: `python -m local.cluster enter -- …`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from local import kubectl, machine, model_volume
from local.load import LoadPlan, load
from local.machine import Machine
from local.paths import CHECKOUT
from local.waiting import WaitedTooLongError, say, wait_for

NAMESPACE = "demo"
EXAMPLE = CHECKOUT / "examples" / "local.yaml"
START_LIMIT = 600.0
WATCH_SECONDS = 240.0
LOOK_SECONDS = 5.0
REQUESTS_AT_A_TIME = 4
ANSWER_TOKENS = 48

Status = Mapping[str, Any]

COLUMNS = "{:>6}  {:<12} {:>2}  {:>10}  {:>11}  {:>8}  {:>12}  {}"
HEADING = COLUMNS.format(
    "time", "mode", "K", "acceptance", "tokens/step", "speed-up", "client tok/s", "tuned"
)


def line(seconds: float, status: Status, tokens_per_second: float) -> str:
    """One row under `HEADING`. What is not known is a dash, which is not 0."""
    evidence = status.get("evidence", {})
    return COLUMNS.format(
        f"{seconds // 60:.0f}:{seconds % 60:02.0f}",
        status.get("mode", "-"),
        status.get("proposalLength", "-"),
        evidence.get("acceptance", "-"),
        evidence.get("acceptanceLength", "-"),
        evidence.get("speedup", "-"),
        f"{tokens_per_second:.0f}",
        condition(status, "Tuned").get("reason", "-"),
    )


def condition(status: Status, kind: str) -> Mapping[str, str]:
    """The condition of a type; empty when there is none yet."""
    found = (entry for entry in status.get("conditions", ()) if entry["type"] == kind)
    return next(found, {})


def decisions(status: Status, *, since: str) -> Iterator[tuple[str, str]]:
    """Time and words of the decisions after the time `since`, oldest first."""
    for decision in reversed(status.get("decisions", ())):
        if decision["time"] > since:
            yield decision["time"], decision["message"]


class Demo:
    """The demo's model on one running cluster."""

    def __init__(self, node: Machine) -> None:
        self._node = node
        documents = tuple(yaml.safe_load_all(EXAMPLE.read_text()))
        self._objects = tuple(document for document in documents if document)
        self._name = next(
            document["metadata"]["name"]
            for document in self._objects
            if document["kind"] == "SpeculativeModel"
        )

    def serve(self) -> None:
        """Applies the model, and returns once it is Ready."""
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        }
        wanted = yaml.safe_dump_all((namespace, *model_volume.manifests(NAMESPACE), *self._objects))
        say(f"applying {EXAMPLE.relative_to(CHECKOUT)} in namespace {NAMESPACE}")
        self._kubectl("apply", "--server-side", "--filename=-", stdin=wanted)
        told = ""

        def ready() -> bool:
            nonlocal told
            state = condition(self.status(), "Ready")
            words = f"{state.get('reason', 'Unknown')}: {state.get('message', 'not seen yet')}"
            if words != told:
                say(f"  {words}")
                told = words
            return state.get("status") == "True"

        wait_for("the model to be Ready", ready, limit=START_LIMIT, interval=1)

    async def watch(self) -> None:
        """Sends load, and prints what the operator measures and decides."""
        plan = LoadPlan(self.url(), REQUESTS_AT_A_TIME, WATCH_SECONDS, model=self._name)
        say(f"{REQUESTS_AT_A_TIME} requests at a time for {WATCH_SECONDS / 60:.0f} minutes")
        print(HEADING, flush=True)
        known = max((entry["time"] for entry in self.status().get("decisions", ())), default="")
        seconds, tokens = 0.0, 0
        async with load(plan) as running:
            while not await running.ended(LOOK_SECONDS):
                status = await asyncio.to_thread(self.status)
                for at, words in tuple(decisions(status, since=known)):
                    print(f"        decided: {words}", flush=True)
                    known = at
                report = running.report
                rate = (report.tokens - tokens) / max(report.seconds - seconds, 0.001)
                seconds, tokens = report.seconds, report.tokens
                print(line(seconds, status, rate), flush=True)
        print(f"\n{running.report}")
        for failure in running.report.failures:
            print(failure)

    def farewell(self) -> None:
        """What a user sees in the end, and what to do next."""
        print()
        print(f"$ kubectl --namespace {NAMESPACE} get spm")
        print(self._kubectl("get", "spm"))
        print('Ask it something:      make ask PROMPT="the quick brown fox"')
        print(f'See all it knows:      make kubectl ARGS="-n {NAMESPACE} describe spm"')
        print("Delete the model:      make demo-down")
        print("Take everything down:  make cluster-down")

    def ask(self, prompt: str) -> str:
        """The model's completion of `prompt`, through the Service."""
        body = {"model": self._name, "prompt": prompt, "max_tokens": ANSWER_TOKENS}
        request = urllib.request.Request(
            f"{self.url()}/v1/completions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return str(json.load(answer)["choices"][0]["text"])

    def down(self) -> None:
        """Deletes the demo's namespace and volume."""
        self._kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found")
        for manifest in model_volume.manifests(NAMESPACE):
            if manifest["kind"] == "PersistentVolume":
                name = manifest["metadata"]["name"]
                self._kubectl("delete", "persistentvolume", name, "--ignore-not-found")

    def status(self) -> Status:
        """The status of the model; empty before the operator has seen it."""
        model = json.loads(self._kubectl("get", "spm", self._name, "--output=json"))
        status: Status = model.get("status", {})
        return status

    def url(self) -> str:
        """The root of the model's server, by the Service's address."""
        service = json.loads(self._kubectl("get", "service", self._name, "--output=json"))
        return f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"

    def _kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return kubectl.run(self._node, f"--namespace={NAMESPACE}", *arguments, stdin=stdin)


def main(arguments: Sequence[str]) -> int:
    demo = Demo(machine.require())
    match arguments:
        case []:
            demo.serve()
            asyncio.run(demo.watch())
            demo.farewell()
        case ["ask", prompt]:
            print(f"{prompt}{demo.ask(prompt)}")
            say("(The model's weights are random, so it babbles.)")
        case ["down"]:
            demo.down()
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (machine.NotRunningError, kubectl.KubectlError, WaitedTooLongError) as error:
        sys.exit(str(error))

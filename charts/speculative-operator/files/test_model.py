"""What `helm test` runs: applies a small model, waits until it is ready, asks it, deletes it.

`python test_model.py MODEL.json`, in a pod whose service account may create, get and delete models.
Only the standard library: it runs in the operator's image as it is.
"""

from __future__ import annotations

import json
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
API = "https://kubernetes.default.svc/apis/speculation.dev/v1alpha1"
PROMPT = "The capital of France is"
EVERY_SECONDS = 2
TRIES = 15
IMPOSSIBLE = "NoNodeFits"
"""The reason of Ready where no node has the GPUs that are asked for, however many come free."""
PATIENCE = 150
"""Looks at it in a row, five minutes: pools that scale from zero have no node before."""

Manifest = dict[str, Any]


def call(verb: str, path: str, body: Manifest | None = None) -> Manifest:
    """One request to the API server, with the pod's own rights; a refusal ends the test."""
    request = urllib.request.Request(
        f"{API}{path}",
        None if body is None else json.dumps(body).encode(),
        {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
            "Content-Type": "application/json",
        },
        method=verb,
    )
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusted) as answer:
            found: Manifest = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        sys.exit(f"{verb} {path}: {json.loads(error.read())['message']}")


def condition(model: Manifest, kind: str) -> Manifest:
    """Of the newest spec; {} while the operator has said nothing of it."""
    conditions = model.get("status", {}).get("conditions", [])
    return next(
        (
            found
            for found in conditions
            if found["type"] == kind
            and found.get("observedGeneration") == model["metadata"]["generation"]
        ),
        {},
    )


def wait(path: str) -> None:
    """Until the model is Ready, telling what it waits for. Ends the test where it cannot be."""
    told, fits_nowhere = "", 0
    while True:
        model = call("GET", path)
        ready, stalled = condition(model, "Ready"), condition(model, "Stalled")
        words = ready.get("message") or "the operator has not looked at it yet"
        if words != told:
            told = words
            print(words)
        if ready.get("status") == "True":
            return
        if stalled.get("status") == "True":
            sys.exit(f"it cannot become ready: {stalled['reason']}: {stalled['message']}")
        fits_nowhere = fits_nowhere + 1 if ready.get("reason") == IMPOSSIBLE else 0
        if fits_nowhere > PATIENCE:
            sys.exit("it cannot become ready: write a product that you have into test.model")
        time.sleep(EVERY_SECONDS)


def ask(model: Manifest) -> str:
    """The model's own words, through its Service."""
    metadata, spec = model["metadata"], model["spec"]
    served = (spec["model"].get("servedNames") or [metadata["name"]])[0]
    port = spec.get("service", {}).get("port", 80)
    body = {"model": served, "prompt": PROMPT, "max_tokens": 16, "temperature": 0}
    request = urllib.request.Request(
        f"http://{metadata['name']}.{metadata['namespace']}.svc:{port}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    problem: Exception | None = None
    for _ in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return str(json.loads(answer.read())["choices"][0]["text"])
        except OSError as error:
            # Nodes learn a moment later than the status tells that the Service has a pod.
            problem = error
            time.sleep(EVERY_SECONDS)
    sys.exit(f"its Service does not answer: {problem}")


def main(file: str) -> None:
    model: Manifest = json.loads(Path(file).read_text())
    namespace, name = model["metadata"]["namespace"], model["metadata"]["name"]
    models = f"/namespaces/{namespace}/speculativemodels"
    made = call("POST", models, model)
    try:
        print(f"SpeculativeModel {namespace}/{name} is applied")
        wait(f"{models}/{name}")
        text = ask(made)
        if not text:
            sys.exit("it answers, but says nothing")
        print(f"{PROMPT}{text}")
    finally:
        call("DELETE", f"{models}/{name}")


def out_of_time(*_: object) -> None:
    """The pod's deadline: the model is deleted before the pod goes."""
    sys.exit("it was not done in time")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, out_of_time)
    main(sys.argv[1])

"""The check of rendered manifests finds what the API server would refuse."""

from __future__ import annotations

from typing import Any

from tools.validate import complaint, manifests, supported

NEWEST = supported()[-1]


def a_service(**spec: Any) -> dict[str, Any]:
    port = {"name": "http", "port": 80}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "qwen"},
        "spec": {"ports": [port], **spec},
    }


def test_a_sound_manifest_has_no_complaint() -> None:
    """Otherwise every other finding would drown."""
    assert complaint(a_service(type="ClusterIP"), NEWEST) is None


def test_a_misspelt_field_is_found() -> None:
    """The API server only warns of one, and leaves it out."""
    found = complaint(a_service(selctor={"app": "qwen"}), NEWEST)

    assert found is not None
    assert "Service qwen" in found
    assert "selctor" in found


def test_a_kind_that_kubernetes_does_not_know_is_found() -> None:
    """A typing error in a version is one of the commonest."""
    found = complaint({**a_service(), "apiVersion": "v2"}, NEWEST)

    assert found == "Service v2 is unknown to Kubernetes 1.37"


def test_a_field_that_an_older_kubernetes_lacks_is_found() -> None:
    """The chart lets that version in."""
    oldest = supported()[0]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "qwen"},
        "spec": {"containers": [{"name": "engine"}], "hostnameOverride": "qwen"},
    }

    assert complaint(pod, NEWEST) is None
    assert "hostnameOverride" in (complaint(pod, oldest) or "")


def test_objects_of_our_own_kind_are_left_to_the_api_server() -> None:
    """Their schema is the CRD, which the tests on a real API server hold."""
    model = {"apiVersion": "speculation.dev/v1alpha1", "kind": "SpeculativeModel"}

    assert complaint(model, NEWEST) is None


def test_empty_documents_are_no_manifests() -> None:
    """Helm leaves some where a template rendered to nothing."""
    assert list(manifests("---\n---\nkind: Service\n---\n")) == [{"kind": "Service"}]

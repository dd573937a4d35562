"""Two operators while a user edits all the time: one acts, and what it decides is not lost.

The tests are acts of one play on one set of models: each ends with two operators again.
"""

from __future__ import annotations

import base64
import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from local import audit
from local.access import ClusterAccess
from speculative_operator.tuning.history import entries
from speculative_operator.tuning.memory import from_data
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, until
from tests.support.nodeless import Place, engine, make_ready
from tests.support.operator_pair import Pair, edits, now, pair
from tests.support.played_schedules import Played, page, playing

pytestmark = pytest.mark.timeout(300)

MODELS = 4
EDITS_EVERY = 0.25
"""Seconds."""

Tell = Callable[[str, object], None]


@dataclass
class Play:
    """What the acts share."""

    pair: Pair
    places: dict[str, Place]
    engines: dict[str, Played]
    wanted: dict[str, int]
    close: Callable[[], None]
    """Ends the edits."""


@pytest.fixture(scope="module")
def play(
    cluster: ClusterAccess,
    api: KubernetesApi,
    nobody_else: None,
    run: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Play]:
    """Models that serve, a user who edits them, and two operators that were started together."""
    if not cluster.is_local:
        pytest.skip("reads the audit log of the local cluster")
    namespace = f"ha-{run}-{uuid.uuid4().hex[:4]}"
    metadata = {"name": namespace, "labels": {RUN_LABEL: run}}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    places = {name: Place(api, namespace, name) for name in (f"m{n}" for n in range(MODELS))}
    engines = {name: Played() for name in places}
    with contextlib.ExitStack() as stack:
        two = stack.enter_context(pair(cluster, namespace, tmp_path_factory.mktemp("pair")))
        stack.enter_context(playing(KubernetesApi(cluster), namespace, engines))
        two.start()
        for name, place in places.items():
            place.create()
            running = stack.enter_context(engine(name))
            stack.enter_context(page(engines[name], running.address))
            for pod in place.pods(1):
                make_ready(api, pod, running.address)
        for place in places.values():
            place.wait("Ready", "True")
        editing = stack.enter_context(contextlib.ExitStack())
        user = KubernetesApi(cluster)
        wanted = editing.enter_context(edits(user, namespace, list(places), EDITS_EVERY))
        yield Play(two, places, engines, wanted, editing.close)
    api.delete("Namespace", None, namespace)


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Prints a line at the end of the run."""
    return lambda what, words: record_property("told", f"{what}: {words}")


def test_of_two_that_start_together_one_leads_and_the_other_is_ready(play: Play) -> None:
    """The standby answers its probes, so that it is no failed rollout of the chart."""
    standby = play.pair.standby()

    assert standby.process.page("/healthz") == "ok"
    assert standby.is_ready()
    assert standby.writes(play.pair.terms[0].since) == []
    until("the leader writes", lambda: play.pair.leader().writes(play.pair.terms[0].since))


def test_a_killed_leader_is_replaced(play: Play, tell: Tell) -> None:
    """As when its node dies: nobody gives the Lease back."""
    killed = play.pair.leader()
    since = now()
    killed.process.kill(long_ago=False)

    play.pair.next_term()
    tell("leader killed", play.pair.took_over(since))
    play.pair.back(killed)


def test_a_frozen_leader_that_goes_on_later_writes_nothing_and_ends(play: Play, tell: Tell) -> None:
    """It has missed that another one leads, and its next write was already decided on."""
    frozen = play.pair.leader()
    since = now()
    frozen.process.freeze()
    play.pair.next_term()
    tell("leader frozen", play.pair.took_over(since))
    woken = now()
    frozen.process.wake()

    status = frozen.process.wait()

    assert status != 0
    assert frozen.writes(woken) == []
    assert "no longer leading" in frozen.process.log()
    play.pair.back(frozen)


def test_a_leader_that_is_cut_off_ends_by_itself(play: Play, tell: Tell) -> None:
    """It cannot hear that another one leads, so its own clock has to tell."""
    lonely = play.pair.leader()
    since = now()
    lonely.gate.shut()
    play.pair.next_term()
    tell("leader cut off", play.pair.took_over(since))

    status = lonely.process.wait()

    lonely.gate.open()
    assert status != 0
    assert "the Lease was not renewed" in lonely.process.log()
    play.pair.back(lonely)


def test_a_leader_that_is_told_to_end_hands_over(play: Play, tell: Tell) -> None:
    """An upgrade of the operator costs no wait."""
    told = play.pair.leader()
    since = now()
    assert told.process.stop() == 0

    play.pair.next_term()
    tell("leader stopped", play.pair.took_over(since))
    play.pair.back(told)


def test_no_decision_was_lost(play: Play) -> None:
    """The last word of the user is what is played, and all that was ever played is remembered."""
    play.close()
    for name, length in play.wanted.items():
        played = play.engines[name]
        until(
            f"{name} plays {length}",
            lambda played=played, length=length: (  # type: ignore[misc]
                {row[2] for row in played.schedules[-1].table} == {length}
            ),
        )

    for name, played in play.engines.items():
        remembered = iter(_remembered(play.places[name]))
        for schedule in played.schedules[1:]:
            assert schedule.table in remembered, f"{name}: {schedule} is not remembered"


def test_no_schedule_came_from_an_earlier_term(play: Play) -> None:
    """The engines themselves would have refused it."""
    for played in play.engines.values():
        terms = [schedule.lease[1] for schedule in played.schedules if schedule.lease is not None]
        assert terms == sorted(terms)
        assert terms[-1] > terms[0]
        assert played.refused == []


def test_two_never_acted_at_once(play: Play) -> None:
    """By the API server's own record: who wrote outside of its term."""
    terms = play.pair.terms
    agents = {replica.gate.agent for replica in play.pair.replicas}
    writes = [
        request
        for request in audit.requests(terms[0].since)
        if request.agent in agents and request.writes and request.resource != "leases"
    ]

    assert len(writes) > MODELS * len(terms)
    for request in writes:
        term = max((term for term in terms if term.since <= request.at), key=lambda it: it.number)
        assert request.agent == term.agent, f"{request} in term {term}"


def _remembered(place: Place) -> list[tuple[tuple[int, int, int], ...]]:
    """The tables of all decisions on a model, oldest first."""
    found = place.api.get("ConfigMap", place.namespace, f"{place.name}-tuning")
    assert found is not None
    binary = {key: base64.b64decode(value) for key, value in found["binaryData"].items()}
    return [entry.table for entry in entries(from_data(found["data"], binary).history)]

"""Two operators while a user edits all the time and traffic changes: one acts, and what it decides
and has learned is not lost.

The tests are acts of one play on one set of models: each ends with two operators again. All engines
are under load. Of some models the user pins K, time and again; the others are the tuner's, and at
each act the draft stops foreseeing their prompts, or foresees them again.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle, pairwise
from pathlib import Path

import pytest

from local import audit
from local.access import ClusterAccess
from speculative_operator.api.names import ANNOTATION_LOOK, LABEL_MODEL
from tests.conftest import RUN_LABEL
from tests.support.api import KubernetesApi, Manifest, until
from tests.support.kept import Kept, decision, remembered
from tests.support.models import QUICK_WINDOWS
from tests.support.nodeless import MODEL, Place, engine, make_ready
from tests.support.operator_pair import Pair, Term, edits, now, pair
from tests.support.played_schedules import Played, page, watching

pytestmark = pytest.mark.timeout(300)

PINNED = ("pinned-0", "pinned-1", "pinned-2", "pinned-3")
TUNED = ("tuned-0", "tuned-1")
EDITS_EVERY = 0.25
"""Seconds."""

OFTEN = {"window": QUICK_WINDOWS, "trialSharePercent": 40}
"""For decisions within seconds."""

FORESEEN, UNFORESEEN = 1.0, 0.3
"""How well drafts foresee the prompts of the tuned models: see `World.acceptance`."""

Tell = Callable[[str, object], None]


@dataclass
class Play:
    """What the acts share."""

    pair: Pair
    places: dict[str, Place]
    engines: dict[str, Played]
    kept: Kept
    wanted: dict[str, int]
    close: Callable[[], None]
    """Ends the edits."""
    turns: Iterator[tuple[float, float]]

    def turn(self) -> None:
        """Traffic changes: of one tuned model the draft foresees less, of the other more. The user
        asks for a look at both, which whoever leads next has to obey."""
        for name, acceptance in zip(TUNED, next(self.turns), strict=True):
            self.engines[name].meet(acceptance)
            place, asked = self.places[name], f"prompts foreseen {acceptance}"
            look = {"metadata": {"annotations": {ANNOTATION_LOOK: asked}}}
            place.api.merge(MODEL, place.namespace, name, look)

    def wait_decided(self) -> None:
        """Until who leads now has decided anew on what it has measured."""
        number = self.pair.terms[-1].number
        until(
            f"the leader of term {number} decides on what it measures",
            lambda: any(_decided_in(number, self.engines[name]) for name in TUNED),
        )


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
    folder = tmp_path_factory.mktemp("pair")
    places = {name: Place(api, namespace, name) for name in (*PINNED, *TUNED)}
    engines: dict[str, Played] = {}
    kept = Kept()

    def take(config_map: Manifest) -> None:
        kept.take_memory(config_map)
        played = engines.get(config_map["metadata"].get("labels", {}).get(LABEL_MODEL, ""))
        if played is not None and "schedule.json" in config_map.get("data", {}):
            played.take(config_map)

    with contextlib.ExitStack() as stack:
        two = stack.enter_context(pair(cluster, namespace, folder))
        for kind, listener in (("ConfigMap", take), (MODEL, kept.take_status)):
            stack.enter_context(watching(KubernetesApi(cluster), kind, namespace, listener))
        two.start()
        for place in places.values():
            _serve(place, folder, engines, stack)
        for place in places.values():
            place.wait("Ready", "True")
        editing = stack.enter_context(contextlib.ExitStack())
        user = KubernetesApi(cluster)
        wanted = editing.enter_context(edits(user, namespace, list(PINNED), EDITS_EVERY))
        turns = cycle(((UNFORESEEN, FORESEEN), (FORESEEN, UNFORESEEN)))
        yield Play(two, places, engines, kept, wanted, editing.close, turns)
    api.delete("Namespace", None, namespace)


def _serve(
    place: Place, folder: Path, engines: dict[str, Played], stack: contextlib.ExitStack
) -> None:
    """Creates a model whose only pod is under load until the stack is left."""
    place.create(tuning=OFTEN if place.name in TUNED else {})
    (pod,) = place.pods(1)
    played = Played(pod, folder / place.name, seed=len(engines))
    running = stack.enter_context(engine(place.name))
    stack.enter_context(page(played, running.address))
    engines[place.name] = played
    make_ready(place.api, pod, running.address)


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
    play.turn()
    play.wait_decided()


def test_a_killed_leader_is_replaced(play: Play, tell: Tell) -> None:
    """As when its node dies: nobody gives the Lease back."""
    killed = play.pair.leader()
    since = now()
    killed.process.kill(long_ago=False)
    play.turn()

    play.pair.next_term()
    tell("leader killed", play.pair.took_over(since))
    play.pair.back(killed)
    play.wait_decided()


def test_a_frozen_leader_that_goes_on_later_writes_nothing_and_ends(play: Play, tell: Tell) -> None:
    """It has missed that another one leads, and its next write was already decided on. Only what
    was on its way when it was frozen may still come."""
    frozen = play.pair.leader()
    since = now()
    frozen.process.freeze()
    play.turn()
    play.pair.next_term()
    tell("leader frozen", play.pair.took_over(since))
    woken = now()
    frozen.process.wake()

    status = frozen.process.wait()

    assert status != 0
    assert frozen.writes(woken) == []
    assert "no longer leading" in frozen.process.log()
    play.pair.back(frozen)
    play.wait_decided()


def test_a_leader_that_is_cut_off_ends_by_itself(play: Play, tell: Tell) -> None:
    """It cannot hear that another one leads, so its own clock has to tell."""
    lonely = play.pair.leader()
    since = now()
    lonely.gate.shut()
    play.turn()
    play.pair.next_term()
    tell("leader cut off", play.pair.took_over(since))

    status = lonely.process.wait()

    lonely.gate.open()
    assert status != 0
    assert "the Lease was not renewed" in lonely.process.log()
    play.pair.back(lonely)
    play.wait_decided()


def test_a_leader_that_is_told_to_end_hands_over(play: Play, tell: Tell) -> None:
    """An upgrade of the operator costs no wait."""
    told = play.pair.leader()
    since = now()
    play.turn()
    assert told.process.stop() == 0

    play.pair.next_term()
    tell("leader stopped", play.pair.took_over(since))
    play.pair.back(told)
    play.wait_decided()


def test_no_decision_was_lost(play: Play) -> None:
    """The last word of the user is what is played, all that was ever played is remembered, and so
    is each decision that status has ever shown."""
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
        tables, shown = played.tables[1:], set(play.kept.shown[name])
        entries = remembered(play.places[name])
        earlier = iter([entry.table for entry in entries])
        for table in tables:
            assert table in earlier, f"{name}: {table} is not remembered"
        assert shown <= {decision(change) for entry in entries for change in entry.changes}, name


def test_each_leader_goes_on_from_what_the_one_before_has_learned(play: Play) -> None:
    """Under load: nothing that was saved is gone from what was saved next, and nothing is counted
    from the start again."""
    for name in TUNED:
        for before, after in play.kept.memories(name):
            assert after.history[: len(before.history)] == before.history, name
            for key, state in before.revisions.items():
                assert after.revisions[key].windows >= state.windows, name
    decided = [
        number
        for number in (term.number for term in play.pair.terms)
        if any(_decided_in(number, play.engines[name]) for name in TUNED)
    ]
    assert decided == [term.number for term in play.pair.terms]


def test_no_schedule_came_from_an_earlier_term(play: Play) -> None:
    """The engines themselves would have refused it."""
    for played in play.engines.values():
        terms = [schedule.lease[1] for schedule in played.schedules if schedule.lease is not None]
        assert terms == sorted(terms)
        assert terms[-1] > terms[0]
        assert played.refused == []


def test_two_never_acted_at_once(play: Play) -> None:
    """By the API server's own record: who wrote outside of its term. What was on its way as its
    term ended comes late; a memory or a schedule then has the version it was decided on, so that
    it is refused where the next leader has written."""
    terms = play.pair.terms
    agents = {replica.gate.agent for replica in play.pair.replicas}
    on_its_way = {
        (replica.gate.agent, write.resource, write.name)
        for replica in play.pair.replicas
        for write in replica.gate.writes
        if _term(terms, write.began) != _term(terms, write.at)
    }
    writes = [
        request
        for request in audit.requests(terms[0].since)
        if request.agent in agents and request.writes and request.resource != "leases"
    ]

    assert len(writes) > len(play.engines) * len(terms)
    for request in writes:
        term = _term(terms, request.at)
        late = (request.agent, request.resource, request.name) in on_its_way
        assert request.agent == term.agent or late, f"{request} in term {term}"


def _term(terms: list[Term], at: datetime) -> Term:
    """The last one that had begun; the first one before that."""
    begun = [term for term in terms if term.since <= at]
    return begun[-1] if begun else terms[0]


def _decided_in(term: int, played: Played) -> bool:
    """Whether another table came under this Lease's term than was played before."""
    return any(
        after.lease is not None and after.lease[1] == term and after.table != before.table
        for before, after in pairwise(played.schedules)
    )

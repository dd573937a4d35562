"""What is saved, that it comes back, and its limits."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from speculative_operator.api.conditions import EventReason, Reason
from speculative_operator.tuning import memory
from speculative_operator.tuning.decide import decide
from speculative_operator.tuning.memory import Memory, from_data, moved, to_data
from speculative_operator.tuning.occasion import Occasion
from speculative_operator.tuning.state import State, Timed
from speculative_operator.tuning.variant import Restart, Variant
from tests.support.windows import Traffic, a_page, a_policy, course, lengths

SAMPLE = Path(__file__).parents[2] / "data" / "tuning-memory"
"""Of three revisions: one that fell back by a restart, one with a faulty draft, one in between."""


def tuned(windows: int = 12) -> State:
    """What is known after some windows of noisy traffic at several batch sizes."""
    chance = random.Random(3)
    traffic = [Traffic(batch=chance.choice((1, 4, 16))) for _ in range(windows)]
    return course(a_policy(), traffic, chance=chance)[-1].state


def saved(kept: Memory) -> Memory:
    """The memory as a new operator finds it."""
    data = to_data(kept)
    return from_data(data.data, data.binary_data)


def test_an_empty_memory_comes_back_empty() -> None:
    """A new model has one."""
    assert saved(Memory()) == Memory()


def test_estimates_come_back_to_five_digits() -> None:
    """Their errors are far larger, and a ConfigMap is not free."""
    state = tuned()

    back = saved(Memory().with_state("key", state)).revisions["key"]

    assert back.table == state.table
    assert back.buckets.keys() == state.buckets.keys()
    for name, bucket in state.buckets.items():
        means = bucket.cost.known.means
        assert back.buckets[name].cost.known.means == pytest.approx(means, rel=1e-4)
        assert back.buckets[name].length == bucket.length
    assert back.changes == pytest.approx(state.changes) or len(back.changes) == len(state.changes)
    assert back.look == state.look


def test_a_new_operator_decides_the_same() -> None:
    """Killed in the middle, it goes on from there."""
    policy = a_policy()
    decision = course(policy, [Traffic()] * 3)[-1]
    back = saved(Memory().with_state("key", decision.state)).revisions["key"]

    goes_on = decide(None, back, policy, Occasion(20.0))

    assert goes_on.table == decision.table
    assert goes_on.trials == decision.trials
    window = Traffic().played(decision)
    assert lengths([decide(window, back, policy, Occasion(25.0))]) == lengths(
        [decide(window, decision.state, policy, Occasion(25.0))]
    )


def test_saving_twice_gives_equal_bytes() -> None:
    """Equal bytes are no write."""
    kept = Memory().with_state("key", tuned())

    assert to_data(kept) == to_data(kept)
    assert to_data(saved(kept)) == to_data(kept)


def test_absorbed_counters_come_back_exactly() -> None:
    """They are differenced from: one count off would be counted twice or lost."""
    counters = a_page(Traffic().window({4: 100, 0: 9})).counters
    kept = replace(Memory(), bases={"uid": counters}).with_state("key", State())

    back = saved(kept).bases["uid"]

    assert back.same_start(counters)
    assert back.positions == counters.positions
    assert back.rows == counters.rows


def test_estimates_of_the_last_three_revisions_are_kept() -> None:
    """Current, trial and last good: a rollback takes its own state back."""
    kept = Memory()
    for key in ("a", "b", "c", "d", "b"):
        kept = kept.with_state(key, State())

    assert list(kept.revisions) == ["c", "d", "b"]


def test_a_state_is_at_most_16_kib() -> None:
    """16 choices at every batch size: the buckets with least traffic go first."""
    policy = a_policy(choices=tuple(range(1, 17)), initial=7, max_num_seqs=1024)
    acceptance = tuple(0.9**k for k in range(1, 17))
    step_ms = {0: 9.6} | {k: 12.0 + k for k in range(1, 17)}
    traffic = [
        Traffic(acceptance, step_ms, batch=batch)
        for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    ]
    state = course(policy, traffic * 2)[-1].state
    assert len(state.buckets) == 11

    data = to_data(Memory().with_state("key", state))

    assert len(data.data[memory.STATE]) <= memory.MOST_STATE_BYTES + 100
    back = from_data(data.data, data.binary_data).revisions["key"]
    assert len(back.buckets) >= 4


def test_everything_together_fits_into_the_config_map() -> None:
    """A thousand engines and five hundred windows: far from every engine's base is kept, and the
    oldest windows go."""
    chance = random.Random(0)
    counters = a_page(Traffic().window(dict.fromkeys(range(5), 100))).counters
    lines = tuple(
        json.dumps({"t": number, "noise": [chance.random() for _ in range(60)]})
        for number in range(500)
    )
    kept = replace(
        Memory(), bases={f"uid-{n:04}": counters for n in range(1000)}, history=lines
    ).with_state("key", tuned())

    data = to_data(kept)

    total = sum(map(len, data.data.values())) + sum(map(len, data.binary_data.values())) * 4 // 3
    assert total < 512 * 1024
    back = saved(kept)
    assert 100 < len(back.bases) < 1000
    assert back.history[-1] == lines[-1]


def test_at_most_500_entries_of_history_are_kept() -> None:
    """A ConfigMap has a limit of size."""
    lines = tuple(f'{{"t":{number}}}' for number in range(700))

    assert saved(replace(Memory().with_state("k", State()), history=lines)).history == lines[-500:]


@pytest.mark.parametrize("key", [memory.STATE, memory.BASE])
def test_a_text_cut_anywhere_is_an_empty_memory(key: str) -> None:
    """Never half of it: estimates without their bases would count twice."""
    kept = replace(
        Memory().with_state("key", tuned(3)), bases={"uid": a_page().counters}, written_at=5.0
    )
    data = to_data(kept)
    text = data.data[key]

    for end in range(0, len(text) - 1, 7):
        assert from_data({**data.data, key: text[:end]}, data.binary_data) == Memory()


def test_a_history_that_cannot_be_read_costs_only_itself() -> None:
    """The state matters more than its past."""
    kept = replace(Memory().with_state("key", tuned(3)), history=("{}",))
    data = to_data(kept)

    back = from_data(data.data, {memory.HISTORY: data.binary_data[memory.HISTORY][:-9]})

    assert back.history == ()
    assert back.revisions.keys() == {"key"}


def test_a_history_that_is_damaged_at_any_byte_costs_only_itself() -> None:
    """Whatever gzip says of it: a model whose memory raises would never be tuned again."""
    kept = replace(Memory().with_state("key", tuned(3)), history=("{}", '{"t":1.0}') * 20)
    data = to_data(kept)
    packed = data.binary_data[memory.HISTORY]

    for at in range(len(packed)):
        damaged = packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :]
        back = from_data(data.data, {memory.HISTORY: damaged})
        assert back.revisions.keys() == {"key"}


@pytest.mark.parametrize(
    "body",
    [
        {"version": memory.VERSION - 2, "writtenAt": 0.0, "revisions": {}},
        {"version": memory.VERSION, "revisions": {}},
        {"version": memory.VERSION, "writtenAt": 0.0, "revisions": {"key": {"table": "x"}}},
        [],
        None,
    ],
)
def test_a_memory_of_another_version_is_not_understood_half(body: object) -> None:
    """Starting anew is safe, guessing is not."""
    assert from_data({memory.STATE: json.dumps(body), memory.BASE: "{}"}, {}) == Memory()


def test_what_an_earlier_operator_saved_in_this_format_is_read_whole() -> None:
    """Or a new one would know less than it seems to, and say nothing of it. Fields may come; one
    that goes, or means something else, needs another VERSION, and the sample made anew."""
    texts = {key: (SAMPLE / key).read_text() for key in (memory.STATE, memory.BASE)}

    again = to_data(from_data(texts, {})).data

    for key, text in texts.items():
        assert within(json.loads(text), json.loads(again[key])), key


def test_what_the_format_before_saved_is_read_too() -> None:
    """It lacked a word; nobody has to learn anew for that."""
    now = {key: (SAMPLE / key).read_text() for key in (memory.STATE, memory.BASE)}
    before = now | {memory.STATE: json.dumps({**json.loads(now[memory.STATE]), "version": 3})}

    assert from_data(before, {}) == from_data(now, {})
    assert from_data(now, {}).revisions


def test_the_words_that_are_saved_are_those_of_this_format() -> None:
    """An operator of an earlier version that meets a new one reads nothing at all: a word more
    needs another VERSION. Reasons are the API's own."""
    saved = TypeAdapter(State).json_schema()["$defs"].items()
    words = {
        name: set(each["enum"])
        for name, each in saved
        if "enum" in each and name not in (Reason.__name__, EventReason.__name__)
    }

    assert memory.VERSION == 4
    assert words == {
        "Sign": {"acceptance", "step time", "counters", "silence"},
        "Variant": {"speculative", "autoregressive"},
    }


def within(sample: object, value: object) -> bool:
    """Whether a JSON value has all that the sample has."""
    if isinstance(sample, dict) and isinstance(value, dict):
        return all(key in value and within(sample[key], value[key]) for key in sample)
    if isinstance(sample, list) and isinstance(value, list):
        return len(sample) == len(value) and all(map(within, sample, value))
    return sample == value


def test_an_estimate_that_moved_by_less_than_its_error_is_not_worth_a_write() -> None:
    """An idle or settled operator writes nothing."""
    policy = a_policy(trial_share=0.0)
    settled = course(policy, [Traffic()] * 40)[-1]
    after = decide(Traffic().played(settled), settled.state, policy, Occasion(500.0))

    assert not moved(settled.state, after.state, policy)


def test_a_trial_that_was_played_is_worth_a_write() -> None:
    """Whoever reads the older state would find its steps in the counters and take them for new."""
    before = tuned(3)
    name = min(before.buckets)
    bucket = before.buckets[name]
    other = next(k for k in bucket.timed if k != bucket.length)
    tried = replace(bucket, timed={**bucket.timed, other: Timed(before.windows + 1, 5)})

    assert moved(before, replace(before, buckets={**before.buckets, name: tried}), a_policy())


def test_an_estimate_that_moved_is() -> None:
    """By more than its own error, so it is worth a write."""
    before = tuned(3)
    bucket = before.buckets[min(before.buckets)]
    known = bucket.cost.known
    shifted = tuple(
        mean + 5 * math.sqrt(row[-1])
        for mean, row in zip(known.means, known.covariance, strict=True)
    )
    cost = replace(bucket.cost, known=replace(known, means=shifted))
    after = replace(
        before, buckets={**before.buckets, min(before.buckets): replace(bucket, cost=cost)}
    )

    assert moved(before, after, a_policy())
    assert moved(State(), before, a_policy())


@pytest.mark.parametrize("variant", list(Variant))
def test_engines_that_have_come_are_worth_a_write_only_where_they_were_waited_for(
    variant: Variant,
) -> None:
    """Twenty models that nobody asks anything are to cost nothing; a restart that has arrived is
    not to be given up by the next operator."""
    waited = State(restart=Restart(variant=variant))
    arrived = State(restart=Restart(variant=variant, arrived=True, startup=90.0))

    assert moved(waited, arrived, a_policy()) is (variant is Variant.AUTOREGRESSIVE)

"""The schedule file: what is taken, what is refused and in which words."""

import json
import random

import pytest

from live_speculation.schedule import (
    MAX_BYTES,
    Schedule,
    ScheduleRefused,
    Trial,
    dense,
    digest,
    parse,
)
from live_speculation.trials import Interleave

ALLOWED = frozenset({0, 1, 2, 4})
TRIAL = {"batch": [1, 16], "arms": [0, 2], "share": 0.1, "block": 20, "rounds": 30}


def written(**changes: object) -> bytes:
    """A valid file with some keys changed; None removes a key."""
    content: dict[str, object] = {"protocol": 1, "table": [[1, 16, 4], [17, 256, 0]], **changes}
    return json.dumps({key: value for key, value in content.items() if value is not None}).encode()


def test_a_file_becomes_its_table_trials_and_lease() -> None:
    """The format is shared with the operator, which writes it."""
    data = written(lease=["uid-1", 3], trials=[TRIAL])

    schedule = parse(data, ALLOWED)

    assert schedule == Schedule(
        digest=digest(data),
        table=((1, 16, 4), (17, 256, 0)),
        trials=(Trial((1, 16), (0, 2), 0.1, 20, 30),),
        lease=("uid-1", 3),
    )


def test_the_digest_is_the_first_12_hex_digits_of_sha256_of_the_bytes() -> None:
    """The operator computes the same and compares."""
    assert digest(b"abc") == "ba7816bf8f01"


def test_unknown_keys_are_ignored() -> None:
    """An older plugin must take the file of a newer operator."""
    assert parse(written(later={"a": 1}), ALLOWED).table == ((1, 16, 4), (17, 256, 0))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 60_000, "nested too deeply"),
        (b"9" * 5000, "not JSON"),
        (b" " * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (written(protocol=2), "protocol: must be 1, not 2"),
        (written(protocol=None), "protocol: must be 1, not None"),
        (written(table=None), "table: must be a list of 1 to 256 entries, not None"),
        (written(table=[]), "table: must be a list of 1 to 256 entries"),
        (written(table=[[1, 2]]), "table[0]: must be a list of 3 entries"),
        (written(table=[[2, 4, 1]]), "table[0]: the first range must start at 1, not 2"),
        (written(table=[[1, 4, 1], [4, 5, 1]]), "table[1]: overlaps the range before it"),
        (written(table=[[1, 4, 1], [9, 8, 1]]), "table[1]: starts at 9 and ends before it, at 8"),
        (written(table=[[0, 4, 1]]), "table[0]: must be from 1 to 1000000, not 0"),
        (written(table=[[1, 4, 3]]), "table[0]: K must be one of 0, 1, 2, 4, not 3"),
        (written(table=[[1, 4, -1]]), "table[0]: K must be one of 0, 1, 2, 4, not -1"),
        (written(table=[[1, 4, True]]), "table[0]: K must be one of 0, 1, 2, 4, not True"),
        (written(table=[[1, 4, 2.0]]), "table[0]: K must be one of 0, 1, 2, 4, not 2.0"),
        (written(table=[[1, 4, "2"]]), "table[0]: K must be one of 0, 1, 2, 4, not '2'"),
        (written(table=[[1, 10**300, 1]]), "table[0]: must be from 1 to 1000000, not a huge"),
        (written(table=[[1, 4, 1]] * 257), "table: must be a list of 1 to 256 entries"),
        (written(trials={}), "trials: must be a list of 0 to 32 entries, not {}"),
        (written(trials=[7]), "trials[0]: not a JSON object"),
        (written(trials=[{**TRIAL, "arms": []}]), "trials[0].arms: must be a list of 1 to 16"),
        (written(trials=[{**TRIAL, "arms": [5]}]), "trials[0].arms: K must be one of"),
        (written(trials=[{**TRIAL, "share": 0}]), "trials[0].share: must be from 0.001 to 1"),
        (written(trials=[{**TRIAL, "share": 1.5}]), "trials[0].share: must be from 0.001 to 1"),
        (written(trials=[{**TRIAL, "share": float("nan")}]), "trials[0].share: must be from"),
        (written(trials=[{**TRIAL, "block": 0}]), "trials[0].block: must be from 1 to"),
        (written(trials=[{**TRIAL, "rounds": None}]), "trials[0].rounds: must be from 1 to"),
        (
            written(trials=[TRIAL, {**TRIAL, "batch": [16, 20]}]),
            "trials: two of them cover batch size 16",
        ),
        (written(lease=["uid"]), "lease: must be a list of 2 entries"),
        (written(lease=["uid", -1]), "lease[1]: must be a count, not -1"),
        (written(lease=[1, 1]), "lease[0]: must be a text of at most 128 characters"),
    ],
)
def test_a_broken_file_is_refused_with_the_place_and_the_reason(data: bytes, words: str) -> None:
    """The page shows these words, and the operator's status after it."""
    with pytest.raises(ScheduleRefused) as refusal:
        parse(data, ALLOWED)

    assert words in str(refusal.value)


def test_no_mutation_of_a_file_gets_past_the_limits() -> None:
    """Bytes flipped, cut, doubled and moved: refused with a reason, or within what is allowed."""
    chance = random.Random(7)
    whole = written(lease=["uid-1", 3], trials=[TRIAL, {**TRIAL, "batch": [17, 90]}])
    taken = 0
    for _ in range(5000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
            end = min(end, start + 12)
            piece = bytes(data[start:end])
            data[start:end] = chance.choice(
                [b"", piece * 2, bytes(chance.choices(b'0123456789-+.eE,:[]{}"ntf', k=3))]
            )
        try:
            schedule = parse(bytes(data), ALLOWED)
        except ScheduleRefused:
            continue
        taken += 1
        assert set(dense(schedule.table, 300)[1:]) <= ALLOWED
        assert all(ALLOWED.issuperset(trial.arms) for trial in schedule.trials)
        playing = Interleave(schedule, 300)
        for batch in (1, 16, 17, 300):
            playing.stepped(batch)
    assert taken > 50


def test_gaps_and_the_tail_carry_the_last_length_on() -> None:
    """So does vLLM's own builder; what differs would be K that nobody asked for."""
    assert dense([(1, 2, 4), (5, 5, 1)], 7) == [0, 4, 4, 4, 4, 1, 1, 1]


def test_rows_beyond_the_largest_batch_do_nothing() -> None:
    """The operator's table need not know how far this engine goes."""
    assert dense([(1, 2, 4), (5, 900, 1)], 3) == [0, 4, 4, 4]

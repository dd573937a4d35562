"""Prompts that equal one of the last few."""

from __future__ import annotations

from live_speculation.prompts import HEAD, REMEMBERED, TAIL, Prompts


def test_equal_prompts_of_different_requests_repeat() -> None:
    """A load generator sends the same again and again."""
    prompts = Prompts()
    for number in range(5):
        prompts.see(f"request-{number}", [1, 2, 3])

    assert (prompts.seen, prompts.repeated) == (5, 4)


def test_different_prompts_do_not() -> None:
    """One token is enough."""
    prompts = Prompts()
    for number in range(5):
        prompts.see(f"request-{number}", [1, 2, number])

    assert (prompts.seen, prompts.repeated) == (5, 0)


def test_a_system_prompt_alone_makes_no_repeat() -> None:
    """All chats begin with it, and end with the same few tokens of the template."""
    system, end = list(range(10 * HEAD)), [7] * (TAIL // 8)
    prompts = Prompts()
    for number in range(5):
        prompts.see(f"request-{number}", [*system, number, *end])

    assert prompts.repeated == 0


def test_a_request_that_goes_on_after_it_was_put_aside_counts_once() -> None:
    """Model Runner V2 shows it as new again."""
    prompts = Prompts()
    for _ in range(2):
        prompts.see("request", [1, 2, 3])

    assert (prompts.seen, prompts.repeated) == (1, 0)


def test_a_prompt_without_tokens_is_not_counted() -> None:
    """It came as embeddings: whether it is the same is not known."""
    prompts = Prompts()
    prompts.see("request", None)

    assert prompts.seen == 0


def test_only_the_last_few_are_remembered() -> None:
    """What is kept stays small, and who comes back after an hour is no load generator."""
    prompts = Prompts()
    for number in range(10 * REMEMBERED):
        prompts.see(number, [number])
    prompts.see("again", [0])

    assert prompts.repeated == 0
    assert len(prompts._recent) <= REMEMBERED

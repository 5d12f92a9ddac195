"""What people are told of unseen approvals: which, why, what to do; our own words and ids alone."""

from __future__ import annotations

import pytest

from bot.delivery_words import MOST_NAMED, unseen_text
from bot.slack_answers import SHARED, is_refusal


def test_one_and_many_are_named_and_the_rest_is_counted() -> None:
    one = unseen_text("C0CARDS", "is_archived", [7], of_cards=False, here=True)
    assert one == (
        "op_7 waits for a decision, and nobody can see its card in <#C0CARDS>: the channel is "
        "archived. Its card follows here. Unarchive it, or choose another one in the policy "
        "(slack.channel)."
    )
    two = unseen_text("C0CARDS", "is_archived", [7, 8], of_cards=False, here=False)
    assert two.startswith("op_7, op_8 wait for a decision, and nobody can see their cards in")
    assert "here" not in two
    numbers = list(range(1, MOST_NAMED + 481))
    many = unseen_text("C0CARDS", "is_archived", numbers, of_cards=False, here=True)
    assert f"op_{MOST_NAMED} and 480 more wait" in many
    assert f"op_{MOST_NAMED + 1}" not in many


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (SHARED, "another organisation"),
        ("is_inactive", "archived"),
        ("channel_not_found", "gone"),
        ("not_in_channel", "`/invite`"),
        ("restricted_action_read_only_channel", "settings"),
        ("internal_error", "just now"),
        ("something_new", "just now"),
    ],
)
def test_every_trouble_of_a_channel_has_a_reason_and_a_remedy(problem: str, why: str) -> None:
    assert why in unseen_text("C0CARDS", problem, [7], of_cards=False, here=False)


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        ("invalid_blocks", "refuses what it shows (invalid_blocks)"),
        ("timeout", "does not say whether it has taken it (timeout)"),
        ("ServerDisconnectedError", "does not say whether it has taken it"),
    ],
)
def test_a_card_that_is_refused_is_told_from_one_that_is_lost(problem: str, why: str) -> None:
    text = unseen_text("C0CARDS", problem, [7], of_cards=True, here=False)
    assert why in text
    assert "<#" not in text


@pytest.mark.parametrize(
    ("code", "refused"),
    [
        ("invalid_blocks", True),
        ("msg_blocks_too_long", True),
        ("fatal_error", False),
        ("timeout", False),
        ("connection_refused", False),
        ("http_502", False),
        ("ClientPayloadError", False),
    ],
)
def test_only_slacks_own_no_is_a_refusal(code: str, refused: bool) -> None:
    assert is_refusal(code) is refused

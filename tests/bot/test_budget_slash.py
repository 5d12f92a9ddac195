"""``/signoff budget``, as people type it in Slack: who sees what, and who settles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from bot.sandbox.interaction import Sending
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.engine.claims import ClaimedRun, claim_runs
from tests.support.bot_harness import (
    APPROVALS,
    GUEST,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
    make_policy,
)
from tests.support.lost_answers import lose_first_answer
from tests.support.money import CENT, lose

PEOPLE = {
    "requesters": [REQUESTER, GUEST],
    "approvers": [REVIEWER],
    # Whom Slack calls a guest or a stranger may not act, whatever the policy says of them.
    "operators": [SECOND, GUEST, OUTSIDER],
}
BUDGET = {"run_microusd": 10 * CENT, "day_microusd": 100 * CENT}
SAM = f"slack:TSIGNOFF:{SECOND}"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    """A tenant of whose operators only Sam is a full member; nobody works."""
    policy = make_policy(people=PEOPLE, budget=BUDGET)
    async with Harness(database_url, policy=policy, worker=False) as harness:
        yield harness


async def say(h: Harness, who: str, text: str) -> str:
    delivery = await h.person(who).slash(APPROVALS, "/signoff", text)
    assert delivery.status == 200, delivery
    return delivery.said or ""


async def run_of(h: Harness, by: str = REQUESTER, goal: str = "close 4101") -> ClaimedRun:
    await h.start_run(goal, by=by)
    [claimed] = await claim_runs(h.engine, "w1", 10)
    return claimed


async def account(h: Harness) -> tuple[int, int]:
    [row] = await h.rows("SELECT sum(spent_microusd), sum(held_microusd) FROM run_budgets")
    return int(row[0]), int(row[1])


async def test_a_requester_sees_the_day_and_what_frees_their_money(h: Harness) -> None:
    assert await say(h, REQUESTER, "budget") == (await say(h, REQUESTER, "money")), (
        "both words are understood"
    )
    quiet = await say(h, REQUESTER, "budget")
    assert "$0.00 of $1.00 spent, $1.00 left. It renews 20" in quiet
    assert quiet.endswith(
        "None of your runs waits for money, and all that calls have cost is known."
    )
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    told = await say(h, REQUESTER, "budget")
    assert "$0.04 held ($0.04 of it for calls of unknown cost), $0.96 left." in told
    assert "• run_1 (working): $0.00 of $0.10 spent" in told
    assert f"• {charge} of run_1, for `model:test`, holds $0.04 since 20" in told
    assert told.endswith(f"`/signoff budget settle {charge} 0.0123 invoice 4711`")
    assert f"• {charge} of run_1" in await say(h, REQUESTER, "budget run_1")


async def test_an_operator_settles_what_the_invoice_says_once(h: Harness) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    said = await say(h, SECOND, f"budget settle {charge} $0.0123 invoice 4711")
    assert said.startswith(f"Settled: {charge} of run_1 has cost $0.0123, charged to 20")
    again = await say(h, SECOND, f"budget settle {charge} 0.05 invoice 4712")
    assert again.startswith(f"{charge} was already settled to $0.0123 by <@{SECOND}> 20")
    assert again.endswith("Nothing has changed.")
    assert await account(h) == (12_300, 0)
    [moved] = await h.rows(
        "SELECT actor, detail FROM journal WHERE machine = 'reservation' AND target = 'settled'"
    )
    assert (moved.actor, moved.detail["note"]) == (SAM, "invoice 4711")


async def test_more_than_was_held_is_allowed_and_said_so(h: Harness) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    said = await say(h, SECOND, f"budget settle {charge} 0.06 invoice 4711")
    assert "Mind that this is $0.02 more than was held, and all of it is charged" in said
    assert await account(h) == (6 * CENT, 0)


@pytest.mark.parametrize(
    ("who", "sees", "settles"),
    [
        (REQUESTER, "Today (20", "You may not say what calls have cost here."),
        (REVIEWER, "Today (20", "You may not say what calls have cost here."),
        (SECOND, "Today (20", "Settled: "),
        (GUEST, "guests may not act", "guests may not act"),
        (OUTSIDER, "You belong to another workspace", "You belong to another workspace"),
    ],
)
async def test_who_may_see_and_who_may_settle(
    h: Harness, who: str, sees: str, settles: str
) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    shown = await say(h, who, "budget")
    assert sees in shown
    assert (charge in shown) == (who in (REQUESTER, SECOND))
    assert settles in await say(h, who, f"budget settle {charge} 0.01 invoice 4711")
    allowed = who == SECOND
    assert await account(h) == ((CENT, 0) if allowed else (0, 4 * CENT))
    refused = await h.notes("charge_refused")
    assert len(refused) == (0 if allowed else 1)


async def test_a_deactivated_operator_neither_sees_nor_settles(h: Harness) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    assert charge in await say(h, SECOND, "budget")
    h.workspace.users[SECOND].deleted = True
    await h.move_time(timedelta(seconds=61))
    for text in ("budget", "budget run_1", f"budget settle {charge} 0.01 invoice 4711"):
        assert "deactivated accounts may not act here" in await say(h, SECOND, text)
    assert await account(h) == (0, 4 * CENT)
    [note] = await h.notes("charge_refused")
    assert (note["actor"], note["reason"]) == (SAM, "identity_refused")


async def test_a_run_of_somebody_else_is_not_shown(h: Harness) -> None:
    await run_of(h)
    assert "You may not see what this has cost here." in await say(h, REVIEWER, "budget run_1")
    assert "run_1 (working)" in await say(h, SECOND, "budget run_1")
    assert "There is no such run" in await say(h, SECOND, "budget run_9")


async def test_one_request_that_comes_three_times_settles_once(h: Harness) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    text = f"budget settle {charge} 0.01 invoice 4711"
    delivery = await h.person(SECOND).slash(APPROVALS, "/signoff", text, sending=Sending(copies=3))
    assert delivery.status == 200
    assert await account(h) == (CENT, 0)
    assert await h.value("SELECT count(*) FROM journal WHERE event = 'settled'") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("budget settle", "Which charge, to which amount, and where does that stand?"),
        ("budget settle CHARGE -0.01 invoice", "This amount cannot be read"),
        ("budget settle CHARGE 1e3 invoice", "This amount cannot be read"),
        ("budget settle CHARGE 0,01 invoice", "This amount cannot be read"),
        ("budget settle CHARGE 20000 invoice", "10,000 at most"),
        ("budget settle CHARGE 0.01", "Where does the amount stand?"),
        ("budget settle ch_00000000 0.01 invoice", "There is no such charge."),
        ("budget void CHARGE it cost nothing", "Nobody's word voids a charge."),
        ("budget whatever", "Not everything was understood"),
    ],
)
async def test_what_cannot_be_done_is_answered_with_what_can(
    h: Harness, text: str, told: str
) -> None:
    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    assert told in await say(h, SECOND, text.replace("CHARGE", charge))
    assert await account(h) == (0, 4 * CENT)


async def test_after_a_lost_answer_to_commit_it_is_settled_once_and_said_so(
    h: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bot.listeners import budget_commands

    charge = await lose(h.engine, await run_of(h), 4 * CENT)
    calls = lose_first_answer(monkeypatch, budget_commands, "settle_invoiced")
    said = await say(h, SECOND, f"budget settle {charge} 0.01 invoice 4711")
    assert said.startswith(f"{charge} was already settled to $0.01 by <@{SECOND}> 20")
    assert (len(calls), await account(h)) == (2, (CENT, 0))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            CommitUnknown("lost"),
            "Not confirmed: it may have been recorded or not. `/signoff budget`",
        ),
        (DatabaseUnavailable("away"), "Nothing was recorded: our database is away."),
    ],
)
async def test_what_was_not_recorded_for_sure_is_not_said_to_be(
    h: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    from bot.listeners import budget_commands

    async def fails(*_: object) -> object:
        raise error

    monkeypatch.setattr(budget_commands, "settle_invoiced", fails)
    assert told in await say(h, SECOND, "budget settle ch_5f0c1b2a 0.01 invoice 4711")


async def test_the_command_is_in_the_help_and_near_words_lead_to_it(h: Harness) -> None:
    assert "`/signoff budget`: how much money is spent, held and left" in await say(
        h, REQUESTER, "help"
    )
    assert "`/signoff budget`" in await say(h, REQUESTER, "buget")

"""``signoff explain`` tells why something was or was not sent, for each of its endings."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.check_text import asked
from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.domain.approval import Vote
from executor.domain.effect import Outcome, OutcomeKind
from executor.engine.asking import Ask, ask
from executor.engine.compensating import compensate
from executor.engine.endings import expire
from executor.engine.opening import Opened
from executor.engine.revalidation import CheckName
from executor.engine.waking import wake
from executor.engine.withdrawing import Withdrawal, withdraw
from executor.store.database import Database
from tests.support import invariants
from tests.support.doubt import Doubt
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import CHANNEL, OTTO, RENE, RIKO, SAM, TENANT, Office
from tests.support.operator import Operator
from tests.support.working import Working

Walk = Callable[[Operator], Awaitable[object]]
READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
PROPOSE = says(
    "",
    calls(
        "propose_closing",
        {"ticket_id": "4101", "language": "en", "subject": "Closed", "message": "Corrected."},
    ),
)
ESCAPES = "\x1b[2J\u202e"


@pytest.fixture
async def operator(
    database: Database, database_url: str, tmp_path: Path
) -> AsyncIterator[Operator]:
    yield Operator(await Office.open(database), database_url, tmp_path / "policy.toml")
    await invariants.check(database)


async def _sent(operator: Operator) -> None:
    claimed, opened = await operator.office.opened()
    await operator.office.report(claimed, opened, applied())


async def _refused(operator: Operator) -> None:
    claimed, opened = await operator.office.opened()
    await operator.office.report(claimed, opened, not_applied(retryable=False))


async def _asked_to_reopen(operator: Operator) -> None:
    await _refused(operator)
    await compensate(operator.office.engine, operator.office.providers)
    await operator.office.show()


async def _retried(operator: Operator) -> None:
    office = operator.office
    claimed, opened = await office.opened()
    await office.report(claimed, opened, not_applied(retryable=True))
    await office.later(seconds=5)
    again = await office.claim_operation(claimed.claim.key[1])
    result = await office.open_one(again)
    assert isinstance(result, Opened)
    await office.report(again, result, applied())


async def _in_doubt(operator: Operator) -> None:
    await operator.in_doubt()


async def _settled(operator: Operator) -> None:
    await operator.in_doubt()
    told = await operator.run(
        "doubt", "settle", "op_1", "--word", "not-sent", "--by", "Olga",
        "--note", f"Pat has not got it{ESCAPES}",
    )  # fmt: skip
    assert told.exit_code == 0, told.output


async def _contradicted(operator: Operator) -> None:
    office = operator.office
    claimed, opened = await office.opened()
    await office.report(claimed, opened, unknown())
    await operator.run(
        "doubt", "settle", "op_1", "--word", "not-sent", "--by", "Olga", "--note", "x"
    )
    proof = Outcome(OutcomeKind.APPLIED, {"phase": "webhook", "id": "m-1"})
    await office.report(claimed, opened, proof, "webhook:resend")


async def _moved_on(operator: Operator) -> None:
    operation = await operator.office.approved()
    await operator.office.customer_writes()
    await operator.office.open_one(await operator.office.claim_operation(operation))


async def _rejected(operator: Operator) -> None:
    operation = await operator.office.proposed()
    await operator.office.click(operation, RENE, Vote.REJECT, f"Not like this.{ESCAPES}")


async def _own_click_first(operator: Operator) -> None:
    operation = await operator.office.proposed()
    await operator.office.click(operation, RIKO)
    await operator.office.click(operation, SAM)


async def _cancelled(operator: Operator) -> None:
    operation = await operator.office.approved()
    await operator.office.cancel(await operator.office.run_of(operation))


async def _asked_about_and_withdrawn(operator: Operator) -> None:
    office = operator.office
    model = FakeModel([READ, PROPOSE, says("It was promised."), says("I leave it.")])
    working = Working(office, await office.start_run(), model)
    await working.drive()
    await office.show()
    [operation] = await working.operations()
    hashes = (bytes([n]) * 32 for n in range(3))
    asks = [
        Ask(TENANT, operation, who, f"Why?{ESCAPES}", CHANNEL, "U0", next(hashes))
        for who in (OTTO, RENE)
    ]
    await ask(office.engine, asks)
    await working.drive()
    await ask(office.engine, [Ask(TENANT, operation, SAM, "Who?", CHANNEL, "U0", next(hashes))])
    await withdraw(office.engine, Withdrawal(TENANT, operation, RIKO, CHANNEL, "U0", b"w" * 32))
    await wake(office.engine)
    await working.drive()


async def _expired(operator: Operator) -> None:
    operation = await operator.office.proposed()
    await operator.office.later(days=8)
    await expire(operator.office.engine, [(TENANT, operation)])


async def _never_found(operator: Operator) -> None:
    async with PostmarkDouble(clock=(clock := VirtualClock())) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=5.0
        )
        await _lose_the_answer(Doubt(operator.office, mail, clock), double)


async def _repeated_under_its_key(operator: Operator) -> None:
    async with ResendDouble(clock=(clock := VirtualClock())) as double:
        mail = ResendMail(SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=5.0)
        await _lose_the_answer(Doubt(operator.office, mail, clock), double)


async def _lose_the_answer(doubt: Doubt, double: PostmarkDouble | ResendDouble) -> None:
    """Send once, lose it with its answer, and let the machines do all that they ever will."""
    claimed = await doubt.claimed()
    double.fail(PlannedFault(Fault.DROP), call=1)
    await doubt.execute(claimed)
    await doubt.until_nothing_is_due()


ENDINGS: dict[str, tuple[Walk, str, list[str]]] = {
    "succeeded": (
        _sent,
        "op_1 of run_1, about ticket 4101: done.",
        [
            "slack:T0TEAM1:U0REQUESTER asked for it; what would be done was frozen as revision 1",
            "An approval by one person was opened.",
            "The card was shown in C0APPROVALS.",
            "slack:T0TEAM1:U0REVIEWER voted to approve.",
            "The approval is granted: enough people said yes.",
            "The approval was used up.",
            "The ticket was closed, in the same commit as its record.",
            "Attempt 1 at having the email sent was recorded before its first byte: through "
            "smtp:test, which tells nothing afterwards.",
            "Every check held: the approval was used up, and it was begun.",
            "held: the ticket stands at the version that was approved",
            "held: it leaves through the account that was approved",
            "Attempt 1 was accepted: it was sent. Recorded by w1.",
            "code: 250",
            "All of it is done.",
        ],
    ),
    "refused by the provider": (
        _refused,
        "done in part. The provider refused it",
        ["Attempt 1 failed: it was not sent.", "A part of it is done, and the rest is not."],
    ),
    "tried again": (
        _retried,
        ": done.",
        [
            "Attempt 1 failed: it was not sent.",
            "Attempt 2 at having the email sent",
            "held: the same has not been done already",
            "Attempt 2 was accepted",
        ],
    ),
    "unknown": (
        _in_doubt,
        "may have been done, not known yet. The answer was lost.",
        [
            "What came of attempt 1 is not known: it may have been sent.",
            "phase: content",
            "From here on nobody knew whether it was done.",
        ],
    ),
    "searched for in vain": (
        _never_found,
        "may have been done, not known yet.",
        [
            "through postmark:127.0.0.1:",
            "which can be searched for it afterwards.",
            "The provider is asked about attempt 1 (search 1 of 6).",
            "Of attempt 1: it was not found, which is no proof.",
            "The provider is asked about attempt 1 (search 6 of 6).",
            "What comes next for attempt 1: a person is asked, for 6 searches did not find it, "
            "which is no proof.",
        ],
    ),
    "repeated under its key": (
        _repeated_under_its_key,
        ": done.",
        [
            "What came of attempt 1 is not known",
            "A machine went on with it, as its provider allows.",
            "Attempt 2 at having the email sent",
            "held: a repeat is harmless, for the provider still drops it or refuses it",
            "Attempt 2 was accepted: it was sent.",
        ],
    ),
    "settled by a person": (
        _settled,
        "done in part. Somebody found out that it was not sent.",
        [
            "operator:Olga said that it was not sent.",
            "> Pat has not got it⟦U+001B⟧[2J⟦U+202E⟧",
            "Attempt 1 failed: it was not sent. That is the word of operator:Olga.",
        ],
    ),
    "proved after a word": (
        _contradicted,
        ": done.",
        [
            "operator:Olga said that it was not sent.",
            "Attempt 1 was accepted: it was sent. A webhook of resend says so.",
            "id: m-1",
            "All of it is done.",
        ],
    ),
    "stale": (
        _moved_on,
        "The ticket has changed",
        [
            "It was not opened: nothing was done.",
            "held: the approval is granted, in time, and not used up otherwise",
            "DID NOT HOLD: the ticket stands at the version that was approved, or that our own "
            "close made. Version 2 was expected, it is 3.",
            "held: the same has not been done already",
        ],
    ),
    "rejected": (
        _rejected,
        "rejected",
        ["voted to reject.", "> Not like this.⟦U+001B⟧[2J⟦U+202E⟧", "It was rejected: nothing"],
    ),
    "a click that did not count": (
        _own_click_first,
        ": approved",
        [
            "A click by slack:T0TEAM1:U0REQUESTER to approve did not count.",
            "slack:T0TEAM1:U0SECOND voted to approve.",
        ],
    ),
    "cancelled": (
        _cancelled,
        "withdrawn",
        ["The approval ended unused.", "It was withdrawn: nothing was done. The run was"],
    ),
    "asked about, and withdrawn": (
        _asked_about_and_withdrawn,
        "withdrawn",
        [
            "A question by slack:T0TEAM1:U0OUTSIDER was not put to the agent. You may not decide",
            "slack:T0TEAM1:U0REVIEWER asked the agent. > Why?⟦U+001B⟧[2J⟦U+202E⟧",
            "The agent answered. > It was promised.",
            "slack:T0TEAM1:U0SECOND asked the agent. > Who?",
            "The approval ended unused.",
            "It was withdrawn: nothing was done. Whoever asked for it has withdrawn it.",
            "The agent did not answer.",
        ],
    ),
    "expired": (_expired, "expired", ["The approval expired.", "It expired: nothing was done."]),
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_each_ending_is_told_in_order(operator: Operator, ending: str) -> None:
    walk, summary, story = ENDINGS[ending]
    await walk(operator)
    result = await operator.run("explain", "op_1")
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert summary in result.stdout.splitlines()[0], told
    position = told.find("What happened, in order")
    for sentence in story:
        found = told.find(sentence, position)
        assert found > -1, (sentence, result.stdout)
        position = found
    assert "Note:" not in told
    assert ESCAPES[0] not in result.stdout
    assert ESCAPES[-1] not in result.stdout


NEXT = {
    "unknown": "signoff doubt settle op_1 --tenant T0TEAM1",
    "succeeded": "Nothing; it has ended.",
    "refused by the provider": "Next we look at the ticket, and then do what the policy says",
    "a click that did not count": "A worker checks everything again and opens it",
}


@pytest.mark.parametrize("ending", NEXT)
async def test_what_comes_next_is_told(operator: Operator, ending: str) -> None:
    await ENDINGS[ending][0](operator)
    assert NEXT[ending] in (await operator.run("explain", "op_1")).stdout.splitlines()[1]


async def test_a_closing_and_its_reopening_tell_of_each_other(operator: Operator) -> None:
    await _asked_to_reopen(operator)
    asked_for = (await operator.run("explain", "op_1")).stdout
    assert "op_2 asks whether the ticket is opened again. Decide on its card." in asked_for
    assert "op_2 was proposed, to open the ticket again." in asked_for
    [(reopening,)] = await operator.office.rows(
        "SELECT id FROM operations WHERE compensates IS NOT NULL"
    )
    await operator.office.click(reopening)
    await operator.office.open_one(await operator.office.claim_operation(reopening))
    while await wake(operator.office.engine):
        pass
    closing = (await operator.run("explain", "op_1")).stdout
    assert "done in part, then undone" in closing.splitlines()[0]
    assert "What had been done was undone." in closing
    undoing = (await operator.run("explain", "op_2")).stdout
    assert "It would undo a part of op_1, whose email was not sent." in undoing
    assert f"held: {asked(CheckName.UNDOES)}" in undoing
    assert "The ticket was opened again, in the same commit as its record." in undoing


async def test_as_json_it_tells_the_same_and_hides_nothing(operator: Operator) -> None:
    await _moved_on(operator)
    result = await operator.run("explain", "op_1", "--json")
    told = json.loads(result.stdout)
    assert (told["status"], told["reason"]) == ("stale", "version_changed")
    [opening] = told["checks"]
    assert opening["results"]["ticket"] == "version_changed"
    others = {n.value for n in CheckName if n in ("repeat", "undoes", "limit", "budget")}
    assert set(opening["results"]) == {n.value for n in CheckName} - others
    assert [vote["by"] for vote in told["votes"]] == [RENE]
    assert told["effects"][1]["promise"].startswith("Test: handed over at most once")
    assert told["effects"][1]["attempts"] == []
    assert any("DID NOT HOLD" in line for one in told["story"] for line in one["below"])


async def test_hostile_text_stands_escaped_in_json_too(operator: Operator) -> None:
    await _rejected(operator)
    result = await operator.run("explain", "op_1", "--json")
    assert result.stdout.isascii()
    assert json.loads(result.stdout)["votes"][0]["note"].endswith(ESCAPES)


async def test_another_operation_is_not_told_of(operator: Operator) -> None:
    await operator.in_doubt("4102")
    await operator.in_doubt("4101")
    assert "4102" not in (await operator.run("explain", "op_2")).stdout
    missing = await operator.run("explain", "op_77")
    assert (missing.exit_code, "no operation op_77" in missing.stderr) == (1, True)


def test_every_check_has_a_sentence_of_its_own() -> None:
    assert len({asked(name) for name in CheckName}) == len(CheckName)

"""Where the policy asks several people, sending again needs as many; before, nothing is known."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bot.sandbox.clock import VirtualClock
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.host_clock import mint_id
from executor.adapters.mail.resend import ResendMail
from executor.domain.delivery_event import DeliveryEvent, DeliveryKind
from executor.domain.ids import AttemptId, OperationId, PrincipalId
from executor.domain.recovery import MOST_SENDINGS
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.card_record import OperationRecord
from executor.engine.claims import ClaimedOperation
from executor.engine.endings import Stopped
from executor.engine.granting import Given as RoleGiven
from executor.engine.granting import Wish, give
from executor.engine.late_evidence import Recorded, record
from executor.engine.opening import NotOpened, Opened
from executor.engine.presenting import operation_record
from executor.engine.report import Report, report
from executor.engine.settling import read_back, settle
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.word import Given, Said, Word, WordResult
from executor.store import clock, late_evidence
from executor.store.database import Database
from tests.support import invariants
from tests.support.doubt import Doubt
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import CHANNEL, OTTO, RENE, RIKO, SAM, TENANT, Office, policy

TWO = policy(approval={"quorum": 2, "decide_within_seconds": 600})


@pytest.fixture
async def office(database: Database) -> AsyncIterator[Office]:
    """An office whose policy asks two people."""
    yield await Office.open(database, active=TWO)
    await invariants.check(database)


async def _in_doubt(office: Office) -> tuple[ClaimedOperation, Opened]:
    operation = await office.proposed()
    await office.click(operation, RENE)
    await office.click(operation, SAM)
    claimed = await office.claim_operation(operation)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened)
    assert await office.report(claimed, opened, unknown()) == "unknown"
    return claimed, opened


def _word(opened: Opened, who: PrincipalId, said: Said = Said.SEND_AGAIN, note: str = "") -> Word:
    return Word(
        TENANT,
        opened.effect.operation_id,
        opened.attempt.id,
        said,
        who,
        note,
        CHANNEL,
        f"ts-{opened.effect.operation_id}",
        hashlib.sha256(mint_id().bytes).digest(),
        who.rsplit(":", 1)[-1],
    )


async def _say(
    office: Office, opened: Opened, who: PrincipalId, said: Said = Said.SEND_AGAIN, note: str = ""
) -> WordResult:
    [result] = await settle(office.engine, [_word(opened, who, said, note)])
    return result


def _missing(result: WordResult) -> int:
    assert isinstance(result, Given), result
    return result.still_needed


def _reason(result: WordResult) -> Reason | None:
    assert isinstance(result, Refused | NoChange), result
    return result.reason


async def _stand(office: Office) -> tuple[list[str], list[str], list[str]]:
    """How operations, attempts and approvals stand, oldest first."""
    operations = await office.rows("SELECT status FROM operations ORDER BY number")
    attempts = await office.rows("SELECT status FROM attempts ORDER BY number")
    approvals = await office.rows("SELECT status FROM approvals ORDER BY id")
    return [s for (s,) in operations], [s for (s,) in attempts], [s for (s,) in approvals]


async def _card(office: Office, opened: Opened) -> OperationRecord:
    card = await operation_record(office.engine, TENANT, opened.effect.operation_id)
    assert isinstance(card, OperationRecord)
    return card


async def test_nothing_is_known_or_sent_before_the_second_person_said_so(office: Office) -> None:
    claimed, first = await _in_doubt(office)
    assert _missing(await _say(office, first, RENE, note="Not in the log.")) == 1
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed", "open"])
    assert await office.claim_operations("w2") == []
    card = await _card(office, first)
    assert card.doubt is not None
    assert card.doubt.repeat is not None
    assert [v.principal for v in card.doubt.repeat.votes] == [RENE]
    assert (card.doubt.quorum, card.doubt.repeat.quorum) == (2, 2)
    # What the operation itself was approved by stays what it was.
    assert [v.principal for v in card.approval.votes] == [RENE, SAM]

    assert _missing(await _say(office, first, SAM)) == 0
    assert await _stand(office) == (["executing"], ["not_applied"], ["consumed", "granted"])
    again = await office.claim_operation(claimed.claim.key[1], "w2")
    second = await office.open_one(again)
    assert isinstance(second, Opened)
    assert second.effect.payload == first.effect.payload
    assert await office.report(again, second, applied()) == "succeeded"
    assert await _stand(office) == (
        ["succeeded"],
        ["not_applied", "applied"],
        ["consumed", "consumed"],
    )
    told = await office.rows(
        "SELECT actor, detail ->> 'still_needed', detail ->> 'note' FROM journal "
        "WHERE event = 'word_given' ORDER BY position"
    )
    assert told == [(RENE, "1", "Not in the log."), (SAM, "0", None)]
    votes = await office.rows(
        "SELECT d.principal, d.digest = o.digest FROM decisions d JOIN approvals a "
        "ON a.id = d.approval_id JOIN operations o ON o.id = a.operation_id "
        "WHERE a.repeats_attempt IS NOT NULL ORDER BY d.principal"
    )
    assert votes == [(RENE, True), (SAM, True)]


async def test_the_rules_of_an_approval_hold_for_each_vote(office: Office) -> None:
    _, opened = await _in_doubt(office)
    assert _reason(await _say(office, opened, OTTO)) is Reason.NOT_PERMITTED
    assert _reason(await _say(office, opened, RIKO)) is Reason.OWN_REQUEST
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed"])
    assert _missing(await _say(office, opened, RENE)) == 1
    assert _reason(await _say(office, opened, RENE)) is Reason.ALREADY_VOTED
    assert _reason(await _say(office, opened, RIKO)) is Reason.OWN_REQUEST
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed", "open"])
    assert len(await office.rows("SELECT 1 FROM journal WHERE event = 'word_given'")) == 1
    notices = [json.dumps(a) for (a,) in await office.rows("SELECT answer FROM notices")]
    assert any("already_voted" in answer for answer in notices)


async def test_neither_who_wrote_it_nor_who_acts_for_the_requester_has_it_repeated(
    office: Office,
) -> None:
    _, opened = await _in_doubt(office)
    async with office.database.transaction() as conn:
        await conn.execute(text("UPDATE operations SET editor = :who"), {"who": RENE})
        until = await clock.now(conn) + timedelta(hours=1)
    wish = Wish(OTTO, "approver", ends_at=until, on_behalf_of=RIKO)
    assert isinstance(await give(office.engine, TENANT, RIKO, wish), RoleGiven)
    assert _reason(await _say(office, opened, RENE)) is Reason.OWN_EDIT
    assert _reason(await _say(office, opened, OTTO)) is Reason.OWN_REQUEST
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed"])


async def test_of_many_at_once_each_person_counts_once(office: Office) -> None:
    _, opened = await _in_doubt(office)
    words = [_word(opened, who) for who in (RENE, RENE, RIKO, SAM, SAM, RENE)]
    results = await settle(office.engine, words)
    assert [type(r).__name__ for r in results] == [
        "Given", "NoChange", "Refused", "Given", "Refused", "Refused",
    ]  # fmt: skip
    assert _reason(results[4]) is Reason.ALREADY_SENDING
    assert await _stand(office) == (["executing"], ["not_applied"], ["consumed", "granted"])


@pytest.mark.parametrize("other", [Said.SENT, Said.NOT_SENT, Said.SEND_AGAIN])
async def test_two_processes_at_once_leave_one_of_the_true_ends(
    office: Office, other: Said
) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    mine, theirs = await asyncio.gather(
        settle(office.engine, [_word(opened, SAM)]),
        settle(office.colleague().engine, [_word(opened, SAM, other)]),
    )
    ends = {
        "executing": (["executing"], ["not_applied"], ["consumed", "granted"]),
        "succeeded": (["succeeded"], ["applied"], ["consumed", "void"]),
        "partial": (["partial"], ["not_applied"], ["consumed", "void"]),
    }
    found = await _stand(office)
    assert found == ends[found[0][0]]
    assert sum(isinstance(r, Given) for r in (*mine, *theirs)) == 1


@pytest.mark.parametrize(
    ("said", "operation", "attempt"),
    [(Said.SENT, "succeeded", "applied"), (Said.NOT_SENT, "partial", "not_applied")],
)
async def test_another_word_ends_what_was_begun(
    office: Office, said: Said, operation: str, attempt: str
) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    assert isinstance(await _say(office, opened, RENE, Said.LEAVE), Given)
    assert (await _stand(office))[2] == ["consumed", "open"]
    assert isinstance(await _say(office, opened, SAM, said), Given)
    assert await _stand(office) == ([operation], [attempt], ["consumed", "void"])
    assert _reason(await _say(office, opened, SAM)) is Reason.ALREADY_ENDED


async def test_late_evidence_ends_what_was_begun_in_the_same_commit(office: Office) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    event = DeliveryEvent(
        "msg_1",
        str(opened.effect.id),
        "mail-1",
        DeliveryKind.BOUNCED,
        datetime.now(UTC),
        {"provider": office.mail.provider, "bounce": "Permanent", "recipients": ["pat@x.example"]},
    )
    provider = office.mail.provider.partition(":")[0]
    assert await record(office.engine, TENANT, provider, event) is Recorded.MATCHED
    assert await _stand(office) == (["succeeded"], ["applied"], ["consumed", "void"])
    card = await _card(office, opened)
    [bounced] = card.deliveries
    assert (bounced.kind, bounced.said, bounced.recipients) == (
        DeliveryKind.BOUNCED,
        "Permanent",
        ("pat@x.example",),
    )
    async with office.database.transaction() as conn:
        assert await late_evidence.due(conn, 10) == []


@pytest.mark.parametrize(
    ("outcome", "operation", "attempt"),
    [(applied(), "succeeded", "applied"), (not_applied(retryable=False), "partial", "not_applied")],
)
async def test_a_stale_workers_receipt_ends_what_was_begun(
    office: Office, outcome: object, operation: str, attempt: str
) -> None:
    claimed, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await office.report(claimed, opened, outcome)  # type: ignore[arg-type]
    await sweep(office.engine)
    assert await _stand(office) == ([operation], [attempt], ["consumed", "void"])


async def test_what_was_begun_ends_with_its_time_and_can_be_begun_anew(office: Office) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await office.later(seconds=601)
    before = await office.rows("SELECT wanted_revision FROM cards")
    await sweep(office.engine)
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed", "expired"])
    card = await _card(office, opened)
    assert card.doubt is not None
    assert card.doubt.repeat is None
    assert await office.rows("SELECT wanted_revision FROM cards") != before
    assert _missing(await _say(office, opened, SAM)) == 1
    assert _missing(await _say(office, opened, RENE)) == 0


async def test_a_vote_after_the_time_begins_anew_though_nobody_has_swept(office: Office) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await office.later(seconds=601)
    assert _missing(await _say(office, opened, SAM)) == 1
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed", "expired", "open"])


async def test_a_granted_repeat_that_is_not_used_in_time_is_not_opened(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await _say(office, opened, SAM)
    await office.later(hours=2)
    again = await office.claim_operation(claimed.claim.key[1], "w2")
    assert isinstance(await office.open_one(again), NotOpened)
    operations, attempts, _ = await _stand(office)
    assert (operations, attempts) == (["partial"], ["not_applied"])


async def test_a_second_vote_is_refused_when_the_world_has_moved_on(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await office.customer_writes()
    assert _reason(await _say(office, opened, SAM)) is Reason.VERSION_CHANGED
    card = await _card(office, opened)
    assert card.doubt is not None
    assert card.doubt.not_again is Reason.VERSION_CHANGED
    stopped = await office.cancel(await office.run_of(claimed.claim.key[1]))
    assert isinstance(stopped, Stopped)
    assert _reason(await _say(office, opened, SAM)) is Reason.CANCELLED
    assert (await _stand(office))[0] == ["unknown"]


async def test_a_stricter_policy_asks_more_people_of_what_was_begun(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    await _say(office, opened, RENE)
    await _say(office, opened, SAM)
    await activate_policy(office.engine, policy(approval={"quorum": 3}))
    again = await office.claim_operation(claimed.claim.key[1], "w2")
    assert isinstance(await office.open_one(again), NotOpened)
    assert (await _stand(office))[0] == ["partial"]


async def test_an_old_approve_decides_nothing_of_a_repeat(office: Office) -> None:
    _, opened = await _in_doubt(office)
    old = await office.click_for(opened.effect.operation_id, SAM)
    await _say(office, opened, RENE)
    newest = await office.click_for(opened.effect.operation_id, SAM)
    assert newest.approval_id != old.approval_id
    results = await office.decide(old, newest)
    assert all(isinstance(r, Refused | NoChange) for r in results), results
    assert [r.reason for r in results if isinstance(r, Refused | NoChange)] == [
        Reason.ALREADY_SENDING
    ] * 2
    votes = await office.rows("SELECT principal FROM decisions ORDER BY decided_at DESC LIMIT 1")
    assert votes == [(RENE,)]
    assert await _stand(office) == (["unknown"], ["unknown"], ["consumed", "open"])


async def test_reading_back_tells_how_many_are_still_needed(office: Office) -> None:
    _, opened = await _in_doubt(office)
    word = _word(opened, RENE)
    [given] = await settle(office.engine, [word])
    assert await read_back(office.engine, word) == given
    assert _missing(given) == 1


async def test_half_a_yes_stops_no_machine_and_says_nothing_about_what_it_has_not_seen(
    office: Office,
) -> None:
    clock = VirtualClock()
    async with ResendDouble(clock=clock) as double:
        mail = ResendMail(SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=5.0)
        doubt = Doubt(office, mail, clock)
        operation = await office.proposed()
        await office.click(operation, RENE)
        await office.click(operation, SAM)
        claimed = await office.claim_operation(operation)
        double.fail(PlannedFault(Fault.DROP))
        await doubt.execute(claimed)
        await doubt.until_nothing_is_due()
        attempts = await _attempt_ids(office)
        assert len(attempts) == MOST_SENDINGS
        assert _missing(await _say_of(office, operation, attempts[-1], RENE)) == 1
        # A stale worker knows at last of the first one, so that a machine may go on under the key.
        late = Report(claimed.claim.key, attempts[0], not_applied(retryable=True), "w0")
        assert await report(office.engine, [late]) == ["unknown"]
        await doubt.until_nothing_is_due()
        newest = (await _attempt_ids(office))[-1]
        assert newest != attempts[-1]
        stale = await _say_of(office, operation, attempts[-1], SAM)
        assert _reason(stale) is Reason.ATTEMPT_CHANGED
        assert _missing(await _say_of(office, operation, newest, SAM)) == 1
        assert (await _stand(office))[2] == ["consumed", "void", "open"]


async def _attempt_ids(office: Office) -> list[AttemptId]:
    return [
        AttemptId(id_) for (id_,) in await office.rows("SELECT id FROM attempts ORDER BY number")
    ]


async def _say_of(
    office: Office, operation: OperationId, attempt: AttemptId, who: PrincipalId
) -> WordResult:
    request = hashlib.sha256(mint_id().bytes).digest()
    place = f"ts-{operation}"
    again = Said.SEND_AGAIN
    word = Word(TENANT, operation, attempt, again, who, "", CHANNEL, place, request, "U")
    [result] = await settle(office.engine, [word])
    return result

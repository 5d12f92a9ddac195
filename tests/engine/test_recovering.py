"""T6: an unknown attempt is repeated under its key or searched for, as its record allows."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import httpx2
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail import resend as resend_adapter
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.domain.effect import Capability
from executor.domain.errors import ForbiddenByDatabase
from executor.domain.recovery import MOST_LOOKUPS, MOST_SENDINGS, Why
from executor.engine.claims import ClaimedOperation
from executor.engine.opening import NotOpened
from executor.engine.reconciler import reconcile
from tests.support.doubt import Doubt
from tests.support.fake_mail import unknown
from tests.support.office import RENE, Office

LOST = PlannedFault(Fault.DROP, after_accepting=True)
NEVER = PlannedFault(Fault.DROP)
BOUND = 5.0
KEY_WINDOW_SECONDS = 86_400.0


class Shorter(ResendMail):
    """The same account, declared to remember keys for ten minutes only."""

    declaration = replace(resend_adapter.DECLARED, key_window=timedelta(minutes=10))


class Deaf(ResendMail):
    """The same account, declared to know nothing of keys."""

    declaration = replace(resend_adapter.DECLARED, capability=Capability.OPAQUE, key_window=None)


@dataclass(kw_only=True)
class Keyed(Doubt):
    """Resend, and its double."""

    double: ResendDouble

    def declared(self, kind: type[ResendMail] = ResendMail) -> ResendMail:
        return kind(SecretStr("re_sandbox"), api_url=self.double.url, longest_request_seconds=BOUND)


@dataclass(kw_only=True)
class Searched(Doubt):
    """Postmark, and its double."""

    double: PostmarkDouble


@pytest.fixture
async def resend(office: Office) -> AsyncIterator[Keyed]:
    clock = VirtualClock()
    async with ResendDouble(clock=clock) as double:
        mail = ResendMail(
            SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=BOUND
        )
        yield Keyed(office, mail, clock, double=double)


@pytest.fixture
async def postmark(office: Office) -> AsyncIterator[Searched]:
    clock = VirtualClock()
    async with PostmarkDouble(clock=clock, search_lag_seconds=100.0) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"),
            api_url=double.url,
            lookup_lag_seconds=120.0,
            longest_request_seconds=BOUND,
        )
        yield Searched(office, mail, clock, double=double)


async def _lost(doubt: Keyed | Searched, fault: PlannedFault = LOST) -> ClaimedOperation:
    """Send once, and lose the answer."""
    claimed = await doubt.claimed()
    doubt.double.fail(fault, call=1)
    await doubt.execute(claimed)
    assert await doubt.office.status(claimed.claim.key[1]) == "unknown"
    return claimed


async def test_a_lost_answer_is_asked_for_again_under_the_same_key(resend: Keyed) -> None:
    claimed = await _lost(resend)
    operation = claimed.claim.key[1]
    await resend.until_nothing_is_due()
    assert await resend.office.status(operation) == "succeeded"
    assert await resend.sent(operation) == [("unknown", 0), ("applied", 0)]
    assert (resend.double.accepted, resend.double.faults.calls) == (1, 2)
    events = await resend.office.events(await resend.office.run_of(operation))
    assert ("recovers", "recovery", "executing") in events
    [(checks,)] = await resend.office.rows(
        "SELECT detail -> 'checks' FROM journal WHERE machine = 'attempt' AND detail ? 'checks'"
    )
    assert (checks["ticket"], checks["repeat"]) == ("held", "held")


async def test_nothing_is_repeated_before_its_time(resend: Keyed) -> None:
    await _lost(resend)
    assert await resend.recover() == 0
    await resend.pass_time(4.5)
    await resend.work()
    assert resend.double.faults.calls == 1
    await resend.pass_time(0.6)
    await resend.work()
    assert resend.double.faults.calls == 2


async def test_a_machine_sends_only_so_often_and_then_asks_a_person(resend: Keyed) -> None:
    resend.double.fail(LOST)
    claimed = await _lost(resend)
    operation = claimed.claim.key[1]
    await resend.until_nothing_is_due()
    assert await resend.office.status(operation) == "unknown"
    assert resend.double.faults.calls == MOST_SENDINGS
    assert await resend.asked(operation) == Why.SENDINGS_USED_UP.value
    assert resend.double.accepted == 1


async def test_a_keyed_repeat_after_the_window_never_happens(resend: Keyed) -> None:
    claimed = await _lost(resend, NEVER)
    await resend.pass_time(KEY_WINDOW_SECONDS - 15.0)
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.office.status(claimed.claim.key[1]) == "unknown"
    assert await resend.asked(claimed.claim.key[1]) == Why.WINDOW_OVER.value


async def test_a_repeat_that_waited_past_the_window_is_not_opened(resend: Keyed) -> None:
    claimed = await _lost(resend, NEVER)
    operation = claimed.claim.key[1]
    await resend.pass_time(6.0)
    await resend.recover()
    assert await resend.office.status(operation) == "executing"
    await resend.pass_time(KEY_WINDOW_SECONDS)
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.office.status(operation) == "unknown"
    assert await resend.asked(operation) == Why.WINDOW_OVER.value


async def test_a_person_who_was_not_looked_at_is_waited_for_only_while_the_key_lasts(
    resend: Keyed,
) -> None:
    claimed = await _lost(resend, NEVER)
    operation = claimed.claim.key[1]
    await resend.office.later_unseen(seconds=90)
    await resend.work()
    assert await resend.office.status(operation) == "executing"
    assert resend.double.faults.calls == 1
    await resend.office.later_unseen(days=1)
    await resend.work()
    assert await resend.office.status(operation) == "unknown"
    assert await resend.asked(operation) == Why.WINDOW_OVER.value


async def test_a_window_that_was_declared_shorter_since_counts(resend: Keyed) -> None:
    claimed = await _lost(resend, NEVER)
    resend.use(resend.declared(Shorter))
    await resend.pass_time(601.0)
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.asked(claimed.claim.key[1]) == Why.WINDOW_OVER.value


async def test_a_window_that_was_declared_longer_since_does_not_count(resend: Keyed) -> None:
    resend.use(resend.declared(Shorter))
    claimed = await _lost(resend, NEVER)
    resend.use(resend.declared())
    await resend.pass_time(601.0)
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.asked(claimed.claim.key[1]) == Why.WINDOW_OVER.value


async def test_an_attempt_that_was_opaque_stays_so_whatever_is_declared_since(
    resend: Keyed,
) -> None:
    resend.use(resend.declared(Deaf))
    claimed = await _lost(resend)
    resend.use(resend.declared())
    await resend.pass_time(600)
    await resend.until_nothing_is_due()
    assert await resend.office.status(claimed.claim.key[1]) == "unknown"
    assert resend.double.faults.calls == 1


async def test_what_is_declared_opaque_since_is_not_repeated(resend: Keyed) -> None:
    claimed = await _lost(resend)
    resend.use(resend.declared(Deaf))
    await resend.pass_time(6)
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.asked(claimed.claim.key[1]) == Why.DECLARED_OTHERWISE.value


async def test_after_a_cancel_nothing_is_sent_again_not_even_with_a_key(resend: Keyed) -> None:
    claimed = await _lost(resend, NEVER)
    operation = claimed.claim.key[1]
    await resend.office.cancel(await resend.office.run_of(operation))
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1
    assert await resend.office.status(operation) == "unknown"
    assert await resend.asked(operation) == Why.NOT_PERMITTED.value


async def test_a_cancel_between_the_decision_and_the_opening_prevents_the_repeat(
    resend: Keyed,
) -> None:
    claimed = await _lost(resend, NEVER)
    operation = claimed.claim.key[1]
    await resend.pass_time(6)
    await resend.recover()
    await resend.office.cancel(await resend.office.run_of(operation))
    [again] = await resend.office.claim_operations()
    assert isinstance(await resend.office.open_one(again), NotOpened)
    assert await resend.office.status(operation) == "unknown"
    assert await resend.asked(operation) == Why.NOT_PERMITTED.value
    await resend.until_nothing_is_due()
    assert resend.double.faults.calls == 1


async def test_a_key_that_was_seen_with_other_bytes_stops_for_ever_and_alarms(
    resend: Keyed, caplog: pytest.LogCaptureFixture
) -> None:
    claimed = await resend.claimed()
    operation = claimed.claim.key[1]
    [(key, payload)] = await resend.office.rows(
        "SELECT idempotency_key, payload FROM effects WHERE kind = 'email.send'"
    )
    async with httpx2.AsyncClient(trust_env=False) as somebody:
        await somebody.post(
            f"{resend.double.url}/emails",
            content=bytes(payload).replace(b"Pat", b"Pit"),
            headers={
                "idempotency-key": key,
                "authorization": "Bearer re_sandbox",
                "content-type": "application/json",
            },
        )
    assert resend.double.accepted == 1
    with caplog.at_level(logging.ERROR, logger="executor.engine.report"):
        await resend.execute(claimed)
    assert "other bytes" in caplog.text
    assert await resend.office.status(operation) == "unknown"
    assert await resend.asked(operation) == Why.STOPPED.value
    await resend.pass_time(3600)
    await resend.until_nothing_is_due()
    assert (resend.double.accepted, resend.double.faults.calls) == (1, 2)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE effects SET payload = payload || ' ', payload_digest = sha256(payload || ' ')",
        "UPDATE effects SET idempotency_key = idempotency_key || 'x'",
    ],
)
async def test_what_was_attempted_cannot_get_other_bytes_or_another_key(
    resend: Keyed, change: str
) -> None:
    await _lost(resend)
    with pytest.raises(ForbiddenByDatabase) as refused:
        async with resend.office.database.transaction() as conn:
            await conn.execute(text(change))
    assert "every_attempt_has_the_key_and_the_bytes_of_its_effect" in str(refused.value)


async def test_a_repeat_sends_the_same_bytes_under_the_same_key(resend: Keyed) -> None:
    await _lost(resend, NEVER)
    await resend.until_nothing_is_due()
    [mail] = resend.double.mails
    [(key, payload)] = await resend.office.rows(
        "SELECT idempotency_key, payload FROM effects WHERE kind = 'email.send'"
    )
    assert (mail.key, mail.raw) == (key, bytes(payload))
    rows = await resend.office.rows(
        "SELECT count(DISTINCT (idempotency_key, payload_digest)), count(*) FROM attempts"
    )
    assert rows == [(1, 2)]


async def test_a_request_that_is_still_worked_on_is_waited_for(resend: Keyed) -> None:
    resend.use(
        ResendMail(SecretStr("re_sandbox"), api_url=resend.double.url, longest_request_seconds=0.3)
    )
    claimed = await _lost(resend, PlannedFault(Fault.HANG))
    operation = claimed.claim.key[1]
    await resend.pass_time(5.1)
    await resend.work()
    assert await resend.office.rows("SELECT evidence ->> 'code' FROM attempts ORDER BY number") == [
        (None,),
        ("concurrent_idempotent_requests",),
    ]
    assert await resend.office.status(operation) == "unknown"
    resend.double.faults.release()
    await resend.double.accepted_mails.wait_for(lambda mails: mails.accepted == 1)
    await resend.until_nothing_is_due()
    assert await resend.office.status(operation) == "succeeded"
    assert resend.double.accepted == 1


async def test_a_repeat_that_is_refused_for_good_leaves_it_to_a_person(resend: Keyed) -> None:
    resend.double.fail(PlannedFault(Fault.ERROR, status=422), call=2)
    claimed = await _lost(resend)
    await resend.until_nothing_is_due()
    assert await resend.office.status(claimed.claim.key[1]) == "unknown"
    assert await resend.asked(claimed.claim.key[1]) == Why.REFUSED.value
    assert resend.double.faults.calls == 2


async def test_an_attempt_without_an_answer_is_repeated_after_its_last_moment(
    resend: Keyed,
) -> None:
    claimed = await resend.claimed()
    await resend.office.open_one(claimed)
    await resend.pass_time(10 + BOUND)
    assert await reconcile(resend.office.engine) == 0
    await resend.until_nothing_is_due()
    assert await resend.office.status(claimed.claim.key[1]) == "succeeded"
    assert resend.double.accepted == 1


async def test_a_search_waits_for_the_lag_and_what_it_finds_is_applied(postmark: Searched) -> None:
    claimed = await _lost(postmark)
    operation = claimed.claim.key[1]
    await postmark.pass_time(119)
    await postmark.work()
    assert postmark.double.search_faults.calls == 0
    await postmark.pass_time(2)
    await postmark.work()
    assert postmark.double.search_faults.calls == 1
    assert await postmark.office.status(operation) == "succeeded"
    assert await postmark.sent(operation) == [("applied", 1)]
    [(found,)] = await postmark.office.rows("SELECT evidence ->> 'search' FROM attempts")
    assert found == f"found (1 of {MOST_LOOKUPS})"


async def test_what_is_not_found_is_searched_for_again_and_never_proof(postmark: Searched) -> None:
    claimed = await _lost(postmark, NEVER)
    operation = claimed.claim.key[1]
    await postmark.until_nothing_is_due()
    assert await postmark.office.status(operation) == "unknown"
    assert await postmark.sent(operation) == [("unknown", MOST_LOOKUPS)]
    assert postmark.double.search_faults.calls == MOST_LOOKUPS
    assert postmark.double.faults.calls == 1
    assert postmark.seconds > 30 * 120
    assert await postmark.asked(operation) == Why.LOOKUPS_USED_UP.value
    events = await postmark.office.events(await postmark.office.run_of(operation))
    names = [event for event, *_ in events]
    assert names.count("looking_up") == names.count("looked_up") == MOST_LOOKUPS


async def test_a_search_that_fails_is_made_again_later(postmark: Searched) -> None:
    postmark.double.search_faults.plan(PlannedFault(Fault.ERROR, status=503), call=1)
    claimed = await _lost(postmark)
    await postmark.until_nothing_is_due()
    assert await postmark.office.status(claimed.claim.key[1]) == "succeeded"
    assert postmark.double.search_faults.calls == 2


async def test_after_a_cancel_it_is_still_searched_for(postmark: Searched) -> None:
    claimed = await _lost(postmark)
    operation = claimed.claim.key[1]
    run_id = await postmark.office.run_of(operation)
    await postmark.office.cancel(run_id, RENE)
    await postmark.until_nothing_is_due()
    assert await postmark.office.status(operation) == "succeeded"
    assert postmark.double.faults.calls == 1


async def test_another_account_is_neither_searched_nor_sent_by(postmark: Searched) -> None:
    claimed = await _lost(postmark)
    postmark.use(
        PostmarkMail(SecretStr("sandbox-token"), api_url=postmark.double.url, account="other")
    )
    await postmark.pass_time(600)
    await postmark.until_nothing_is_due()
    assert postmark.double.search_faults.calls == 0
    assert await postmark.asked(claimed.claim.key[1]) == Why.DECLARED_OTHERWISE.value


async def test_an_opaque_attempt_is_put_to_a_person_and_nothing_is_due(office: Office) -> None:
    claimed, opened = await office.opened()
    await office.report(claimed, opened, unknown())
    assert await office.rows("SELECT recover_at FROM attempts") == [(None,)]

"""Late evidence over the real doors: a provider's signed word turns doubt into fact, once."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import aiohttp
import httpx2
import pytest
from pydantic import SecretStr

from bot.ingress.webhooks import Webhook
from bot.sandbox.accepted_mail import AcceptedMail
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import WEBHOOK_SECRET, ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.postmark_webhook import WebhookCredential, read_postmark_webhook
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.resend_webhook import read_resend_webhook, signing_key
from executor.domain.delivery_event import LONGEST_WEBHOOK, DeliveryKind
from executor.domain.ids import OperationId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.late_evidence import match_late_evidence
from executor.store.late_evidence import DeliveryNote, read_delivery_notes
from tests.support import invariants
from tests.support.bot_harness import REVIEWER, Harness, RunningBot, ShiftedClock, proposing
from tests.support.tcp_proxy import tcp_proxy

CREDENTIAL = {"user": "signoff", "password": "s3cr3t"}
LOST_AFTER_ACCEPTING = PlannedFault(Fault.DROP, after_accepting=True)


def _doors() -> list[Webhook]:
    """The doors as the composition root makes them."""
    key = signing_key(SecretStr(WEBHOOK_SECRET))
    known = [WebhookCredential(CREDENTIAL["user"], SecretStr(CREDENTIAL["password"]))]
    return [
        Webhook(
            "resend",
            lambda body, given, now: read_resend_webhook(body, given, [key], now.timestamp()),
        ),
        Webhook("postmark", lambda body, given, _: read_postmark_webhook(body, given, known)),
    ]


@dataclass
class Office:
    """One tenant whose mails leave by Resend, with both doors open."""

    h: Harness
    resend: ResendDouble
    postmark: PostmarkDouble
    number: int = 0

    @property
    def bot(self) -> RunningBot:
        return self.h.bots[-1]

    async def send_by(self, provider: str) -> AcceptedMail:
        """Let a mail be approved and sent until nothing more happens by itself."""
        double: ResendDouble | PostmarkDouble = getattr(self, provider)
        self.number = await self.h.start_run()
        card = await self.h.card()
        await self.h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await double.accepted_mails.wait_for(lambda mails: mails.accepted == 1)
        return double.mails[0]

    async def in_doubt(self, provider: str = "resend") -> AcceptedMail:
        """Let a mail be accepted and the answer be lost; whoever could find out has stopped."""
        double: ResendDouble | PostmarkDouble = getattr(self, provider)
        double.fail(LOST_AFTER_ACCEPTING, call=1)
        mail = await self.send_by(provider)
        await self.h.until_operation(OperationStatus.UNKNOWN)
        await self.h.workers[0].stop()
        assert await self.attempts() == ["unknown"]
        return mail

    async def say(self, mail: AcceptedMail, event: str, **given: Any) -> int:
        """Post a webhook of Resend's to the newest bot."""
        url = f"{self.bot.url}/webhooks/resend"
        return await self.resend.send_webhook(url, mail, event, **given)

    async def attempts(self) -> list[str]:
        rows = await self.h.rows("SELECT status FROM attempts ORDER BY number")
        return [row.status for row in rows]

    async def evidence(self) -> list[tuple[str, bool]]:
        """The kinds of what is stored, and whether it was matched."""
        rows = await self.h.rows(
            "SELECT kind, matched_at IS NOT NULL AS matched FROM late_evidence ORDER BY received_at"
        )
        return [(row.kind, row.matched) for row in rows]

    async def delivery_notes(self) -> list[DeliveryNote]:
        id_ = OperationId(await self.h.value("SELECT id FROM operations"))
        async with self.h.database.transaction() as conn:
            return await read_delivery_notes(conn, self.h.policy.tenant_id, id_)

    async def counts(self, provider: str) -> dict[str, int]:
        counts = (await self.readiness())["webhooks"][provider]
        return {name: count for name, count in counts.items() if count}

    async def readiness(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as http, http.get(f"{self.bot.url}/readyz") as response:
            report: dict[str, Any] = await response.json()
            return report


@pytest.fixture
async def doubles() -> AsyncIterator[tuple[ResendDouble, PostmarkDouble]]:
    async with ResendDouble() as resend, PostmarkDouble() as postmark:
        yield resend, postmark


@pytest.fixture
async def office(
    database_url: str, doubles: tuple[ResendDouble, PostmarkDouble]
) -> AsyncIterator[Office]:
    resend, postmark = doubles
    mail = ResendMail(SecretStr("re_sandbox"), api_url=resend.url)
    async with Harness(database_url, model=proposing(), mail=mail, webhooks=_doors()) as h:
        yield Office(h, resend, postmark)
        await invariants.check(h.database)


@pytest.fixture
async def postmark_office(
    database_url: str, doubles: tuple[ResendDouble, PostmarkDouble]
) -> AsyncIterator[Office]:
    resend, postmark = doubles
    mail = PostmarkMail(SecretStr("sandbox-token"), api_url=postmark.url)
    async with Harness(database_url, model=proposing(), mail=mail, webhooks=_doors()) as h:
        yield Office(h, resend, postmark)
        await invariants.check(h.database)


async def test_a_signed_event_of_resend_turns_unknown_into_done_and_the_run_goes_on(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    assert await office.say(mail, "email.delivered", event_id="msg_7") == 200
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert await office.attempts() == ["applied"]
    [row] = await office.h.rows("SELECT evidence FROM attempts")
    assert row.evidence["phase"] == "webhook"
    assert (row.evidence["event_id"], row.evidence["id"]) == ("msg_7", mail.provider_id)
    actors = await office.h.rows(
        "SELECT actor FROM journal WHERE target = 'applied' AND machine = 'attempt'"
    )
    assert [a.actor for a in actors] == ["webhook:resend"]
    await office.h.start_worker()
    await office.h.until_run(office.number, RunStatus.SUCCEEDED)
    assert office.resend.accepted == 1


async def test_an_event_of_postmark_turns_unknown_into_done(postmark_office: Office) -> None:
    office = postmark_office
    mail = await office.in_doubt("postmark")
    assert (await office.readiness())["in_doubt"] == 1
    url = f"{office.bot.url}/webhooks/postmark"
    assert await office.postmark.send_webhook(url, mail, "Delivery", **CREDENTIAL) == 200
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert (await office.readiness())["in_doubt"] == 0
    await office.h.start_worker()
    await office.h.until_run(office.number, RunStatus.SUCCEEDED)
    assert office.postmark.accepted == 1


async def test_the_same_event_again_changes_nothing(office: Office) -> None:
    mail = await office.in_doubt()
    body, headers = office.resend.webhook(mail, "email.bounced", event_id="msg_1")
    ends = []
    async with httpx2.AsyncClient(trust_env=False) as http:
        for _ in range(3):
            answer = await http.post(
                f"{office.bot.url}/webhooks/resend", content=body, headers=headers
            )
            assert (answer.status_code, answer.text) == (200, "")
            ends.append(await office.h.rows("SELECT position, hash FROM journal_heads"))
    assert ends[0] == ends[1] == ends[2]
    assert await office.evidence() == [("bounced", True)]


async def test_postmarks_repeats_are_known_by_their_bytes(postmark_office: Office) -> None:
    office = postmark_office
    mail = await office.in_doubt("postmark")
    body = office.postmark.webhook_body(mail, "Bounce")
    login = (CREDENTIAL["user"], CREDENTIAL["password"])
    async with httpx2.AsyncClient(trust_env=False, auth=login) as http:
        for _ in range(2):
            answer = await http.post(f"{office.bot.url}/webhooks/postmark", content=body)
            assert answer.status_code == 200
    assert await office.evidence() == [("bounced", True)]
    assert len(await office.h.notes("accepted_then_bounced")) == 1


async def test_a_bounce_after_acceptance_is_a_note_and_no_failure(office: Office) -> None:
    mail = await office.send_by("resend")
    await office.h.until_run(office.number, RunStatus.SUCCEEDED)
    before = await office.h.value(
        "SELECT wanted_revision FROM cards JOIN operations ON id = subject_id"
    )
    bounce = {"type": "Permanent", "subType": "General"}
    assert await office.say(mail, "email.delivered") == 200
    assert await office.say(mail, "email.bounced", bounce=bounce) == 200
    assert await office.say(mail, "email.complained") == 200
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert await office.attempts() == ["applied"]
    [bounced] = await office.h.notes("accepted_then_bounced")
    assert (bounced["actor"], bounced["bounce"]) == ("webhook:resend", "Permanent General")
    assert len(await office.h.notes("accepted_then_complained")) == 1
    notes = await office.delivery_notes()
    assert [note.kind for note in notes] == [
        DeliveryKind.DELIVERED,
        DeliveryKind.BOUNCED,
        DeliveryKind.COMPLAINED,
    ]
    assert notes[1].mail_id == mail.provider_id
    after = await office.h.value(
        "SELECT wanted_revision FROM cards JOIN operations ON id = subject_id"
    )
    # The card tells each of them.
    assert after == before + 3


async def test_a_bounce_of_a_mail_in_doubt_says_both_that_it_was_sent_and_that_it_came_back(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    assert await office.say(mail, "email.bounced") == 200
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert len(await office.h.notes("accepted_then_bounced")) == 1


async def test_evidence_contradicts_what_was_taken_for_a_refusal(office: Office) -> None:
    office.resend.fail(PlannedFault(Fault.ERROR, after_accepting=True, status=422), call=1)
    mail = await office.send_by("resend")
    # People are asked whether the ticket is opened again, and then there is nothing to undo.
    await office.h.until_operation(OperationStatus.PARTIAL, OperationStatus.AWAITING)
    assert await office.attempts() == ["not_applied"]
    assert await office.say(mail, "email.sent") == 200
    await office.h.until_operation(OperationStatus.SUCCEEDED, OperationStatus.STALE)
    assert await office.attempts() == ["applied"]


async def test_what_is_not_authentic_changes_nothing_and_is_counted(office: Office) -> None:
    mail = await office.in_doubt()
    body, headers = office.resend.webhook(mail, "email.delivered")
    wrong = "whsec_" + "d3Jvbmc="
    url = f"{office.bot.url}/webhooks/resend"
    assert await office.say(mail, "email.delivered", secret=wrong) == 401
    async with httpx2.AsyncClient(trust_env=False) as http:

        async def answer(content: bytes, given: Any) -> tuple[int, str]:
            said = await http.post(url, content=content, headers=given)
            return said.status_code, said.text

        assert await answer(body + b" ", headers) == (401, "unauthorised")
        assert await answer(body, [*headers.items(), ("svix-id", "msg_2")]) == (400, "bad request")
        assert await answer(body, {}) == (400, "bad request")
        assert await answer(b"x" * (LONGEST_WEBHOOK + 1), headers) == (413, "too large")
        assert await answer(b"", headers) == (401, "unauthorised")
        assert (await http.get(url)).status_code == 405
    assert await office.attempts() == ["unknown"]
    assert await office.evidence() == []
    counted = {"not_authentic": 3, "malformed": 2, "too_large": 1}
    assert await office.counts("resend") == counted


async def test_postmark_without_its_credential_is_turned_away(postmark_office: Office) -> None:
    office = postmark_office
    mail = await office.in_doubt("postmark")
    url = f"{office.bot.url}/webhooks/postmark"
    for wrong in ({"password": "s3cr3"}, {"user": "Signoff"}):
        given = {**CREDENTIAL, **wrong}
        assert await office.postmark.send_webhook(url, mail, "Delivery", **given) == 401
    assert await office.attempts() == ["unknown"]
    assert await office.counts("postmark") == {"not_authentic": 2}


@pytest.mark.parametrize("off", [timedelta(minutes=6), timedelta(minutes=-6)])
async def test_an_old_timestamp_is_not_believed_though_its_signature_holds(
    office: Office, off: timedelta
) -> None:
    mail = await office.in_doubt()
    await office.h.start_bot(clock=ShiftedClock(offset=off))
    # The doors are shared by the two bots, and so are their counts.
    assert await office.say(mail, "email.delivered") == 401
    assert await office.counts("resend") == {"stale": 1}
    assert await office.attempts() == ["unknown"]


async def test_the_other_providers_word_about_an_effect_is_kept_and_concludes_nothing(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    reference = await office.h.value("SELECT id FROM effects WHERE kind = 'email.send'")
    theirs = replace(mail, fields={**mail.fields, "Metadata": {"signoff_effect": reference.hex}})
    url = f"{office.bot.url}/webhooks/postmark"
    assert await office.postmark.send_webhook(url, theirs, "Delivery", **CREDENTIAL) == 200
    assert await office.attempts() == ["unknown"]
    assert await office.postmark.send_webhook(url, theirs, "Bounce", **CREDENTIAL) == 200
    assert await office.h.notes("accepted_then_bounced") == []
    assert await office.delivery_notes() == []
    assert await office.evidence() == [("delivered", False), ("bounced", False)]


async def test_mails_that_are_none_of_ours_are_acknowledged_and_not_kept(office: Office) -> None:
    mail = await office.send_by("resend")
    for tags in ([], [{"name": "signoff_effect", "value": "not-an-id"}]):
        theirs = replace(mail, fields={**mail.fields, "tags": tags})
        assert await office.say(theirs, "email.bounced") == 200
    assert await office.say(mail, "email.opened") == 200
    assert await office.evidence() == []
    assert await office.counts("resend") == {"not_ours": 3}


async def test_what_names_an_unknown_effect_is_kept_and_matched_when_it_is_known(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    unknown = [{"name": "signoff_effect", "value": uuid.uuid4().hex}]
    early = replace(mail, fields={**mail.fields, "tags": unknown})
    assert await office.say(early, "email.delivered", event_id="msg_1") == 200
    assert await office.evidence() == [("delivered", False)]
    # A minute later it is looked at, and again in vain; then its effect is there.
    await office.h.move_time(timedelta(minutes=2))
    await match_late_evidence(office.h.engine)
    assert await office.evidence() == [("delivered", False)]
    async with office.h.database.transaction() as conn:
        await conn.exec_driver_sql(
            "UPDATE late_evidence SET reference = e.id FROM effects e WHERE e.kind = 'email.send'"
        )
    await match_late_evidence(office.h.engine)
    assert await office.attempts() == ["unknown"], "it is not due yet"
    await office.h.move_time(timedelta(minutes=3))
    await match_late_evidence(office.h.engine)
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert await office.evidence() == [("delivered", True)]


async def test_what_nobody_could_match_is_forgotten_and_what_was_matched_is_not(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    unknown = [{"name": "signoff_effect", "value": uuid.uuid4().hex}]
    assert (
        await office.say(replace(mail, fields={**mail.fields, "tags": unknown}), "email.sent")
        == 200
    )
    assert await office.say(mail, "email.bounced") == 200
    await office.h.move_time(timedelta(days=44))
    await match_late_evidence(office.h.engine)
    assert await office.evidence() == [("accepted", False), ("bounced", True)]
    await office.h.move_time(timedelta(days=2))
    await match_late_evidence(office.h.engine)
    assert await office.evidence() == [("bounced", True)]


async def test_while_the_database_is_away_the_provider_is_told_to_come_again(
    office: Office,
) -> None:
    mail = await office.in_doubt()
    async with tcp_proxy(office.h.database_url) as proxy:
        bot = await office.h.start_bot(database_url=proxy.url)
        proxy.refuse()
        assert await office.say(mail, "email.delivered", event_id="msg_1") == 503
        assert await office.attempts() == ["unknown"]
        proxy.pass_on()
        assert await office.say(mail, "email.delivered", event_id="msg_1") == 200
        assert await office.counts("resend") == {"unavailable": 1, "accepted": 1}
        await bot.stop()
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]


@pytest.mark.parametrize("done", [True, False])
async def test_a_commit_without_an_answer_is_not_acknowledged_and_loses_nothing(
    office: Office, done: bool
) -> None:
    mail = await office.in_doubt()
    async with tcp_proxy(office.h.database_url) as proxy:
        bot = await office.h.start_bot(database_url=proxy.url)
        await bot.stop_loops()
        if done:
            proxy.lose_commit_answers()
        else:
            proxy.stop_commits()
        assert await office.say(mail, "email.bounced", event_id="msg_1") == 503
        assert await office.attempts() == ["applied" if done else "unknown"]
        assert await office.say(mail, "email.bounced", event_id="msg_1") == 200
        await bot.stop()
    assert await office.h.operations() == [OperationStatus.SUCCEEDED]
    assert len(await office.h.notes("accepted_then_bounced")) == 1


async def test_without_its_secret_a_provider_has_no_door(database_url: str) -> None:
    async with Harness(database_url, worker=False) as h, aiohttp.ClientSession() as http:
        for provider in ("resend", "postmark"):
            async with http.post(f"{h.bots[0].url}/webhooks/{provider}") as response:
                assert response.status == 404

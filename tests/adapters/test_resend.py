from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from aiohttp import web
from hypothesis import given, settings
from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.provider_listener import Listener
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.resend import ResendMail
from executor.domain.effect import Capability, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.errors import InvalidContent
from executor.engine.ports import MailPort
from tests.adapters.json_mails import (
    CONTENT,
    CONTENTS,
    REFERENCE,
    box,
    named,
    outgoing,
    read_boxes,
)

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)
API_KEY = "re_s3cr3t_k3y"


def adapter_for(double: ResendDouble, *, bound: float = 20.0, key: str = API_KEY) -> ResendMail:
    return ResendMail(SecretStr(key), api_url=double.url, longest_request_seconds=bound)


def double() -> ResendDouble:
    return ResendDouble(api_key=API_KEY)


@dataclass(frozen=True)
class Case:
    name: str
    fault: PlannedFault
    kind: OutcomeKind
    retryable: bool = False
    accepted: int = 0
    phase: str = "answer"
    status: int | None = None
    code: str | None = None


def error_cases() -> list[Case]:
    cases = []
    for after in (False, True):
        for status in (408, 425, 499, 500, 502, 503, 504, 302, 304, 418):
            cases.append(
                Case(
                    f"{status} {'after' if after else 'before'}",
                    PlannedFault(Fault.ERROR, after, status=status),
                    UNKNOWN,
                    accepted=int(after),
                    status=status,
                )
            )
    for status in (400, 401, 403, 404, 405, 413, 415, 422):
        cases.append(Case(f"{status}", PlannedFault(Fault.ERROR, status=status), NOT_APPLIED))
    for status in (400, 401, 403, 404, 409, 422, 429, 502, 504, 200):
        cases.append(
            Case(
                f"page {status}",
                PlannedFault(Fault.PROXY_PAGE, status=status),
                UNKNOWN,
                status=status,
            )
        )
    return cases


CASES = [
    Case("refused", PlannedFault(Fault.REFUSE), NOT_APPLIED, True, phase="connect"),
    Case("dropped before", PlannedFault(Fault.DROP), UNKNOWN, phase="response"),
    Case("dropped after", PlannedFault(Fault.DROP, True), UNKNOWN, accepted=1, phase="response"),
    Case("cut body", PlannedFault(Fault.CUT_BODY), APPLIED, accepted=1, status=200),
    Case("twice", PlannedFault(Fault.DELIVER_TWICE), APPLIED, accepted=1, status=200),
    Case(
        "429",
        PlannedFault(Fault.RATE_LIMIT),
        NOT_APPLIED,
        True,
        status=429,
        code="rate_limit_exceeded",
    ),
    Case(
        "page 504 after",
        PlannedFault(Fault.PROXY_PAGE, True, status=504),
        UNKNOWN,
        accepted=1,
        status=504,
    ),
    *error_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_ending_proves_what_the_facts_say(case: Case) -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        resend.fail(case.fault)
        outcome = await adapter.send(outgoing(adapter))
        assert (outcome.kind, outcome.retryable) == (case.kind, case.retryable), outcome
        assert outcome.evidence["phase"] == case.phase
        assert outcome.evidence["provider"] == adapter.provider
        if case.status is not None:
            assert outcome.evidence["status"] == case.status
        if case.code is not None:
            assert outcome.evidence["code"] == case.code
        assert resend.accepted == case.accepted
        assert resend.faults.calls == (0 if case.fault.fault is Fault.REFUSE else 1)
        assert "None" not in str(outcome.evidence)


@pytest.mark.parametrize("after", [False, True])
async def test_a_silent_server_is_left_at_the_time_bound(after: bool) -> None:
    async with double() as resend:
        adapter = adapter_for(resend, bound=0.3)
        resend.fail(PlannedFault(Fault.HANG, after))
        outcome = await adapter.send(outgoing(adapter))
        assert outcome == Outcome(
            UNKNOWN,
            {
                "provider": adapter.provider,
                "phase": "response",
                "problem": "no answer within 0.3 s",
            },
        )
        assert resend.accepted == int(after)


async def answer_to_a_send(status: int, body: bytes) -> Outcome:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, content_type="application/json")

    app = web.Application()
    app.router.add_post("/emails", handle)
    listener = Listener(app)
    await listener.listen()
    try:
        adapter = ResendMail(SecretStr(API_KEY), api_url=listener.url)
        return await adapter.send(outgoing(adapter))
    finally:
        await listener.stop()


def error_body(status: object, name: object = "validation_error", **more: object) -> bytes:
    return json.dumps({"statusCode": status, "name": name, "message": "no", **more}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (422, error_body(422), NOT_APPLIED),
        (422, error_body(422, later="field"), NOT_APPLIED),
        (422, error_body(400), UNKNOWN),
        (422, error_body("422"), UNKNOWN),
        (422, error_body(422.0), UNKNOWN),
        (422, error_body(None), UNKNOWN),
        (422, error_body(422, "Validation Error"), UNKNOWN),
        (422, error_body(422, None), UNKNOWN),
        (422, error_body(422, message=None), UNKNOWN),
        (422, b'{"message": "Unprocessable"}', UNKNOWN),
        (422, b"[]", UNKNOWN),
        (422, b"", UNKNOWN),
        (422, b"[" * 200_000, UNKNOWN),
        (422, b"\xff\xfe{", UNKNOWN),
        (429, b'{"error": "slow down"}', UNKNOWN),
        (409, error_body(409, "some_other_conflict"), UNKNOWN),
        (409, error_body(409, "validation_error"), UNKNOWN),
        (422, error_body(422, "invalid_idempotent_request"), NOT_APPLIED),
        (200, b"", APPLIED),
        (200, b'{"id": 7}', APPLIED),
        (202, b'{"id": "<script>"}', APPLIED),
        (200, b"[" * 200_000, APPLIED),
    ],
)
async def test_only_resends_own_words_are_a_refusal(
    status: int, body: bytes, kind: OutcomeKind
) -> None:
    outcome = await answer_to_a_send(status, body)
    assert (outcome.kind, outcome.retryable) == (kind, False), outcome
    assert "id" not in outcome.evidence
    assert "stop" not in outcome.evidence


async def test_an_unknown_is_cleared_by_the_same_key_and_the_same_bytes() -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        mail = outgoing(adapter)
        resend.fail(PlannedFault(Fault.DROP, True), call=1)
        assert (await adapter.send(mail)).kind is UNKNOWN
        outcome = await adapter.send(mail)
        assert (outcome.kind, outcome.evidence["id"]) == (APPLIED, resend.mails[0].provider_id)
        assert (resend.accepted, resend.faults.calls) == (1, 2)


async def test_a_key_in_flight_is_no_conclusion_and_is_asked_again_later() -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        mail = outgoing(adapter)
        resend.fail(PlannedFault(Fault.HANG), call=1)
        first = asyncio.create_task(adapter.send(mail))
        await resend.faults.wait_for_hang()
        second = await adapter.send(mail)
        assert second.kind is UNKNOWN
        assert second.evidence["code"] == "concurrent_idempotent_requests"
        assert second.retry_after == timedelta(seconds=5)
        assert "stop" not in second.evidence
        resend.faults.release()
        assert (await first).kind is APPLIED
        assert (await adapter.send(mail)).kind is APPLIED
        assert resend.accepted == 1


async def test_a_mail_accepted_after_we_gave_up_is_not_sent_twice() -> None:
    async with double() as resend:
        adapter = adapter_for(resend, bound=0.3)
        mail = outgoing(adapter)
        resend.fail(PlannedFault(Fault.HANG), call=1)
        assert (await adapter.send(mail)).kind is UNKNOWN
        resend.faults.release()
        await resend.accepted_mails.wait_for(lambda mails: mails.accepted == 1)
        assert (await adapter.send(mail)).kind is APPLIED
        assert resend.accepted == 1


async def test_other_bytes_under_our_key_stop_everything() -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        mail = outgoing(adapter)
        await adapter.send(mail)
        other = replace(mail, payload=adapter.freeze(replace(CONTENT, subject="Other"), REFERENCE))
        outcome = await adapter.send(other)
        assert outcome.kind is UNKNOWN
        assert (outcome.evidence["code"], outcome.evidence["stop"]) == (
            "invalid_idempotent_request",
            True,
        )
        assert (outcome.retryable, outcome.retry_after) == (False, None)
        assert resend.accepted == 1


async def test_after_its_window_a_key_protects_nothing() -> None:
    clock = VirtualClock()
    async with ResendDouble(api_key=API_KEY, clock=clock) as resend:
        adapter = adapter_for(resend)
        mail = outgoing(adapter)
        await adapter.send(mail)
        clock.advance(24 * 3_600 - 1)
        await adapter.send(mail)
        assert resend.accepted == 1
        clock.advance(2)
        await adapter.send(mail)
        assert resend.accepted == 2


@pytest.mark.parametrize(
    ("given", "read"),
    [(None, None), (7, timedelta(seconds=7)), (9_999_999, timedelta(days=1)), (0, timedelta(0))],
)
async def test_a_wait_that_was_asked_for_is_handed_on(
    given: int | None, read: timedelta | None
) -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        resend.fail(PlannedFault(Fault.RATE_LIMIT, retry_after=given))
        assert (await adapter.send(outgoing(adapter))).retry_after == read


async def test_the_frozen_body_arrives_octet_for_octet_with_key_and_tag() -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        mail = outgoing(adapter)
        outcome = await adapter.send(mail)
        arrived = resend.mails[0]
        assert arrived.raw == mail.payload
        assert arrived.key == mail.idempotency_key
        assert arrived.fields["tags"] == [{"name": "signoff_effect", "value": REFERENCE}]
        assert set(arrived.recipients) == set(CONTENT.recipients())
        assert outcome == Outcome(
            APPLIED,
            {
                "provider": adapter.provider,
                "phase": "answer",
                "status": 200,
                "id": arrived.provider_id,
            },
        )


@settings(max_examples=100, deadline=None)
@given(CONTENTS)
def test_whatever_is_frozen_reads_back_as_it_was_written(content: EmailContent) -> None:
    adapter = ResendMail(SecretStr(API_KEY), api_url="http://127.0.0.1:9")
    frozen = adapter.freeze(content, REFERENCE)
    assert adapter.freeze(content, REFERENCE) == frozen
    fields = json.loads(frozen)
    assert read_boxes([fields["from"]]) == named([content.sender])
    for name, boxes in (("to", content.to), ("cc", content.cc), ("bcc", content.bcc)):
        values = fields.get(name, [])
        assert [found for value in values for found in read_boxes([value])] == named(boxes)
    assert read_boxes(fields.get("reply_to", [])) == (
        named([content.reply_to]) if content.reply_to else []
    )
    assert (fields["subject"], fields["text"], fields.get("html")) == (
        content.subject,
        content.text,
        content.html,
    )
    assert fields["headers"] == {"Message-ID": content.message_id, **dict(content.headers)}


async def test_the_double_takes_what_the_adapter_freezes_of_awkward_content() -> None:
    content = replace(
        CONTENT,
        sender=box('"Ädmin \\"A\\", B" <help@acme.example>'),
        to=(box("anna@bücher.example"), box('"O.K." <ok@x.example>')),
        html=None,
        reply_to=None,
        cc=(),
        bcc=(),
    )
    async with double() as resend:
        adapter = adapter_for(resend)
        assert (await adapter.send(outgoing(adapter, content))).kind is APPLIED
        assert resend.mails[0].recipients == ("anna@xn--bcher-kva.example", "ok@x.example")


@pytest.mark.parametrize(
    "content",
    [
        replace(CONTENT, subject="two\nlines"),
        replace(CONTENT, to=()),
        replace(CONTENT, text=""),
        replace(CONTENT, headers=(("Bcc", "eve@x.example"),)),
        replace(CONTENT, headers=(("X-A", "1"), ("x-a", "2"))),
        replace(CONTENT, to=(box("用户@x.example"),)),
        replace(CONTENT, to=tuple(box(f"p{n}@x.example") for n in range(51))),
    ],
)
def test_what_could_not_arrive_as_written_is_refused_before_approval(
    content: EmailContent,
) -> None:
    adapter = ResendMail(SecretStr(API_KEY))
    with pytest.raises(InvalidContent):
        adapter.freeze(content, REFERENCE)


async def test_a_wrong_key_is_said_and_is_in_nothing_that_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    outcomes = []
    async with double() as resend:
        adapter = adapter_for(resend, key="re_other_s3cr3t")
        outcomes.append(await adapter.send(outgoing(adapter)))
        assert (outcomes[0].kind, outcomes[0].evidence["code"]) == (NOT_APPLIED, "invalid_api_key")
        for fault in (Fault.DROP, Fault.ERROR, Fault.CUT_BODY, Fault.REFUSE):
            resend.fail(PlannedFault(fault, True))
            outcomes.append(await adapter.send(outgoing(adapter)))
        assert resend.accepted == 0
    kept = f"{outcomes!r} {adapter!r} {vars(adapter)!r} {caplog.text}"
    assert "s3cr3t" not in kept
    assert "we closed it" not in kept
    assert "cust.example" not in kept


@pytest.mark.parametrize("key", ["", "a b", "k\n", "é", "k" * 257])
async def test_a_key_that_resend_would_not_take_never_leaves(key: str) -> None:
    async with double() as resend:
        adapter = adapter_for(resend)
        outcome = await adapter.send(outgoing(adapter, key=key))
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert resend.faults.calls == 0


@pytest.mark.parametrize(
    "kwargs",
    [
        {"api_url": "api.resend.com"},
        {"api_url": "https://user:s3cr3t@api.resend.com"},
        {"api_url": "https://api.resend.com?x=s3cr3t"},
        {"api_url": "https://api.resend.com:port"},
        {"api_key": "s3cr3t with spaces"},
        {"api_key": ""},
    ],
)
def test_settings_that_cannot_work_are_refused_without_repeating_them(
    kwargs: dict[str, str],
) -> None:
    with pytest.raises(ValueError, match="RESEND_API_") as refusal:
        ResendMail(
            SecretStr(kwargs.get("api_key", API_KEY)),
            api_url=kwargs.get("api_url", "https://api.resend.com"),
        )
    assert "s3cr3t" not in str(refusal.value)


def test_it_declares_what_it_lets_us_conclude() -> None:
    adapter: MailPort = ResendMail(SecretStr(API_KEY))
    assert adapter.capability is Capability.KEYED
    assert adapter.declaration.key_window == timedelta(hours=24)
    assert adapter.provider == "resend:api.resend.com"
    assert ResendMail(SecretStr(API_KEY), account="acme").provider == "resend:acme"

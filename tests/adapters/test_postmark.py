from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from hypothesis import given, settings
from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import TEST_TOKEN, PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.provider_listener import Listener
from executor.adapters.mail.postmark import PostmarkMail
from executor.domain.effect import Capability, Outcome, OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.errors import InvalidContent
from executor.engine.ports import LookupKind, SearchableMail
from executor.engine.promises import promise
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
TOKEN = "s3cr3t-server-token"
EARLIER = datetime.now(UTC) - timedelta(minutes=5)


def adapter_for(double: PostmarkDouble, *, bound: float = 20.0, token: str = TOKEN) -> PostmarkMail:
    return PostmarkMail(SecretStr(token), api_url=double.url, longest_request_seconds=bound)


def double() -> PostmarkDouble:
    return PostmarkDouble(server_token=TOKEN)


@dataclass(frozen=True)
class Case:
    name: str
    fault: PlannedFault
    kind: OutcomeKind
    retryable: bool = False
    accepted: int = 0
    phase: str = "answer"
    code: int | None = None


def error_cases() -> list[Case]:
    cases = []
    for after in (False, True):
        for status in (408, 409, 425, 499, 500, 502, 503, 504, 302, 304):
            name = f"{status} {'after' if after else 'before'}"
            fault = PlannedFault(Fault.ERROR, after, status=status)
            cases.append(Case(name, fault, UNKNOWN, accepted=int(after)))
    for status, code in ((400, 300), (401, 10), (403, 300), (413, 300), (422, 300)):
        cases.append(
            Case(f"{status}", PlannedFault(Fault.ERROR, status=status), NOT_APPLIED, code=code)
        )
    # A refusal that names success contradicts itself.
    cases.append(Case("404", PlannedFault(Fault.ERROR, status=404), UNKNOWN))
    for status in (400, 401, 403, 404, 422, 429, 502, 504, 200):
        cases.append(Case(f"page {status}", PlannedFault(Fault.PROXY_PAGE, status=status), UNKNOWN))
    return cases


CASES = [
    Case("refused", PlannedFault(Fault.REFUSE), NOT_APPLIED, True, phase="connect"),
    Case("dropped before", PlannedFault(Fault.DROP), UNKNOWN, phase="response"),
    Case("dropped after", PlannedFault(Fault.DROP, True), UNKNOWN, accepted=1, phase="response"),
    Case("cut body", PlannedFault(Fault.CUT_BODY), APPLIED, accepted=1),
    Case("twice", PlannedFault(Fault.DELIVER_TWICE), APPLIED, accepted=1),
    Case("429", PlannedFault(Fault.RATE_LIMIT), NOT_APPLIED, True, code=429),
    *error_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_ending_proves_what_the_facts_say(case: Case) -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark)
        postmark.fail(case.fault)
        outcome = await adapter.send(outgoing(adapter))
        assert (outcome.kind, outcome.retryable) == (case.kind, case.retryable), outcome
        assert outcome.evidence["phase"] == case.phase
        assert outcome.evidence["provider"] == adapter.provider
        if case.code is not None:
            assert outcome.evidence["code"] == case.code
        assert postmark.accepted == case.accepted
        assert postmark.faults.calls == (0 if case.fault.fault is Fault.REFUSE else 1)
        assert "None" not in str(outcome.evidence)


@pytest.mark.parametrize("after", [False, True])
async def test_a_silent_server_is_left_at_the_time_bound(after: bool) -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark, bound=0.3)
        postmark.fail(PlannedFault(Fault.HANG, after))
        outcome = await adapter.send(outgoing(adapter))
        assert (outcome.kind, outcome.evidence["problem"]) == (UNKNOWN, "no answer within 0.3 s")
        assert postmark.accepted == int(after)


async def answer_to_a_send(status: int, body: object) -> Outcome:
    async def handle(request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_post("/email", handle)
    listener = Listener(app)
    await listener.listen()
    try:
        adapter = PostmarkMail(SecretStr(TOKEN), api_url=listener.url)
        return await adapter.send(outgoing(adapter))
    finally:
        await listener.stop()


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (200, {"ErrorCode": 406, "Message": "inactive"}, NOT_APPLIED, False),
        (422, {"ErrorCode": 405, "Message": "not allowed"}, NOT_APPLIED, False),
        (422, {"ErrorCode": 500, "Message": "signature query"}, NOT_APPLIED, False),
        (422, {"ErrorCode": 100, "Message": "maintenance"}, NOT_APPLIED, True),
        (422, {"ErrorCode": 429, "Message": "slow"}, NOT_APPLIED, True),
        (503, {"ErrorCode": 100, "Message": "maintenance"}, UNKNOWN, False),
        (422, {"ErrorCode": 0, "Message": "OK"}, UNKNOWN, False),
        (422, {"ErrorCode": "300", "Message": "no number"}, UNKNOWN, False),
        (422, {"ErrorCode": True, "Message": "no number"}, UNKNOWN, False),
        (422, {"ErrorCode": 300}, UNKNOWN, False),
        (422, {"message": "Unprocessable"}, UNKNOWN, False),
        (422, [], UNKNOWN, False),
        (200, [], APPLIED, False),
        (200, {"ErrorCode": 0, "Message": "OK", "MessageID": {"x": 1}}, APPLIED, False),
    ],
)
async def test_the_code_in_the_body_decides_and_only_in_postmarks_shape(
    status: int, body: object, kind: OutcomeKind, retryable: bool
) -> None:
    outcome = await answer_to_a_send(status, body)
    assert (outcome.kind, outcome.retryable) == (kind, retryable), outcome


async def test_whom_an_acceptance_leaves_out_is_named() -> None:
    inactive = frozenset({"sam@cust.example"})
    async with PostmarkDouble(server_token=TOKEN, inactive=inactive) as postmark:
        adapter = adapter_for(postmark)
        outcome = await adapter.send(outgoing(adapter))
        assert outcome.kind is APPLIED
        assert outcome.evidence["refused"] == ["sam@cust.example"]
        assert "inactive" in str(outcome.evidence["problem"])
        assert postmark.accepted_mails.by_recipient["sam@cust.example"] == 0


async def test_nobody_left_to_deliver_to_is_a_refusal() -> None:
    everybody = frozenset(CONTENT.recipients())
    async with PostmarkDouble(server_token=TOKEN, inactive=everybody) as postmark:
        adapter = adapter_for(postmark)
        outcome = await adapter.send(outgoing(adapter))
        assert (outcome.kind, outcome.evidence["code"]) == (NOT_APPLIED, 406)


async def test_the_frozen_body_arrives_octet_for_octet_untracked_and_searchable() -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark)
        mail = outgoing(adapter)
        outcome = await adapter.send(mail)
        arrived = postmark.mails[0]
        assert arrived.raw == mail.payload
        assert arrived.fields["Metadata"] == {"signoff_effect": REFERENCE}
        assert (arrived.fields["TrackOpens"], arrived.fields["TrackLinks"]) == (False, "None")
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
    adapter = PostmarkMail(SecretStr(TOKEN), api_url="http://127.0.0.1:9")
    frozen = adapter.freeze(content, REFERENCE)
    assert adapter.freeze(content, REFERENCE) == frozen
    fields = json.loads(frozen)
    for name, boxes in (
        ("From", (content.sender,)),
        ("To", content.to),
        ("Cc", content.cc),
        ("Bcc", content.bcc),
        ("ReplyTo", (content.reply_to,) if content.reply_to else ()),
    ):
        assert read_boxes([fields[name]] if name in fields else []) == named(boxes)
    assert (fields["Subject"], fields["TextBody"], fields.get("HtmlBody")) == (
        content.subject,
        content.text,
        content.html,
    )
    headers = [(header["Name"], header["Value"]) for header in fields["Headers"]]
    assert headers == [("Message-ID", content.message_id), *content.headers]


@pytest.mark.parametrize(
    "content",
    [
        replace(CONTENT, subject="two\nlines"),
        replace(CONTENT, to=()),
        replace(CONTENT, to=(box("用户@x.example"),)),
        replace(CONTENT, to=tuple(box(f"p{n}@x.example") for n in range(51))),
    ],
)
def test_what_could_not_arrive_as_written_is_refused_before_approval(
    content: EmailContent,
) -> None:
    with pytest.raises(InvalidContent):
        PostmarkMail(SecretStr(TOKEN)).freeze(content, REFERENCE)


async def test_a_search_finds_an_accepted_mail_once_the_lag_is_over() -> None:
    clock = VirtualClock()
    async with PostmarkDouble(server_token=TOKEN, search_lag_seconds=120, clock=clock) as postmark:
        adapter = adapter_for(postmark)
        postmark.fail(PlannedFault(Fault.DROP, True), call=1)
        assert (await adapter.send(outgoing(adapter))).kind is UNKNOWN
        assert (await adapter.look_up(REFERENCE, EARLIER)).kind is LookupKind.NOT_FOUND
        clock.advance(121)
        found = await adapter.look_up(REFERENCE, EARLIER)
        assert found.kind is LookupKind.FOUND
        assert found.evidence["ids"] == [postmark.mails[0].provider_id]
        assert (await adapter.look_up("f" * 32, EARLIER)).kind is LookupKind.NOT_FOUND
        assert postmark.search_faults.calls == 3
        clock.advance(46 * 86_400)
        assert (await adapter.look_up(REFERENCE, EARLIER)).kind is LookupKind.NOT_FOUND


async def test_a_mail_in_another_stream_is_searched_in_that_stream() -> None:
    async with double() as postmark:
        adapter = PostmarkMail(SecretStr(TOKEN), api_url=postmark.url, message_stream="closures")
        await adapter.send(outgoing(adapter))
        assert (await adapter.look_up(REFERENCE, EARLIER)).kind is LookupKind.FOUND
        assert (await adapter_for(postmark).look_up(REFERENCE, EARLIER)).kind is (
            LookupKind.NOT_FOUND
        )


async def test_a_search_says_when_a_mail_left_twice() -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark)
        await adapter.send(outgoing(adapter))
        await adapter.send(outgoing(adapter))
        assert (await adapter.look_up(REFERENCE, EARLIER)).evidence["found"] == 2


@pytest.mark.parametrize(
    "fault",
    [
        PlannedFault(Fault.DROP),
        PlannedFault(Fault.ERROR, status=500),
        PlannedFault(Fault.ERROR, status=401),
        PlannedFault(Fault.PROXY_PAGE, status=200),
        PlannedFault(Fault.PROXY_PAGE, status=502),
        PlannedFault(Fault.CUT_BODY),
        PlannedFault(Fault.RATE_LIMIT, retry_after=9),
    ],
    ids=lambda fault: f"{fault.fault} {fault.status}",
)
async def test_a_search_that_did_not_work_is_no_answer(fault: PlannedFault) -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark)
        await adapter.send(outgoing(adapter))
        postmark.search_faults.plan(fault)
        lookup = await adapter.look_up(REFERENCE, EARLIER)
        assert lookup.kind is LookupKind.FAILED
        wait = fault.retry_after
        assert lookup.retry_after == (None if wait is None else timedelta(seconds=wait))
        assert postmark.search_faults.calls == 1


async def test_a_search_at_nobody_is_no_answer() -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark)
        postmark.fail(PlannedFault(Fault.REFUSE))
        lookup = await adapter.look_up(REFERENCE, EARLIER)
        assert (lookup.kind, lookup.evidence["phase"]) == (LookupKind.FAILED, "connect")


async def test_a_search_that_ignores_what_was_asked_for_is_not_believed() -> None:
    async def handle(request: web.Request) -> web.Response:
        other = {"MessageID": "1", "Metadata": {"signoff_effect": "another"}}
        return web.json_response({"TotalCount": 1, "Messages": [other]})

    app = web.Application()
    app.router.add_get("/messages/outbound", handle)
    listener = Listener(app)
    await listener.listen()
    try:
        adapter = PostmarkMail(SecretStr(TOKEN), api_url=listener.url)
        assert (await adapter.look_up(REFERENCE, EARLIER)).kind is LookupKind.FAILED
    finally:
        await listener.stop()


async def test_a_wrong_token_is_said_and_is_in_nothing_that_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    kept: list[object] = []
    async with double() as postmark:
        adapter = adapter_for(postmark, token="s3cr3t-other")
        outcome = await adapter.send(outgoing(adapter))
        assert (outcome.kind, outcome.evidence["code"]) == (NOT_APPLIED, 10)
        kept.append(outcome)
        for fault in (Fault.DROP, Fault.ERROR, Fault.CUT_BODY, Fault.REFUSE):
            postmark.fail(PlannedFault(fault, True))
            kept.append(await adapter.send(outgoing(adapter)))
            kept.append(await adapter.look_up(REFERENCE, EARLIER))
    text = f"{kept!r} {adapter!r} {vars(adapter)!r} {caplog.text}"
    assert "s3cr3t" not in text
    assert "we closed it" not in text
    assert "cust.example" not in text


async def test_the_test_token_promises_nothing_and_sends_nothing() -> None:
    async with double() as postmark:
        adapter = adapter_for(postmark, token=TEST_TOKEN)
        await adapter.send(outgoing(adapter))
        assert "never sent" in promise(adapter.declaration)
        assert postmark.accepted == 0


def test_it_declares_what_it_lets_us_conclude() -> None:
    adapter: SearchableMail = PostmarkMail(SecretStr(TOKEN))
    assert adapter.capability is Capability.LOOKUP
    assert adapter.declaration.lookup_lag == timedelta(minutes=5)
    assert adapter.provider == "postmark:api.postmarkapp.com"

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_listener import Listener
from bot.sandbox.resend_double import WEBHOOK_SECRET, ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.postmark_webhook import WebhookCredential, read_postmark_webhook
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.resend_webhook import read_resend_webhook, signing_key
from executor.domain.delivery_event import (
    LONGEST_WEBHOOK,
    DeliveryEvent,
    DeliveryKind,
    RefusalReason,
    WebhookRefused,
)
from executor.domain.payloads import canonical
from tests.adapters.json_mails import REFERENCE, outgoing

NOW = 1_796_000_000.0
KEY = signing_key(SecretStr(WEBHOOK_SECRET))
CREDENTIAL = WebhookCredential("signoff", SecretStr("s3cr3t"))


def signed(
    body: bytes, *, key: bytes = KEY, at: float = NOW, event_id: str = "msg_1"
) -> dict[str, str]:
    mac = hmac.new(key, f"{event_id}.{int(at)}.".encode() + body, hashlib.sha256).digest()
    return {
        "Svix-Id": event_id,
        "Svix-Timestamp": str(int(at)),
        "Svix-Signature": "v1," + base64.b64encode(mac).decode(),
    }


def authorized(user: str = "signoff", password: str = "s3cr3t") -> dict[str, str]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def resend_event(kind: str = "email.delivered", **data: object) -> bytes:
    document = {
        "type": kind,
        "created_at": "2026-12-01T10:00:00.126Z",
        "data": {
            "email_id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794",
            "to": ["pat@cust.example"],
            "tags": {"signoff_effect": REFERENCE},
            **data,
        },
    }
    return json.dumps(document).encode()


def postmark_event(record: str = "Delivery", **more: object) -> bytes:
    document = {
        "RecordType": record,
        "MessageID": "00000000-0000-0000-0000-000000000001",
        "Metadata": {"signoff_effect": REFERENCE},
        "Recipient": "pat@cust.example",
        "DeliveredAt": "2026-12-01T10:00:00.1234567Z",
        "BouncedAt": "2026-12-01T05:00:00.1234567-05:00",
        "Email": "pat@cust.example",
        "Type": "HardBounce",
        **more,
    }
    return json.dumps(document).encode()


def refusal_of_resend(
    body: bytes, headers: Mapping[str, str], *, now: float = NOW
) -> RefusalReason:
    with pytest.raises(WebhookRefused) as refused:
        read_resend_webhook(body, headers, [KEY], now)
    return refused.value.reason


def refusal_of_postmark(body: bytes, headers: Mapping[str, str]) -> RefusalReason:
    with pytest.raises(WebhookRefused) as refused:
        read_postmark_webhook(body, headers, [CREDENTIAL])
    return refused.value.reason


def test_the_published_example_of_a_signature_verifies() -> None:
    key = signing_key(SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    headers = {
        "svix-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "svix-timestamp": "1614265330",
        "svix-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    body = b'{"test": 2432232314}'
    with pytest.raises(WebhookRefused) as refused:
        read_resend_webhook(body, headers, [key], 1614265330)
    # Authentic, and then not an event: the example's body has no type.
    assert refused.value.reason is RefusalReason.MALFORMED
    with pytest.raises(WebhookRefused) as refused:
        read_resend_webhook(body + b" ", headers, [key], 1614265330)
    assert refused.value.reason is RefusalReason.NOT_AUTHENTIC


def test_one_of_several_signatures_under_one_of_several_keys_is_enough() -> None:
    body, old = resend_event(), b"an older key"
    mine, other = signed(body, key=old), signed(body, key=b"nobody's")
    both = {**mine, "Svix-Signature": f"{other['Svix-Signature']} v2,xx {mine['Svix-Signature']}"}
    assert read_resend_webhook(body, both, [KEY, old], NOW) is not None
    with pytest.raises(WebhookRefused):
        read_resend_webhook(body, both, [KEY], NOW)
    with pytest.raises(WebhookRefused):
        read_resend_webhook(body, both, [], NOW)


@pytest.mark.parametrize("offset", [-300, 300])
def test_a_timestamp_is_believed_for_five_minutes_on_either_side(offset: int) -> None:
    body = resend_event()
    headers = signed(body, at=NOW + offset)
    assert read_resend_webhook(body, headers, [KEY], NOW) is not None
    step = 1 if offset > 0 else -1
    assert refusal_of_resend(body, signed(body, at=NOW + offset + step)) is RefusalReason.STALE


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("email.sent", DeliveryKind.ACCEPTED),
        ("email.scheduled", DeliveryKind.ACCEPTED),
        ("email.delivered", DeliveryKind.DELIVERED),
        ("email.delivery_delayed", DeliveryKind.DELAYED),
        ("email.bounced", DeliveryKind.BOUNCED),
        ("email.complained", DeliveryKind.COMPLAINED),
        ("email.failed", DeliveryKind.FAILED),
        ("email.suppressed", DeliveryKind.SUPPRESSED),
    ],
)
def test_resends_events_are_read(kind: str, expected: DeliveryKind) -> None:
    body = resend_event(kind, bounce={"type": "Permanent", "subType": "General", "message": "no"})
    assert read_resend_webhook(body, signed(body), [KEY], NOW) == DeliveryEvent(
        "msg_1",
        REFERENCE,
        "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794",
        expected,
        datetime(2026, 12, 1, 10, 0, 0, 126_000, UTC),
        {
            "provider": "resend",
            "event": kind,
            "event_id": "msg_1",
            "recipients": ["pat@cust.example"],
            "bounce": "Permanent General",
        },
    )


@pytest.mark.parametrize("kind", ["email.opened", "email.clicked", "contact.created", "later.ones"])
def test_resends_events_about_other_things_are_authentic_and_nothing(kind: str) -> None:
    body = json.dumps({"type": kind, "data": {"id": 1}}).encode()
    assert read_resend_webhook(body, signed(body), [KEY], NOW) is None
    assert refusal_of_resend(body, signed(body, key=b"x")) is RefusalReason.NOT_AUTHENTIC


def test_tags_are_read_in_both_of_resends_spellings_and_only_ours_is_a_reference() -> None:
    listed = resend_event(tags=[{"name": "signoff_effect", "value": REFERENCE}])
    event = read_resend_webhook(listed, signed(listed), [KEY], NOW)
    assert event is not None
    assert event.reference == REFERENCE
    for tags in ({}, {"other": REFERENCE}, {"signoff_effect": "x' OR 1=1"}):
        body = resend_event(tags=tags)
        event = read_resend_webhook(body, signed(body), [KEY], NOW)
        assert event is not None
        assert event.reference is None


MALFORMED = [
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"type": 1}',
    b'{"type": "email.sent", "RecordType": "Delivery"}',
    resend_event(email_id="x" * 200),
    resend_event(email_id=None),
    resend_event(email_id="a\n"),
    resend_event(tags="signoff_effect"),
    resend_event(tags={"signoff_effect": 5}),
    resend_event(to="pat@cust.example"),
    resend_event().replace(b"2026-12-01T10:00:00.126Z", b"2026-12-01T10:00:00"),
    resend_event().replace(b"2026-12-01T10:00:00.126Z", b"yesterday"),
]


@pytest.mark.parametrize("body", MALFORMED, ids=lambda body: repr(body[:30]))
def test_an_authentic_request_that_is_no_event_of_resend_is_refused(body: bytes) -> None:
    assert refusal_of_resend(body, signed(body)) is RefusalReason.MALFORMED


@pytest.mark.parametrize(
    "change",
    [
        {"Svix-Id": ""},
        {"Svix-Id": "msg 1"},
        {"Svix-Id": "\ud800"},
        {"Svix-Timestamp": "-1"},
        {"Svix-Timestamp": "1e9"},
        {"Svix-Timestamp": "\u0661\u0662"},
        {"Svix-Timestamp": "9" * 5_000},
        {"Svix-Signature": ""},
        {"Svix-Signature": "é"},
        {"Svix-Signature": "v1," * 50_000},
    ],
)
def test_headers_that_are_none_of_svix_are_refused(change: dict[str, str]) -> None:
    body = resend_event()
    assert refusal_of_resend(body, {**signed(body), **change}) is RefusalReason.MALFORMED


@pytest.mark.parametrize("signature", ["v1,", "v1", "v0,abc", "v1,=====", "v1a," + "A" * 44])
def test_a_signature_that_is_none_is_not_authentic(signature: str) -> None:
    body = resend_event()
    headers = {**signed(body), "Svix-Signature": signature}
    assert refusal_of_resend(body, headers) is RefusalReason.NOT_AUTHENTIC


def test_a_body_that_is_too_large_is_not_even_looked_at() -> None:
    body = b"x" * (LONGEST_WEBHOOK + 1)
    assert refusal_of_resend(body, signed(body)) is RefusalReason.TOO_LARGE
    assert refusal_of_postmark(body, authorized()) is RefusalReason.TOO_LARGE


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_no base64", "é"])
def test_a_secret_that_could_verify_nothing_is_refused_unrepeated(secret: str) -> None:
    with pytest.raises(ValueError, match="RESEND_WEBHOOK_SECRET") as refused:
        signing_key(SecretStr(secret))
    assert "no base64" not in str(refused.value)


@pytest.mark.parametrize(
    ("record", "bounce", "expected"),
    [
        ("Delivery", "", DeliveryKind.DELIVERED),
        ("Bounce", "HardBounce", DeliveryKind.BOUNCED),
        ("Bounce", "SoftBounce", DeliveryKind.BOUNCED),
        ("Bounce", "Transient", DeliveryKind.DELAYED),
        ("Bounce", "AutoResponder", None),
        ("SpamComplaint", "SpamComplaint", DeliveryKind.COMPLAINED),
        ("Open", "", None),
        ("SubscriptionChange", "", None),
    ],
)
def test_postmarks_events_are_read(record: str, bounce: str, expected: DeliveryKind | None) -> None:
    event = read_postmark_webhook(postmark_event(record, Type=bounce), authorized(), [CREDENTIAL])
    if expected is None:
        assert event is None
        return
    assert event is not None
    assert (event.kind, event.reference) == (expected, REFERENCE)
    assert event.event_id == hashlib.sha256(postmark_event(record, Type=bounce)).hexdigest()
    assert event.happened_at == datetime(2026, 12, 1, 10, 0, 0, 123_456, UTC)
    assert event.evidence["recipients"] == ["pat@cust.example"]
    assert event.evidence.get("bounce") == (bounce or None)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Basic"},
        {"Authorization": "Basic ???"},
        {"Authorization": "Basic \ud800é"},
        {"Authorization": "Bearer s3cr3t"},
        {"Authorization": "Basic " + "A" * 100_000},
        authorized(password="s3cr3"),
        authorized(password="s3cr3t "),
        authorized(user="Signoff"),
        authorized(user="", password=""),
    ],
)
def test_postmark_without_the_credential_is_not_authentic(headers: dict[str, str]) -> None:
    assert refusal_of_postmark(postmark_event(), headers) is RefusalReason.NOT_AUTHENTIC


def test_no_credential_fits_when_there_is_none() -> None:
    with pytest.raises(WebhookRefused):
        read_postmark_webhook(postmark_event(), authorized("", ""), [])
    second = replace(CREDENTIAL, password=SecretStr("next"))
    headers = authorized(password="next")
    assert read_postmark_webhook(postmark_event(), headers, [CREDENTIAL, second]) is not None
    assert "s3cr3t" not in repr(CREDENTIAL)


@pytest.mark.parametrize(
    "body",
    [
        *MALFORMED[:7],
        postmark_event(MessageID=5),
        postmark_event(MessageID="<script>"),
        postmark_event(Metadata=[1]),
        postmark_event(Metadata={"signoff_effect": None}),
        postmark_event(DeliveredAt="2026-12-01"),
        postmark_event("Bounce", BouncedAt=None),
    ],
    ids=lambda body: repr(body[:30]),
)
def test_an_authentic_request_that_is_no_event_of_postmark_is_refused(body: bytes) -> None:
    assert refusal_of_postmark(body, authorized()) is RefusalReason.MALFORMED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["type", "created_at", "data", "email_id", "tags", "to", "RecordType", "MessageID", "Metadata"]
)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        JSON.map(lambda value: json.dumps(value).encode()),
        st.fixed_dictionaries(
            {
                "type": st.just("email.bounced"),
                "RecordType": st.sampled_from(["Bounce", "Delivery"]),
            },
            optional={"created_at": JSON, "BouncedAt": JSON, "MessageID": JSON, "Metadata": JSON},
        ).flatmap(
            lambda known: st.dictionaries(FIELDS, JSON, max_size=4).map(
                lambda more: json.dumps({**known, "data": more}).encode()
            )
        ),
    ),
    st.dictionaries(
        st.sampled_from(["svix-id", "svix-timestamp", "svix-signature", "authorization"]),
        st.text(max_size=60),
    ),
)
def test_hostile_input_raises_nothing_but_a_refusal(body: bytes, headers: dict[str, str]) -> None:
    for given_headers in (headers, signed(body), authorized()):
        events: list[DeliveryEvent | None] = []
        with suppress(WebhookRefused):
            events.append(read_resend_webhook(body, given_headers, [KEY], NOW))
        with suppress(WebhookRefused):
            events.append(read_postmark_webhook(body, given_headers, [CREDENTIAL]))
        assert all(event is None or canonical(event.evidence) for event in events)


async def test_the_doubles_webhooks_arrive_and_name_the_effect() -> None:
    clock = VirtualClock(NOW)
    events: list[DeliveryEvent | None] = []

    async def hook(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            if request.path == "/resend":
                events.append(read_resend_webhook(body, request.headers, [KEY], clock.now()))
            else:
                events.append(read_postmark_webhook(body, request.headers, [CREDENTIAL]))
        except WebhookRefused:
            return web.Response(status=403)
        return web.Response()

    app = web.Application()
    app.router.add_post("/{provider}", hook)
    listener = Listener(app)
    async with ResendDouble(clock=clock) as resend, PostmarkDouble(clock=clock) as postmark:
        await listener.listen()
        try:
            keyed = ResendMail(SecretStr("re_sandbox"), api_url=resend.url)
            searched = PostmarkMail(SecretStr("sandbox-token"), api_url=postmark.url)
            await keyed.send(outgoing(keyed))
            await searched.send(outgoing(searched))
            one, two = resend.mails[0], postmark.mails[0]
            at_resend, at_postmark = f"{listener.url}/resend", f"{listener.url}/postmark"
            assert await resend.send_webhook(at_resend, one, "email.delivered") == 200
            wrong = "whsec_" + base64.b64encode(b"wrong").decode()
            assert await resend.send_webhook(at_resend, one, "email.sent", secret=wrong) == 403
            assert (
                await postmark.send_webhook(
                    at_postmark, two, "Bounce", user="signoff", password="s3cr3t"
                )
                == 200
            )
            assert (
                await postmark.send_webhook(
                    at_postmark, two, "Delivery", user="signoff", password="no"
                )
                == 403
            )
        finally:
            await listener.stop()
    assert [(e.kind, e.reference, e.provider_id) for e in events if e] == [
        (DeliveryKind.DELIVERED, REFERENCE, one.provider_id),
        (DeliveryKind.BOUNCED, REFERENCE, two.provider_id),
    ]

"""A verified body is parsed strictly; whatever Slack does not send is malformed, never an error."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.ingress.requests import (
    EventCallback,
    Interaction,
    Malformed,
    Other,
    UrlVerification,
    parse,
)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


def form(**fields: str) -> bytes:
    return urlencode(fields).encode()


def event(**changes: object) -> bytes:
    whole = {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": {"type": "x"}}
    return json.dumps({**whole, **changes}).encode()


CLICK = {
    "type": "block_actions",
    "user": {"id": "U0REVIEWER"},
    "container": {"channel_id": "C0APPROVALS", "message_ts": "1700000000.000100"},
    "actions": [{"action_id": "approve", "value": "x"}],
    "trigger_id": "13345224609.738474920.8088930838d88f008e0",
}
COMMAND = {
    "command": "/signoff",
    "team_id": "T0TEAM1",
    "user_id": "U0REVIEWER",
    "channel_id": "C0APPROVALS",
    "trigger_id": "13345224609.738474920.8088930838d88f008e0",
}


def click(**changes: object) -> bytes:
    return form(payload=json.dumps({**CLICK, **changes}))


def test_each_kind_is_read_as_itself() -> None:
    assert parse(click(), FORM, "UTF-8") == Interaction(body=CLICK)
    assert isinstance(parse(event(), JSON), EventCallback)
    challenge = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    assert parse(challenge, JSON) == UrlVerification(type="url_verification", challenge="abc")
    assert parse(b'{"type":"app_rate_limited"}', JSON) == Other()
    assert parse(form(ssl_check="1"), FORM) == Other()


def test_the_word_payload_in_a_command_or_its_channel_changes_nothing() -> None:
    body = form(**COMMAND, text="run inspect payload=42", channel_name="payload-alerts")
    parsed = parse(body, FORM)
    assert isinstance(parsed, Interaction)
    assert parsed.body["text"] == "run inspect payload=42"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", JSON),
        (b"{", JSON),
        (b"[]", JSON),
        (b"null", JSON),
        (b"[" * 200_000, JSON),
        (b"\xff\xfe", JSON),
        (b'{"type": 5}', JSON),
        (b"{}", JSON),
        (event(event_id=""), JSON),
        (event(event_id="E" * 129), JSON),
        (event(event=[]), JSON),
        (event(team_id=None), JSON),
        (b"", FORM),
        (b"payload=garbage", FORM),
        (b"payload=%5B%5D", FORM),
        (b"payload=%FF", FORM),
        (b"payload=%7B%7D&payload=%7B%7D", FORM),
        (b"payload=" + b"%5B" * 60_000, FORM),
        (b"text=hello", FORM),
        (b"\xff=1", FORM),
        (b"&".join(b"f%d=1" % n for n in range(100)), FORM),
        (event(), "text/plain"),
        (event(), "application/octet-stream"),
        (event(), ""),
        (event(event={"at": float("nan")}), JSON),
        (event().replace(b'"x"', b"1e999"), JSON),
        (click(user={"id": "U0\0"}), FORM),
        (click(container={"channel_id": "C0 <!here>"}), FORM),
        (click(container={"message_ts": "now"}), FORM),
        (click(actions=[]), FORM),
        (click(actions=CLICK["actions"] * 2), FORM),  # type: ignore[operator]
        (click(type="view_submission"), FORM),
        (click() + b"&command=%2Fsignoff", FORM),
        (form(command="/signoff", text="start it"), FORM),
    ],
)
def test_what_slack_does_not_send_is_malformed(body: bytes, content_type: str) -> None:
    with pytest.raises(Malformed):
        parse(body, content_type)


@pytest.mark.parametrize("charset", ["utf-16", "klingon", ""])
def test_only_the_charset_that_slack_writes_is_read(charset: str) -> None:
    with pytest.raises(Malformed):
        parse(click(), FORM, charset)


@given(st.binary(max_size=300), st.sampled_from([FORM, JSON, "x"]))
def test_no_bytes_raise_anything_else(body: bytes, content_type: str) -> None:
    try:
        parse(body, content_type)
    except Malformed:
        return

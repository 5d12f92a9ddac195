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


def test_each_kind_is_read_as_itself() -> None:
    assert parse(form(payload='{"type":"block_actions"}'), FORM) == Interaction(
        body={"type": "block_actions"}
    )
    assert isinstance(parse(event(), JSON), EventCallback)
    challenge = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    assert parse(challenge, JSON) == UrlVerification(type="url_verification", challenge="abc")
    assert parse(b'{"type":"app_rate_limited"}', JSON) == Other()
    assert parse(form(ssl_check="1"), FORM) == Other()


def test_the_word_payload_in_a_command_or_its_channel_changes_nothing() -> None:
    body = form(command="/signoff", text="run inspect payload=42", channel_name="payload-alerts")
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
    ],
)
def test_what_slack_does_not_send_is_malformed(body: bytes, content_type: str) -> None:
    with pytest.raises(Malformed):
        parse(body, content_type)


@given(st.binary(max_size=300), st.sampled_from([FORM, JSON, "x"]))
def test_no_bytes_raise_anything_else(body: bytes, content_type: str) -> None:
    try:
        parse(body, content_type)
    except Malformed:
        return

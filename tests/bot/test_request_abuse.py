"""Requests that Slack would not send: nothing comes of them, and whoever sent one is told so.

One table, against the whole application: each row changes nothing of the record, gets a short
fixed text or a private answer, and leaves nothing in the log that should not stand there.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio

from bot.ingress import body
from bot.sandbox.delivery import FORM, JSON
from bot.view_origin import ViewOrigin
from executor.domain.transition import Reason
from executor.engine.redaction import RedactingFormatter
from tests.support.database import TestServer
from tests.support.request_scene import CANARY, SECRETS, Answer, Scene, Sent, scene_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

UNAUTHORISED = Answer(401, "unauthorised")
BAD = Answer(400, "bad request")
TOO_LARGE = Answer(413, "too large")
NOT_OURS = Answer(403, "not ours")
NOT_EXPECTED = Answer(404, '{"error": "unhandled request"}')
OK = Answer(200, "")
SAID = Answer(200, "what was told stands in the answer")

OUTDATED = "this card is out of date"
CHANGED = "The content has changed since you looked"
NOT_SHOWN = "This has not been shown in Slack yet"
ELSEWHERE = "You belong to another workspace"

MIB = 1024 * 1024
DEEP = "[" * 200_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(database_server: TestServer) -> AsyncIterator[Scene]:
    async with database_server.fresh_database() as url, scene_of(url) as scene:
        yield scene


@dataclass(frozen=True)
class Abuse:
    """One hostile request; ``told`` is the private answer, ``noted`` what the journal keeps."""

    name: str
    make: Callable[[Scene], Sent]
    answer: Answer
    told: str | None = None
    noted: Reason | None = None


SIGNATURE, TIMESTAMP = "X-Slack-Signature", "X-Slack-Request-Timestamp"
PACKED = {"Content-Encoding": "gzip"}
OLD_VALUE = '{"approval":"0197f00000007000800000000000000a","revision":1}'
HANDSHAKE = '{"type": "url_verification", "challenge": "c-123"}'
EVENT = (
    '{"type": "event_callback", "team_id": "TSIGNOFF", "event_id": "Ev1",'
    ' "event": {"type": "message", "number": %s}}'
)
EVENT_OF_ANOTHER_APP = EVENT.replace('"event_id"', '"api_app_id": "A0OTHER", "event_id"') % 1


def recoded(body: bytes) -> bytes:
    assert b"%2F" in body
    return body.replace(b"%2F", b"%2f")


def two_in_one(scene: Scene) -> dict[str, str]:
    return {"payload": json.dumps(scene.payload()), "command": "/signoff", "text": "start it"}


def stood_in(channel: str) -> dict[str, object]:
    return {"container": {"channel_id": channel, "message_ts": "1700000000.000100"}}


def cut(scene: Scene) -> str:
    return scene.value.encode()[:-1]


def carrying(scene: Scene, **changes: Any) -> dict[str, object]:
    """The card's button with a value that was tampered with."""
    return {"value": replace(scene.value, **changes).encode()}


def origin(scene: Scene, **changes: Any) -> str:
    """What a modal that was opened from the card carries back, changed."""
    return replace(ViewOrigin(scene.value, scene.card.channel, scene.card.ts), **changes).encode()


SIGNATURES = [
    Abuse("a wrong secret", lambda s: s.click(secret="guessed"), UNAUTHORISED),
    Abuse("another app's secret", lambda s: s.click(secret="of-another-app"), UNAUTHORISED),
    Abuse("an empty secret", lambda s: s.click(secret=""), UNAUTHORISED),
    Abuse("no signature", lambda s: s.click(headers={SIGNATURE: None}), UNAUTHORISED),
    Abuse("an empty signature", lambda s: s.click(headers={SIGNATURE: ""}), UNAUTHORISED),
    Abuse("no timestamp", lambda s: s.click(headers={TIMESTAMP: None}), UNAUTHORISED),
    Abuse("a timestamp in words", lambda s: s.click(headers={TIMESTAMP: "soon"}), UNAUTHORISED),
    Abuse("a broken timestamp", lambda s: s.click(headers={TIMESTAMP: "17.5"}), UNAUTHORISED),
    Abuse("an old timestamp", lambda s: s.click(skew=-301), UNAUTHORISED),
    Abuse("a future timestamp", lambda s: s.click(skew=302), UNAUTHORISED),
    Abuse("a body that was changed", lambda s: s.click(sends=lambda b: b + b" "), UNAUTHORISED),
    Abuse("b011, a body that was encoded anew", lambda s: s.click(sends=recoded), UNAUTHORISED),
    Abuse("unsigned garbage", lambda s: s.signed(b"\xff{", secret="guessed"), UNAUTHORISED),
    Abuse("unsigned nesting", lambda s: s.event(DEEP, secret="guessed"), UNAUTHORISED),
    Abuse("an unsigned handshake", lambda s: s.event(HANDSHAKE, secret="guessed"), UNAUTHORISED),
]

BODIES = [
    Abuse("a mebibyte and one", lambda s: s.signed(b"x" * (MIB + 1)), TOO_LARGE),
    Abuse("that unsigned", lambda s: s.signed(b"x" * (MIB + 1), secret="guessed"), TOO_LARGE),
    Abuse("that without its length", lambda s: s.signed(b"x" * MIB, pieces=9_000), TOO_LARGE),
    Abuse("no body", lambda s: s.signed(b""), BAD),
    Abuse("garbage", lambda s: s.signed(b"payload=garbage"), BAD),
    Abuse("a payload that is a list", lambda s: s.form({"payload": "[]"}), BAD),
    Abuse("an empty payload", lambda s: s.form({"payload": ""}), BAD),
    Abuse("bytes that are no UTF-8", lambda s: s.signed(b"payload=%FF%FE"), BAD),
    Abuse("bytes that are no ASCII", lambda s: s.signed(b"payload=\xff"), BAD),
    Abuse("bytes that are no JSON", lambda s: s.signed(b"\xff\xfe", content_type=JSON), BAD),
    Abuse("nested brackets", lambda s: s.event(DEEP), BAD),
    Abuse("nested brackets in a form", lambda s: s.signed(b"payload=" + DEEP.encode()), BAD),
    Abuse("no number", lambda s: s.event(EVENT % "NaN"), BAD),
    Abuse("a number without end", lambda s: s.event(EVENT % "1e999"), BAD),
    Abuse("an unknown charset", lambda s: s.click(content_type=f"{FORM}; charset=klingon"), BAD),
    Abuse("another charset", lambda s: s.click(content_type=f"{FORM}; charset=utf-7"), BAD),
    Abuse("a wrong content type", lambda s: s.click(content_type="text/plain"), BAD),
    Abuse("a form that is said to be JSON", lambda s: s.click(content_type=JSON), BAD),
    Abuse("no content type", lambda s: s.click(content_type=None), BAD),
    Abuse("a packed body", lambda s: s.click(sends=gzip.compress, headers=PACKED), BAD),
    Abuse("a packed body, signed", lambda s: s.signed(gzip.compress(b"x"), headers=PACKED), BAD),
    Abuse("a field twice", lambda s: s.signed(s.click().body + b"&payload=%7B%7D"), BAD),
    Abuse("a click and a command", lambda s: s.form(two_in_one(s)), BAD),
    Abuse("two buttons at once", lambda s: s.click(how={"actions": [{}, {}]}), BAD),
    Abuse("nobody", lambda s: s.click(how={"user": {"id": "<!channel>"}}), BAD),
    Abuse("a NUL in the channel", lambda s: s.click(how=stood_in("C0\0")), BAD),
    Abuse("half a character in the channel", lambda s: s.click(how=stood_in("\ud800")), BAD),
    Abuse("a NUL in the trigger", lambda s: s.command("start it", trigger_id="1.2\0"), BAD),
    Abuse("a line end in the action", lambda s: s.click(how={"action": "approve\n"}), BAD),
    Abuse("a hundred fields", lambda s: s.form({f"f{n}": "1" for n in range(100)}), BAD),
]

# Signed as Slack would, and read: whoever clicked is told.
CLICKS = [
    Abuse("another workspace", lambda s: s.click(how={"team": {"id": "TOUTSIDE"}}), OK, ELSEWHERE),
    Abuse(
        "a person of another workspace",
        lambda s: s.click(how={"user": {"id": "U0REVIEWER", "team_id": "TOUTSIDE"}}),
        OK,
        ELSEWHERE,
        Reason.OTHER_WORKSPACE,
    ),
    Abuse("an old action", lambda s: s.click(how={"action": "approve_v1"}), OK, OUTDATED),
    Abuse("an old value", lambda s: s.click(how={"value": OLD_VALUE}), OK, OUTDATED),
    Abuse("a value cut short", lambda s: s.click(how={"value": cut(s)}), OK, OUTDATED),
    Abuse("a value with more", lambda s: s.click(how={"value": cut(s) + ',"z":1}'}), OK, OUTDATED),
    Abuse("no value", lambda s: s.click(how={"value": ""}), OK, OUTDATED),
    Abuse(
        "another operation's digest",
        lambda s: s.click(how=carrying(s, digest=s.other_value.digest)),
        OK,
        CHANGED,
        Reason.CONTENT_CHANGED,
    ),
    Abuse(
        "a revision that was never shown",
        lambda s: s.click(how=carrying(s, content_revision=2)),
        OK,
        CHANGED,
        Reason.CONTENT_CHANGED,
    ),
    Abuse(
        "another operation's approval",
        lambda s: s.click(how=carrying(s, approval=s.other_value.approval)),
        OK,
        CHANGED,
    ),
    Abuse(
        "another tenant's operation",
        lambda s: s.click(how={"value": s.foreign.encode()}),
        OK,
        CHANGED,
    ),
    Abuse(
        "a message that is not the card, and a made-up nonce",
        lambda s: s.click(how=carrying(s, nonce=UUID(int=7)) | stood_in(s.card.channel)),
        OK,
        NOT_SHOWN,
        Reason.NOT_SHOWN,
    ),
    Abuse(
        "the card's button in another channel",
        lambda s: s.click(how=stood_in("C0SUPPORT")),
        OK,
        NOT_SHOWN,
        Reason.NOT_SHOWN,
    ),
    Abuse(
        "a button of no message",
        lambda s: s.click(how={"container": {}}),
        OK,
        NOT_SHOWN,
        Reason.NOT_SHOWN,
    ),
]

VIEWS = [
    Abuse("a rejection of nothing", lambda s: s.submission("reject_reason", ""), SAID, OUTDATED),
    Abuse("an approval of nothing", lambda s: s.submission("full_view", "{}"), SAID, OUTDATED),
    Abuse("a word about nothing", lambda s: s.submission("word", "[]"), SAID, OUTDATED),
    Abuse(
        "a NUL in what is carried back",
        lambda s: s.submission("reject_reason", origin(s, channel="C0\0")),
        SAID,
        OUTDATED,
    ),
    Abuse(
        "another tenant's operation in a modal",
        lambda s: s.submission("full_view", origin(s, value=s.foreign)),
        OK,
        CHANGED,
    ),
    Abuse(
        "a modal of a message that is not the card",
        lambda s: s.submission("full_view", origin(s, channel="C0SUPPORT")),
        OK,
        NOT_SHOWN,
        Reason.NOT_SHOWN,
    ),
    Abuse("a modal that is none of ours", lambda s: s.submission("x", ""), NOT_EXPECTED),
]

OTHERS = [
    Abuse("another app's click", lambda s: s.click(how={"api_app_id": "A0OTHER"}), NOT_OURS),
    Abuse("another app's command", lambda s: s.command("x", api_app_id="A0OTHER"), NOT_OURS),
    Abuse("another app's event", lambda s: s.event(EVENT_OF_ANOTHER_APP), NOT_OURS),
    Abuse(
        "a command that says payload, from a channel that is called so",
        lambda s: s.command("help payload={} payload", channel_name="payload-alerts"),
        SAID,
        "and a goal: start a run",
    ),
    Abuse(
        "another workspace's command",
        lambda s: s.command("start it", team_id="TOUTSIDE"),
        SAID,
        ELSEWHERE,
    ),
    Abuse("a command that is not ours", lambda s: s.command("x", command="/x"), NOT_EXPECTED),
    Abuse("a shortcut", lambda s: s.click(how={"type": "shortcut"}), NOT_EXPECTED),
    Abuse("a kind that is no word", lambda s: s.click(how={"type": ["x"]}), NOT_EXPECTED),
    # Nobody waits for an answer to these.
    Abuse("another workspace's event", lambda s: s.event(EVENT.replace("TSIGNOFF", "TX") % 1), OK),
    Abuse("an event of no kind", lambda s: s.event('{"type": "app_rate_limited"}'), OK),
    Abuse("a check of the certificate", lambda s: s.form({"ssl_check": "1"}), OK),
]

ALL = [*SIGNATURES, *BODIES, *CLICKS, *VIEWS, *OTHERS]


@pytest.mark.parametrize("abuse", ALL, ids=[abuse.name for abuse in ALL])
async def test_b198_nothing_comes_of_a_request_that_slack_would_not_send(
    scene: Scene, abuse: Abuse, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    recorded, refused, told = await scene.record(), await scene.refusals(), await scene.told()
    answer = await scene.send(abuse.make(scene))
    assert answer.status == abuse.answer.status
    if abuse.answer is not SAID:
        assert answer == abuse.answer
    if abuse.told is not None and abuse.told not in answer.text:
        await scene.until_told(abuse.told, but_for=told)
    assert await scene.record() == recorded
    now_refused = await scene.refusals()
    assert now_refused[len(refused) :] == ([] if abuse.noted is None else [abuse.noted.value])
    log = logged(caplog)
    assert [secret for secret in (*SECRETS, CANARY) if secret in log] == []


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Everything that was logged, as it would be written; of ours, also as it was said."""
    written = RedactingFormatter(logging.Formatter("%(name)s %(message)s"), SECRETS)
    ours = [r.getMessage() for r in caplog.records if r.name.startswith(("bot.", "executor."))]
    return "\n".join([*map(written.format, caplog.records), *ours])


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_no_other_method_is_answered_with_anything(scene: Scene, method: str) -> None:
    recorded = await scene.record()
    for path in (*scene.paths(), "/", "/nowhere/<script>", "/slack/events/", "//slack/events"):
        answer = await scene.send(replace(scene.click(), method=method, path=path))
        health = path in ("/healthz", "/readyz") and method in ("GET", "HEAD")
        assert answer.status in ((200, 503) if health else (404, 405)), path
        assert health or answer.text in ("", "not found", "not allowed"), path
    assert await scene.record() == recorded


async def test_a_body_that_does_not_come_is_not_waited_for(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "LONGEST_READ_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", scene.port)
    head = b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npay"
    writer.write(head)
    answer = await asyncio.wait_for(reader.readuntil(b"too slow"), 10)
    assert answer.startswith(b"HTTP/1.1 408 ")
    writer.close()
    assert scene.h.bots[0].bot.counts.too_slow == 1


async def test_whoever_hangs_up_in_the_middle_is_no_error_of_ours(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    counts = scene.h.bots[0].bot.counts
    before = counts.malformed_body
    _, writer = await asyncio.open_connection("127.0.0.1", scene.port)
    writer.write(b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\npay")
    await writer.drain()
    writer.transport.abort()

    async def counted() -> int:
        return counts.malformed_body

    await scene.h.until(counted, lambda found: found == before + 1)
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []

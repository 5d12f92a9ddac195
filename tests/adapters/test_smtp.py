from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import aiosmtplib
import pytest

from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_faults import Close, Fault, Hang, Point, Reply
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import Encryption, parse_smtp_url
from executor.domain.effect import Capability, Outcome, OutcomeKind
from executor.domain.frozen_email import with_date
from executor.engine.ports import MailPort, OutgoingMail
from executor.engine.promises import promise

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)

MAIL = OutgoingMail(
    envelope_from="help@acme.example",
    envelope_to=("pat@cust.example", "sam@cust.example"),
    payload=(
        b"From: help@acme.example\r\nTo: pat@cust.example\r\n\r\nClosed.\r\n.\r\n..two dots\r\n"
    ),
    date=datetime(2026, 12, 1, 10, 0, tzinfo=UTC),
    idempotency_key="signoff-1",
    reference="e1",
)


def arrived(mail: OutgoingMail) -> bytes:
    """The octets that a server must get of a mail."""
    return with_date(mail.payload, mail.date)


async def send(
    mailbox: Mailbox, mail: OutgoingMail = MAIL, *, bound: float = 20.0, query: str = ""
) -> Outcome:
    settings = parse_smtp_url(mailbox.url + query)
    return await SmtpMail(settings, longest_request_seconds=bound).send(mail)


@dataclass(frozen=True)
class Case:
    name: str
    fault: Fault
    kind: OutcomeKind
    retryable: bool = False
    accepted: int = 0
    phase: str = ""


def refusals_before_content() -> list[Case]:
    cases = []
    for point, phase in (
        (Point.CONNECT, "connect"),
        (Point.EHLO, "ehlo"),
        (Point.MAIL, "mail"),
        (Point.RCPT, "rcpt"),
        (Point.DATA, "data"),
    ):
        for code in (421, 451, 550):
            fault = Fault(point, Reply(code))
            # A server that answers EHLO with 5yz may be an old one that knows HELO.
            if (point, code) == (Point.EHLO, 550):
                continue
            cases.append(
                Case(f"{phase} {code}", fault, NOT_APPLIED, retryable=code < 500, phase=phase)
            )
        cases.append(Case(f"{phase} closed", Fault(point, Close()), NOT_APPLIED, True, phase=phase))
    return cases


CASES = [
    *refusals_before_content(),
    Case("data 250", Fault(Point.DATA, Reply(250)), NOT_APPLIED, phase="data"),
    Case("content closed", Fault(Point.CONTENT, Close()), UNKNOWN, phase="content"),
    Case("content 552", Fault(Point.CONTENT, Reply(552)), NOT_APPLIED, phase="final_reply"),
    Case("final 451", Fault(Point.FINAL, Reply(451)), NOT_APPLIED, True, phase="final_reply"),
    Case("final 421", Fault(Point.FINAL, Reply(421)), NOT_APPLIED, True, phase="final_reply"),
    Case("final 554", Fault(Point.FINAL, Reply(554)), NOT_APPLIED, phase="final_reply"),
    Case("final 354", Fault(Point.FINAL, Reply(354)), UNKNOWN, phase="final_reply"),
    Case(
        "final 251",
        Fault(Point.FINAL, Reply(251, after_accepting=True)),
        APPLIED,
        accepted=1,
        phase="final_reply",
    ),
    Case("final closed", Fault(Point.FINAL, Close()), UNKNOWN, phase="content"),
    Case(
        "final accepted, closed",
        Fault(Point.FINAL, Close(after_accepting=True)),
        UNKNOWN,
        accepted=1,
        phase="content",
    ),
    Case("quit 550", Fault(Point.QUIT, Reply(550)), APPLIED, accepted=1, phase="final_reply"),
    Case("quit closed", Fault(Point.QUIT, Close()), APPLIED, accepted=1, phase="final_reply"),
    Case("quit hangs", Fault(Point.QUIT, Hang()), APPLIED, accepted=1, phase="final_reply"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_every_ending_proves_what_rfc_5321_says(case: Case) -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(case.fault)
        outcome = await send(mailbox)
        assert (outcome.kind, outcome.retryable) == (case.kind, case.retryable), outcome
        assert outcome.evidence["phase"] == case.phase
        assert outcome.evidence["provider"] == f"smtp:127.0.0.1:{mailbox.port}"
        assert mailbox.accepted == case.accepted
        assert "None" not in str(outcome.evidence)


HANGS = [
    (Point.CONNECT, False, NOT_APPLIED, 0),
    (Point.EHLO, False, NOT_APPLIED, 0),
    (Point.MAIL, False, NOT_APPLIED, 0),
    (Point.RCPT, False, NOT_APPLIED, 0),
    (Point.DATA, False, NOT_APPLIED, 0),
    (Point.CONTENT, False, UNKNOWN, 0),
    (Point.FINAL, False, UNKNOWN, 0),
    (Point.FINAL, True, UNKNOWN, 1),
]


@pytest.mark.parametrize(("point", "after", "kind", "accepted"), HANGS)
async def test_a_silent_server_is_left_at_the_time_bound(
    point: Point, after: bool, kind: OutcomeKind, accepted: int
) -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(Fault(point, Hang(after_accepting=after)))
        outcome = await send(mailbox, bound=0.3)
        assert outcome.kind is kind
        assert outcome.retryable is (kind is NOT_APPLIED)
        assert outcome.evidence["problem"] == "no answer within 0.3 s"
        assert mailbox.accepted == accepted


@pytest.mark.parametrize(
    "point", [Point.CONNECT, Point.MAIL, Point.DATA, Point.CONTENT, Point.FINAL]
)
async def test_cancellation_passes_and_closes_the_connection(point: Point) -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(Fault(point, Hang()))
        task = asyncio.create_task(send(mailbox))
        await mailbox.wait_for_hang()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await mailbox.wait_for_no_connection()
        assert mailbox.accepted == 0


async def test_a_mail_that_was_given_up_is_not_completed_behind_our_back() -> None:
    big = replace(MAIL, payload=MAIL.payload + (b"x" * 76 + b"\r\n") * 100_000)
    given_up, ended = asyncio.Event(), asyncio.Event()
    tail = bytearray()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for reply in (b"220 hi", b"250 hi", b"250 ok", b"250 ok", b"250 ok", b"354 go"):
            writer.write(reply + b"\r\n")
            if reply != b"354 go":
                await reader.readline()
        await given_up.wait()
        with suppress(ConnectionError):
            while chunk := await reader.read(2**16):
                tail[:] = chunk[-5:]
        writer.close()
        ended.set()

    async with await asyncio.start_server(slow, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        adapter = SmtpMail(parse_smtp_url(f"smtp://127.0.0.1:{port}"), longest_request_seconds=0.5)
        outcome = await adapter.send(big)
        assert (outcome.kind, outcome.evidence["phase"]) == (UNKNOWN, "content")
        given_up.set()
        await ended.wait()
    assert bytes(tail) != b"\r\n.\r\n"


async def test_an_answer_given_before_the_content_is_not_taken_for_an_acceptance() -> None:
    content, ended = bytearray(), asyncio.Event()

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            for reply in (b"220 hi", b"250 hi", b"250 ok", b"250 ok", b"250 ok"):
                writer.write(reply + b"\r\n")
                await reader.readline()
            writer.write(b"354 go\r\n250 ok\r\n")
            content.extend(await reader.read())
        writer.close()
        ended.set()

    async with await asyncio.start_server(hasty, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        outcome = await SmtpMail(parse_smtp_url(f"smtp://127.0.0.1:{port}")).send(MAIL)
        await ended.wait()
    assert (outcome.kind, outcome.evidence["phase"]) == (NOT_APPLIED, "data")
    assert b"Closed." not in content


async def test_a_large_mail_arrives_whole() -> None:
    big = replace(MAIL, payload=MAIL.payload + (b"." * 76 + b"\r\n") * 50_000)
    async with Mailbox() as mailbox:
        assert (await send(mailbox, big)).kind is APPLIED
        assert mailbox.mails[0].raw == arrived(big)


async def test_an_old_server_is_greeted_the_old_way() -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(Fault(Point.EHLO, Reply(502)))
        assert (await send(mailbox)).kind is APPLIED


async def test_a_password_does_not_travel_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    def far_away(client: aiosmtplib.SMTP, key: str) -> tuple[str, int]:
        return ("192.0.2.1", 25)

    async with Mailbox(credentials=("pat", "s3cret")) as mailbox:
        monkeypatch.setattr(aiosmtplib.SMTP, "get_transport_info", far_away)
        url = mailbox.url.replace("smtp://", "smtp://pat:s3cret@")
        outcome = await SmtpMail(parse_smtp_url(url)).send(MAIL)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert outcome.evidence["phase"] == "auth"
        assert mailbox.logins == 0
        outcome = await SmtpMail(parse_smtp_url(f"{url}?tls=none")).send(MAIL)
        assert outcome.kind is APPLIED


async def test_a_mail_arrives_octet_for_octet() -> None:
    async with Mailbox() as mailbox:
        outcome = await send(mailbox)
        assert outcome == Outcome(
            APPLIED,
            {
                "provider": f"smtp:127.0.0.1:{mailbox.port}",
                "phase": "final_reply",
                "code": 250,
                "reply": "2.0.0 Ok: queued as 1",
            },
        )
        [received] = mailbox.mails
        assert received.raw == arrived(MAIL)
        assert received.envelope_from == MAIL.envelope_from
        assert received.envelope_to == MAIL.envelope_to


async def test_a_refused_connection_may_be_tried_again() -> None:
    async with Mailbox() as mailbox:
        await mailbox.stop()
        outcome = await send(mailbox)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, True)
        assert outcome.evidence["problem"] == "the connection was refused"


@pytest.mark.parametrize(("code", "retryable"), [(550, False), (450, True)])
async def test_one_refused_recipient_keeps_the_mail_from_all(code: int, retryable: bool) -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(Fault(Point.RCPT, Reply(code, "no such user"), recipient="sam@cust.example"))
        outcome = await send(mailbox)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, retryable)
        assert outcome.evidence["refused"] == [
            {"address": "sam@cust.example", "code": code, "reply": "no such user"}
        ]
        assert mailbox.accepted == 0


async def test_one_lasting_refusal_among_passing_ones_is_not_retried() -> None:
    async with Mailbox() as mailbox:
        mailbox.fail(Fault(Point.RCPT, Reply(450), recipient="pat@cust.example"))
        mailbox.fail(Fault(Point.RCPT, Reply(550), recipient="sam@cust.example"))
        outcome = await send(mailbox)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert len(outcome.evidence["refused"]) == 2  # type: ignore[arg-type]


async def test_a_message_over_the_advertised_size_is_not_announced() -> None:
    async with Mailbox(size_limit=40) as mailbox:
        mailbox.fail(Fault(Point.MAIL, Close()))
        outcome = await send(mailbox)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert "the server takes 40" in str(outcome.evidence["problem"])


async def test_a_local_part_beyond_ascii_needs_a_server_that_can() -> None:
    mail = replace(
        MAIL,
        envelope_to=("用户@xn--r8jz45g.jp",),
        payload="To: 用户@xn--r8jz45g.jp\r\n\r\nHi\r\n".encode(),
    )
    async with Mailbox(smtputf8=False) as mailbox:
        outcome = await send(mailbox, mail)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert "SMTPUTF8" in str(outcome.evidence["problem"])
    async with Mailbox() as mailbox:
        assert (await send(mailbox, mail)).kind is APPLIED
        assert mailbox.mails[0].raw == arrived(mail)
        assert mailbox.mails[0].envelope_to == mail.envelope_to


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: replace(m, payload=b"To: a\r\n\r\nbare\nline\r\n"), "CR LF"),
        (lambda m: replace(m, payload=b"To: a\r\n\r\nbare\rline\r\n"), "CR LF"),
        (lambda m: replace(m, payload=b"To: a\r\n\r\nno end"), "CR LF"),
        (lambda m: replace(m, payload=b"To: a\r\n\r\n" + b"x" * 999 + b"\r\n"), "998"),
        (lambda m: replace(m, envelope_to=()), "no recipient"),
        (lambda m: replace(m, envelope_to=("a@b.c>\r\nRCPT TO:<d@e.f",)), "not an address"),
    ],
)
async def test_a_mail_that_would_have_to_be_altered_is_not_sent(
    change: Callable[[OutgoingMail], OutgoingMail], problem: str
) -> None:
    async with Mailbox() as mailbox:
        outcome = await send(mailbox, change(MAIL))
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert problem in str(outcome.evidence["problem"])
        assert mailbox.conversations == 0


async def test_a_login_is_made_and_its_refusal_names_no_secret() -> None:
    async with Mailbox(credentials=("pat", "s3cret")) as mailbox:
        mailbox_url = mailbox.url.removeprefix("smtp://")
        good = SmtpMail(parse_smtp_url(f"smtp://pat:s3cret@{mailbox_url}"))
        assert (await good.send(MAIL)).kind is APPLIED
        bad = SmtpMail(parse_smtp_url(f"smtp://pat:wr0ng-password@{mailbox_url}"))
        outcome = await bad.send(MAIL)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert outcome.evidence["phase"] == "auth"
        assert outcome.evidence["code"] == 535
        assert "wr0ng" not in repr((outcome, bad, bad.__dict__))
        without = await send(mailbox)
        assert (without.kind, without.evidence["code"]) == (NOT_APPLIED, 530)
        assert mailbox.accepted == 1


async def test_a_reply_that_repeats_the_password_is_cleaned() -> None:
    async with Mailbox(credentials=("pat", "s3cret")) as mailbox:
        mailbox.fail(Fault(Point.MAIL, Reply(550, "I know s3cret and more")))
        url = mailbox.url.replace("smtp://", "smtp://pat:s3cret@")
        outcome = await SmtpMail(parse_smtp_url(url)).send(MAIL)
        assert outcome.evidence["reply"] == "I know *** and more"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate, key


@pytest.mark.parametrize("implicit", [True, False])
async def test_mail_is_encrypted_and_the_certificate_checked(
    certificate: tuple[Path, Path], implicit: bool
) -> None:
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    async with Mailbox(tls=server_context, implicit_tls=implicit) as mailbox:
        settings = parse_smtp_url(mailbox.url)
        outcome = await SmtpMail(settings, tls_context=trusting).send(MAIL)
        assert outcome.kind is APPLIED, outcome
        assert mailbox.mails[0].encrypted
        outcome = await SmtpMail(settings).send(MAIL)
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert outcome.evidence["problem"] == "the server's certificate was not accepted"
        assert mailbox.accepted == 1


async def test_required_encryption_is_not_done_without() -> None:
    async with Mailbox() as mailbox:
        outcome = await send(mailbox, query="?tls=required")
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert outcome.evidence["phase"] == "starttls"


async def test_mails_in_a_spool_survive_a_restart(tmp_path: Path) -> None:
    async with Mailbox(spool=tmp_path / "mail") as mailbox:
        await send(mailbox)
        await send(mailbox, replace(MAIL, envelope_to=("x@y.example",)))
        before = list(mailbox.mails)
    async with Mailbox(spool=tmp_path / "mail") as mailbox:
        assert mailbox.mails == before
        assert mailbox.accepted == 2


def test_the_adapter_is_opaque_and_says_so() -> None:
    port: MailPort = SmtpMail(parse_smtp_url("smtp://mail.example"))
    assert port.capability is Capability.OPAQUE
    assert port.provider == "smtp:mail.example:587"
    assert "at most once" in promise(port.declaration)


def test_a_url_is_read_whole() -> None:
    settings = parse_smtp_url("smtp://us%40er:p%2Fw@mail.example:2525?tls=required&ehlo=a.example")
    assert (settings.username, settings.password) == ("us@er", "p/w")
    assert (settings.host, settings.port) == ("mail.example", 2525)
    assert (settings.encryption, settings.ehlo_name) == (Encryption.REQUIRED, "a.example")
    assert "p/w" not in repr(settings)
    assert parse_smtp_url("smtps://mail.example").port == 465


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://mail.example",
        "smtp://",
        "smtp://user@mail.example",
        "smtp://user:top-secret@mail.example:port",
        "smtp://user:top/secret@mail.example",
        "smtp://user:top-secret@mail.example?tls=maybe",
        "smtp://user:top-secret@mail.example?tsl=none",
        "smtps://user:top-secret@mail.example?tls=none",
        "smtp://user:top-secret@mail.example?ehlo=a%0d%0ab",
        "smtp://user:top-secret@mail.example?tls=none&tls=required",
    ],
)
def test_a_bad_url_is_refused_without_repeating_the_password(url: str) -> None:
    with pytest.raises(ValueError, match="SMTP_URL") as refusal:
        parse_smtp_url(url)
    assert "secret" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None

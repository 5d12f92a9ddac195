"""K11, as far as content, its frozen bytes and the way to a real mail server reach."""

from __future__ import annotations

import email
from collections.abc import Sequence
from datetime import UTC, datetime
from email.policy import default
from email.utils import getaddresses

import pytest

from bot.card_email import email_view
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_spool import ReceivedMail
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.domain.address import parse_mailbox, parse_mailboxes
from executor.domain.effect import OutcomeKind
from executor.domain.email import EmailContent
from executor.domain.errors import InvalidContent
from executor.domain.frozen_email import differences, freeze, parse_delivered
from executor.domain.mail_text import validate_subject
from executor.domain.payloads import canonical, digest
from executor.engine.converging import Answered
from executor.engine.ports import OutgoingMail, ToolCall
from executor.engine.tools import parse_proposal
from tests.support.failpoints import Crashed, Trap
from tests.support.mail_doubles import smtp
from tests.support.office import Office, closing
from tests.support.working import Working

DATE = datetime(2026, 12, 1, 12, tzinfo=UTC)


def propose(
    *,
    to: Sequence[str] = ("pat@cust.example",),
    reply_to: str | None = None,
    subject: str = "Ticket 4101 closed",
    text: str = "We closed ticket 4101.\n",
    html: str | None = None,
) -> EmailContent:
    return EmailContent(
        sender=parse_mailbox("Acme Help <help@acme.example>", field="from"),
        to=parse_mailboxes(to, field="to"),
        cc=(),
        bcc=(),
        reply_to=parse_mailbox(reply_to, field="reply_to") if reply_to else None,
        subject=subject,
        text=text,
        html=html,
        message_id="<signoff.4101@acme.example>",
    )


async def deliver(content: EmailContent) -> ReceivedMail:
    """Freeze, send by real SMTP and return what the server received."""
    async with Mailbox() as mailbox:
        outcome = await SmtpMail(parse_smtp_url(mailbox.url)).send(
            OutgoingMail(
                envelope_from=content.sender.ascii_address,
                envelope_to=content.recipients(),
                payload=freeze(content),
                date=DATE,
                idempotency_key="signoff-4101",
                reference="e4101",
            )
        )
        assert outcome.kind is OutcomeKind.APPLIED, outcome
        [received] = mailbox.mails
        assert differences(content, parse_delivered(received.raw)) == []
        return received


INJECTED = "Ticket 4101 closed{}Bcc: thief@evil.example"


@pytest.mark.parametrize("line_break", ["\r\n", "\r", "\n"])
def test_b139_line_break_in_the_subject_adds_headers(line_break: str) -> None:
    text = INJECTED.format(line_break)
    with pytest.raises(InvalidContent) as subject:
        validate_subject(text)
    assert subject.value.field == "subject"
    assert "a line break" in subject.value.problem
    with pytest.raises(InvalidContent):
        freeze(propose(subject=text))
    for field in ("to", "reply_to"):
        with pytest.raises(InvalidContent) as name:
            parse_mailbox(f'"{text}" <pat@cust.example>', field=field)
        assert name.value.field == field
    with pytest.raises(InvalidContent):
        propose(reply_to=f"pat@cust.example{line_break}Bcc: thief@evil.example")


async def test_b139_a_subject_that_would_add_headers_is_refused_at_creation(
    office: Office,
) -> None:
    proposals = [
        closing(subject=INJECTED.format(line_break)) for line_break in ("\r\n", "\r", "\n")
    ]
    name = f'"{INJECTED.format(chr(10))}" <pat@cust.example>'
    working = await Working.propose(office, *proposals, closing(to=[name]))
    for result, field in zip(working.results, ["subject"] * 3 + ["to[0]"], strict=True):
        assert isinstance(result, Answered)
        assert (result.result["error"], result.result["field"]) == ("content_invalid", field)
    assert await working.operations() == []
    assert await office.due_cards() == []


async def test_b140_a_long_subject_survives_storage_and_another_worker(office: Office) -> None:
    subject = ("Your ticket 4101 about the invoice of October was closed by our team " * 3)[:160]
    subject = subject.strip().ljust(160, "!")
    async with smtp(office) as (mailbox, doubt):
        [operation] = await (await Working.propose(office, closing(subject=subject))).operations()
        await office.show()
        await office.click(operation)
        dying = office.colleague(failpoints=Trap("open.before"))
        with pytest.raises(Crashed):
            await doubt.execute(await office.claim_operation(operation), dying)
        await doubt.pass_time(31)
        await doubt.execute(await office.claim_operation(operation, "w2"))
        [received] = mailbox.mails
        assert received.parsed["Subject"] == subject


async def test_b140_long_subject_breaks_on_reload() -> None:
    subject = ("Your ticket 4101 about the invoice of October was closed by our team " * 3)[:160]
    subject = subject.strip()
    received = await deliver(propose(subject=subject))
    assert received.parsed["Subject"] == subject
    unbroken = "x" * 160
    assert (await deliver(propose(subject=unbroken))).parsed["Subject"] == unbroken


@pytest.mark.parametrize("separator", ["\x0c", "\x85", "\u2028", "\u2029", "\x0b", "\x1c"])
async def test_b142_unusual_separators_count_as_line_ends(separator: str) -> None:
    with pytest.raises(InvalidContent):
        validate_subject(f"Ticket 4101{separator}closed")
    with pytest.raises(InvalidContent):
        parse_mailbox(f'"Pat{separator}Neil" <pat@cust.example>', field="to")


async def test_b142_separators_that_a_body_may_hold_tear_nothing() -> None:
    text = "naïve\u2028line\u2029paragraph\u00a0end — é" * 30
    received = await deliver(propose(text=text))
    assert parse_delivered(received.raw).text == text


async def test_b143_comma_in_an_encoded_name_becomes_a_second_address() -> None:
    name = "A véry long name with non-ASCII letters and, comma"
    for shown in (name, f"{name}, {name}", "Plain, ASCII, commas", "é, <x>; (y): @ [z] \\"):
        escaped = shown.replace("\\", "\\\\")
        received = await deliver(propose(to=[f'"{escaped}" <to@x.example>']))
        assert received.envelope_to == ("to@x.example",)
        [parsed] = received.parsed["To"].addresses
        assert parsed.addr_spec == "to@x.example"
        # Python 3.11's parser keeps the space between encoded words, which RFC 2047, 6.2, drops.
        assert " ".join(parsed.display_name.split()) == shown
        raw_to = email.message_from_bytes(received.raw)["To"]
        assert [address for _, address in getaddresses([raw_to])] == ["to@x.example"]


async def test_b144_each_retry_quotes_the_name_again() -> None:
    content = propose(to=['"O\'Neil, Pat \\"PO\\"" <pat@cust.example>'])
    first = freeze(content)
    for _ in range(10):
        [mailbox] = content.to
        quoted = mailbox.name.replace('"', '\\"')
        content = propose(to=[f'"{quoted}" <{mailbox.address}>'])
        assert freeze(content) == first
    assert b'To: "O\'Neil, Pat \\"PO\\"" <pat@cust.example>\r\n' in first
    received = await deliver(content)
    assert received.parsed["To"].addresses[0].display_name == 'O\'Neil, Pat "PO"'


async def test_b145_international_domain_makes_every_send_fail() -> None:
    content = propose(to=["anna@bücher.example"])
    [mailbox] = content.to
    assert (mailbox.address, mailbox.ascii_address) == (
        "anna@bücher.example",
        "anna@xn--bcher-kva.example",
    )
    received = await deliver(content)
    assert received.envelope_to == ("anna@xn--bcher-kva.example",)
    assert received.raw.isascii()
    assert b"xn--bcher-kva.example" in canonical(content.as_json())
    shown = dict(email_view(content.as_json()).fields)["To"]
    assert shown == "<anna@bücher.example> = <anna@xn--bcher-kva.example>"
    other = propose(to=["anna@bucher.example"])
    assert digest(content.as_json()) != digest(other.as_json())


async def test_b149_text_and_html_part_in_the_wrong_order() -> None:
    content = propose(text="refund 90 EUR", html="<p>refund 90 EUR</p>")
    received = await deliver(content)
    parts = [part.get_content_type() for part in received.parsed.iter_parts()]
    assert parts == ["text/plain", "text/html"]
    differing = propose(text="refund 90 EUR", html="<p>refund 900 EUR</p>")
    assert digest(content.as_json()) != digest(differing.as_json())
    # What does not say the same is shown beside the text; the model cannot write it at all.
    view = email_view(differing.as_json())
    assert view.html is not None
    assert "refund 900 EUR" in view.html.text
    arguments = {
        "ticket_id": "4101",
        "language": "en",
        "subject": "Closed",
        "message": "refund 90 EUR",
        "html": "<p>refund 900 EUR</p>",
    }
    refused = parse_proposal(ToolCall("call_0", "propose_closing", arguments))
    assert isinstance(refused, dict)
    assert "html is not an argument" in str(refused["message"])


async def test_b150_servers_break_long_lines_and_change_the_content() -> None:
    link = "https://acme.example/" + "p" * 579
    line = f'<a href="{link}">' + "w " * 1193 + "</a>"
    assert len(line) >= 3000
    text = "trailing spaces   \n.a line that begins with a dot\n.\nFrom here on\nno line end  "
    content = propose(text=text, html=line)
    received = await deliver(content)
    # A strict server cuts what is longer than 998 octets; there must be nothing to cut.
    lines = received.raw.split(b"\r\n")
    cut = b"\r\n".join(
        piece
        for one in lines
        for piece in ([one[i : i + 998] for i in range(0, len(one), 998)] or [b""])
    )
    assert max(map(len, lines)) <= 76
    delivered = parse_delivered(cut)
    assert delivered.text == text
    assert delivered.html == line
    independent = email.message_from_bytes(cut, policy=default)
    html = independent.get_body(("html",))
    assert html is not None
    assert html.get_content() == line

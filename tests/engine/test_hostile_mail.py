"""Hostile and odd mail at every provider: refused to the model's face, or delivered as approved.

A model proposes through the real tools; what is not refused there is approved, sent by the real
adapter to a strict double, and read back by the standard library's parser, which shares no code
with what wrote it. Nothing that was approved may be refused later by a provider, after the ticket
was closed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email import message_from_bytes, message_from_string
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import SMTPUTF8, default
from email.utils import getaddresses
from typing import Any

import pytest

from bot.sandbox.accepted_mail import AcceptedMail
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_spool import ReceivedMail
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.domain.ids import OperationId
from executor.engine.model_call import MOST_CALLS_A_REPLY
from tests.support.doubt import Doubt
from tests.support.fake_model import FakeModel, calls, says
from tests.support.mail_doubles import postmark, resend, smtp
from tests.support.office import Office
from tests.support.working import Working

PROVIDERS = ("resend", "postmark", "smtp")
Received = ReceivedMail | AcceptedMail
Boxes = list[tuple[str, str]]


@dataclass(frozen=True)
class Read:
    """What a recipient's software makes of a mail."""

    to: Boxes
    cc: Boxes
    subject: str
    text: str
    html: str
    recipients: tuple[str, ...]
    other_headers: tuple[str, ...]


@dataclass
class Post:
    """One provider's double, and a model that proposes mail to it."""

    provider: str
    double: Mailbox | ResendDouble | PostmarkDouble
    doubt: Doubt
    ticket: int = 6000

    async def execute(self, operation: OperationId) -> str:
        """Approve and execute one; return where it stands then."""
        office = self.doubt.office
        await office.show()
        await office.click(operation)
        await self.doubt.execute(await office.claim_operation(operation))
        return await office.status(operation)

    async def propose(
        self, *proposals: dict[str, Any]
    ) -> tuple[list[OperationId], list[dict[str, object]]]:
        """Let models propose all of these, each to close a ticket of its own.

        Return the operations that came of it, and what the models were told of each proposal.
        """
        operations: list[OperationId] = []
        told: list[dict[str, object]] = []
        for first in range(0, len(proposals), MOST_CALLS_A_REPLY):
            some = proposals[first : first + MOST_CALLS_A_REPLY]
            working = await self._propose(some)
            operations += await working.operations()
            told += [
                answer
                for (answer,) in await self.doubt.office.rows(
                    "SELECT content -> 'result' FROM steps WHERE run_id = :r "
                    "AND answers_step > 1 + (SELECT min(answers_step) FROM steps WHERE run_id = :r)"
                    " ORDER BY answers_ordinal",
                    r=working.run_id,
                )
            ]
        return operations, told

    async def _propose(self, proposals: Sequence[dict[str, Any]]) -> Working:
        """Let one model read as many tickets and propose for each of them in one reply."""
        reads, closings = [], []
        for proposal in proposals:
            self.ticket += 1
            await self.doubt.office.import_ticket(str(self.ticket))
            usual = {
                "ticket_id": str(self.ticket),
                "language": "en",
                "subject": f"Ticket {self.ticket} closed",
                "message": "Your invoice is corrected.",
            }
            reads.append(calls("read_ticket", {"ticket_id": str(self.ticket)}))
            closings.append(calls("propose_closing", {**usual, **proposal}))
        model = FakeModel([says("", *reads), says("", *closings), says("I could not.")])
        working = await Working.start(self.doubt.office, model)
        await working.drive()
        return working

    def received(self) -> Read:
        """Read the newest mail in the mailbox."""
        mail: Received = self.double.mails[-1]
        if isinstance(mail, ReceivedMail):
            return _read_mime(mail)
        return _read_json(mail, self.provider)

    async def approved(self, operation: OperationId) -> dict[str, Any]:
        """Read the email of an operation's intent, as it was shown and approved."""
        [(email,)] = await self.doubt.office.rows(
            "SELECT intent::jsonb -> 'effects' -> 1 -> 'email' FROM operations WHERE id = :o",
            o=operation,
        )
        found: dict[str, Any] = email
        return found


def _read_mime(mail: ReceivedMail) -> Read:
    message = message_from_bytes(mail.raw, policy=default)
    assert isinstance(message, EmailMessage)
    raw = message_from_bytes(mail.raw)
    text, html = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert html is not None
    assert max(map(len, mail.raw.split(b"\r\n"))) <= 998
    return Read(
        _boxes(raw.get_all("to", [])),
        _boxes(raw.get_all("cc", [])),
        str(message["subject"]),
        text.get_content(),
        html.get_content(),
        mail.envelope_to,
        tuple(sorted({name.lower() for name in message} - _OURS)),
    )


def _read_json(mail: AcceptedMail, provider: str) -> Read:
    fields = mail.fields
    if provider == "postmark":
        to, cc = [fields["To"]], [fields["Cc"]] if "Cc" in fields else []
        names = ("Subject", "TextBody", "HtmlBody")
        headers = {header["Name"].lower() for header in fields["Headers"]}
    else:
        to, cc = fields["to"], fields.get("cc", [])
        names = ("subject", "text", "html")
        headers = {name.lower() for name in fields["headers"]}
    subject, text, html = (fields[name] for name in names)
    return Read(
        _boxes(to),
        _boxes(cc),
        subject,
        text,
        html,
        mail.recipients,
        tuple(sorted(headers - _OURS)),
    )


_OURS = {
    "date",
    "from",
    "to",
    "cc",
    "subject",
    "message-id",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
}


def _boxes(headers: Sequence[Any]) -> Boxes:
    """Read address fields: whom they name is for the strict parser to say, without a defect."""
    strict: list[str] = []
    for value in headers:
        header: Any = default.header_factory("To", re.sub(r"\r\n(?=[ \t])", "", str(value)))
        assert not header.defects, value
        strict += [address.addr_spec for address in header.addresses]
    # The strict parser of Python 3.11 keeps the space between encoded words (RFC 2047, 6.2).
    named = [
        (str(make_header(decode_header(name))), address)
        for name, address in getaddresses([str(value) for value in headers])
    ]
    assert [address for _, address in named] == strict
    return named


@asynccontextmanager
async def _post(provider: str, office: Office) -> AsyncIterator[Post]:
    opened: Any = {"resend": resend, "postmark": postmark, "smtp": smtp}[provider](office)
    async with opened as (double, doubt):
        yield Post(provider, double, doubt)


BREAKS = {
    "CR": "\r",
    "LF": "\n",
    "CR LF": "\r\n",
    "NUL": "\0",
    "VT": "\x0b",
    "FF": "\x0c",
    "FS": "\x1c",
    "NEL": "\x85",
    "LS": "\u2028",
    "PS": "\u2029",
}
INJECTED = "Ticket closed{}Bcc: thief@evil.example"
# A record holds neither NUL nor lone surrogates: that something was lost is seen and refused.
LOST = "Write the character that was meant, or none."
ATTACHMENT = {"name": "invoice.pdf", "content": base64.b64encode(bytes(9 << 20)).decode()}

# What the model proposes, the argument that is wrong, and what it is told to do.
REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    *(
        (f"{name} in {field}", {field: value}, field, LOST if name == "NUL" else remedy)
        for name, character in BREAKS.items()
        for field, value, remedy in (
            ("subject", INJECTED.format(character), "Write it as one line of plain text."),
            ("to", [f"pat@cust.example{character}Bcc: thief@evil.example"], "on one line"),
            ("to", [f'"{INJECTED.format(character)}" <pat@cust.example>'], "on one line"),
            ("cc", [f"pat@cust.example{character}"], "on one line"),
        )
    ),
    *(
        (f"{name} in the message", {"message": f"a{BREAKS[name]}b"}, "message", remedy)
        for name, remedy in (
            ("CR", "End lines with"),
            ("NUL", LOST),
            ("VT", "Remove the character."),
            ("FF", "Remove the character."),
            ("NEL", "Remove the character."),
        )
    ),
    ("LF in the language", {"language": "en\nX-Evil: 1"}, "language", "BCP 47"),
    ("a lone surrogate", {"subject": "Ticket \ud800 closed"}, "subject", LOST),
    ("a lone surrogate in a name", {"cc": ['"P\udfffat" <pat@cust.example>']}, "cc", LOST),
    ("a 9 MB attachment", {"attachments": [ATTACHMENT]}, "attachments", "message"),
    ("a file", {"files": ["/etc/passwd"]}, "files", "leave it out"),
    ("an empty text part", {"message": ""}, "message", "Write what the recipient shall read."),
    ("a blank text part", {"message": " \n\t\n"}, "message", "Write what the recipient"),
    ("an HTML part of its own", {"html": "<p>refund 900 EUR</p>"}, "html", "message"),
    ("blind copies", {"bcc": ["thief@evil.example"]}, "bcc", "cc"),
    ("a sender", {"from": "ceo@acme.example"}, "from", "leave it out"),
    ("headers", {"headers": {"Bcc": "thief@evil.example"}}, "headers", "leave it out"),
    (
        "2,000 recipients",
        {"to": [f"p{n}@cust.example" for n in range(2_000)]},
        "to",
        "the limit is 20",
    ),
    ("a subject of 256", {"subject": "x" * 256}, "subject", "the limit is 255"),
    ("two addresses in one", {"to": ["a@x.example, b@y.example"]}, "to", "one address per entry"),
    ("a name that is an address", {"to": ['"ceo@acme.example" <x@evil.example>']}, "to", "Use a"),
    ("an encoded name", {"to": ['"=?utf-8?q?a=0Ab?=" <x@cust.example>']}, "to", "plain"),
    ("an address literal", {"to": ["pat@[127.0.0.1]"]}, "to", "Write a domain"),
    ("a source route", {"to": ["@evil.example:pat@cust.example"]}, "to", "one address"),
    ("a quoted local part", {"to": ['"a b"@cust.example']}, "to", "Use an address"),
    ("51 blank lines", {"message": "a" + "\n" * 52 + "b"}, "message", "Remove the blank lines"),
    ("too long a text", {"message": "x" * 20_001}, "message", "Shorten the text."),
]

# What the model proposes, and the recipients that the envelope must have.
DELIVERED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("an IDN domain", {"to": ["anna@bücher.example"]}, ("anna@xn--bcher-kva.example",)),
    (
        "an IDN domain in capitals and full width",
        {"to": ["Anna <anna@ＢÜCHER.example>"], "cc": ["sam@例え.jp"]},
        ("anna@xn--bcher-kva.example", "sam@xn--r8jz45g.jp"),
    ),
    (
        "names of every kind",
        {
            "to": [
                '"O\'Neil, Pat \\"PO\\" <x> (y): @ [z] \\\\" <pat@cust.example>',
                '"A véry long name with non-ASCII letters and, comma" <to@x.example>',
                f'"{"長い名前" * 20}" <long@x.example>',
                '"👩‍👧 Family" <family@x.example>'.replace("\u200d", ""),
            ]
        },
        ("pat@cust.example", "to@x.example", "long@x.example", "family@x.example"),
    ),
    (
        "local parts of every ASCII sign",
        {"to": ["a.!#$%&'*+/=?^_`{|}~-b@cust.example"]},
        ("a.!#$%&'*+/=?^_`{|}~-b@cust.example",),
    ),
    (
        "20 recipients and 20 copies",
        {
            "to": [f"p{n}@cust.example" for n in range(20)],
            "cc": [f"c{n}@cust.example" for n in range(20)],
        },
        tuple(f"{kind}{n}@cust.example" for kind in "pc" for n in range(20)),
    ),
    ("a subject of 255", {"subject": "é" * 255}, ("pat@cust.example",)),
    ("a subject without a space", {"subject": "x" * 255}, ("pat@cust.example",)),
    ("a subject of encoded words", {"subject": "=?utf-8?q?Bcc:_x?= =?"}, ("pat@cust.example",)),
    ("a subject with two spaces", {"subject": "Ticket  closed:  a"}, ("pat@cust.example",)),
    (
        "dots, From and spaces",
        {"message": "trailing   \n.\n..\n.a dot\nFrom here\n\n-- \nend  "},
        ("pat@cust.example",),
    ),
    ("CR LF line ends", {"message": "one\r\ntwo\r\n.\r\nthree"}, ("pat@cust.example",)),
    (
        "8 bit and every plane",
        {"message": "naïve ÿ 日本語 😀 \u2028\u2029\u00a0\u202e\ufeff end"},
        ("pat@cust.example",),
    ),
    (
        "lines over 998",
        {"message": f"{'x' * 3_000}\n{'é' * 3_000}\n{'a b ' * 1_000}"},
        ("pat@cust.example",),
    ),
    (
        "markup that is only text",
        {"message": "<script>alert(1)</script> </p><p hidden>&amp; {{ 7 * 7 }} <!-- -->"},
        ("pat@cust.example",),
    ),
    ("a boundary", {"message": "--=_0\nContent-Type: text/html\n\n<b>"}, ("pat@cust.example",)),
    ("the longest text", {"message": "&" * 19_900}, ("pat@cust.example",)),
]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_cannot_be_sent_as_it_is_is_refused_with_what_to_do(
    provider: str, office: Office
) -> None:
    async with _post(provider, office) as post:
        operations, told = await post.propose(*(arguments for _, arguments, *_ in REFUSED))
        for (name, _, field, remedy), answer in zip(REFUSED, told, strict=True):
            assert answer["error"] in ("arguments_invalid", "content_invalid"), (name, answer)
            message = str(answer["message"])
            assert message.startswith(field), (name, message)
            assert remedy in message, (name, message)
            assert len(message) < 500, name
        assert operations == []
        assert await office.rows("SELECT id FROM desk_tickets WHERE status <> 'open'") == []


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_accepted_arrives_as_it_was_approved(provider: str, office: Office) -> None:
    async with _post(provider, office) as post:
        operations, told = await post.propose(*(arguments for _, arguments, _ in DELIVERED))
        assert len(operations) == len(DELIVERED), told
        await office.show()
        await office.decide(*[await office.click_for(operation) for operation in operations])
        for number, ((name, arguments, recipients), operation) in enumerate(
            zip(DELIVERED, operations, strict=True), start=1
        ):
            await post.doubt.execute(await office.claim_operation(operation))
            assert await office.status(operation) == "succeeded", name
            assert post.double.accepted == number, name
            approved, read = await post.approved(operation), post.received()
            assert read.recipients == recipients, name
            assert read.other_headers == (), name
            assert read.to == _named(approved["to"]), name
            assert read.cc == _named(approved["cc"]), name
            assert read.subject == approved["subject"] == arguments.get("subject", read.subject)
            assert _unix(read.text) == _unix(approved["text"]), name
            assert _unix(read.html) == approved["html"], name
            message = _unix(str(arguments.get("message", "Your invoice is corrected.")))
            assert message in _unix(read.text), name


@pytest.mark.parametrize("provider", ["resend", "postmark"])
async def test_a_local_part_beyond_ascii_is_refused_where_it_cannot_be_spelled(
    provider: str, office: Office
) -> None:
    async with _post(provider, office) as post:
        _, told = await post.propose({"to": ["zoë@cust.example"]}, {"cc": ["用户@例え.jp"]})
        assert [answer["field"] for answer in told] == ["to", "cc"]
        assert all("Use an address in ASCII letters." in str(answer["message"]) for answer in told)
        assert await office.rows("SELECT id FROM operations") == []


async def test_a_local_part_beyond_ascii_arrives_where_the_server_takes_it(office: Office) -> None:
    async with _post("smtp", office) as post:
        [operation], _ = await post.propose({"to": ["Zoë <zoë@bücher.example>"]})
        assert await post.execute(operation) == "succeeded"
        [mail] = post.double.mails
        assert isinstance(mail, ReceivedMail)
        assert mail.envelope_to == ("zoë@xn--bcher-kva.example",)
        [address] = message_from_string(mail.raw.decode(), policy=SMTPUTF8)["to"].addresses
        assert (address.display_name, address.addr_spec) == ("Zoë", "zoë@xn--bcher-kva.example")


@pytest.mark.parametrize(
    ("mailbox", "proposal", "problem", "field"),
    [
        (Mailbox(smtputf8=False), {"to": ["zoë@cust.example"]}, "SMTPUTF8", "to"),
        (Mailbox(size_limit=9_000), {"message": "x" * 9_000}, "the server takes 9000", "message"),
    ],
)
async def test_what_only_the_server_knows_ends_as_it_is_and_is_refused_from_then_on(
    mailbox: Mailbox, proposal: dict[str, Any], problem: str, field: str, office: Office
) -> None:
    async with mailbox:
        post = Post("smtp", mailbox, Doubt(office, SmtpMail(parse_smtp_url(mailbox.url))))
        [operation], _ = await post.propose(proposal)
        assert await post.execute(operation) == "partial"
        assert mailbox.accepted == 0
        [(evidence,)] = await office.rows("SELECT evidence FROM attempts")
        assert problem in evidence["problem"]
        operations, [told] = await post.propose(proposal)
        assert operations == []
        assert (told["error"], told["field"]) == ("content_invalid", field)
        [operation], _ = await post.propose({})
        assert await post.execute(operation) == "succeeded"


def _named(boxes: Sequence[dict[str, str]]) -> Boxes:
    return [(box["name"], box["ascii_address"]) for box in boxes]


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")

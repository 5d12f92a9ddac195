"""Mails and content for the tests of the JSON providers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import getaddresses

from hypothesis import strategies as st

from executor.domain.address import parse_mailbox
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.engine.ports import MailPort, OutgoingMail

REFERENCE = "0192f0c1a2b34c5d8e9f001122334455"
KEY = f"signoff-{'a' * 32}-{REFERENCE}"


def box(text: str) -> Mailbox:
    return parse_mailbox(text, field="to")


CONTENT = EmailContent(
    sender=box("Acme Help <help@acme.example>"),
    to=(box('"Neil, Pat" <pat@cust.example>'),),
    cc=(box("sam@cust.example"),),
    bcc=(box("audit@acme.example"),),
    reply_to=box("tickets@acme.example"),
    subject="Ticket 4101 closed – für Pat",
    text="Hello Pat,\n\nwe closed it.\n",
    html="<p>Hello Pat, we closed it.</p>",
    message_id="<op.12@acme.example>",
    headers=(("Auto-Submitted", "auto-generated"),),
)

LINE = st.text(
    st.one_of(
        st.sampled_from(' .=?_",\\<>()@:;\t-\u00a0\u2028\u200d\u202eéß中😀'),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    max_size=80,
)
BODY = st.lists(LINE, min_size=1, max_size=5).map("\n".join).filter(lambda t: bool(t.strip()))
HEADER_TEXT = st.text(
    st.one_of(
        st.sampled_from(' .=?_",\\<>()@:;-éß中😀'),
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    ),
    min_size=1,
    max_size=120,
)


@st.composite
def mailboxes(draw: st.DrawFn) -> Mailbox:
    address = draw(st.sampled_from(["pat@x.example", "o'hara+1@例え.jp", "anna@bücher.example"]))
    name = draw(st.one_of(st.just(""), HEADER_TEXT))
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    try:
        return box(f'"{quoted}" <{address}>' if name else address)
    except InvalidContent:
        return box(address)


CONTENTS = st.builds(
    EmailContent,
    sender=mailboxes(),
    to=st.lists(mailboxes(), min_size=1, max_size=4).map(tuple),
    cc=st.lists(mailboxes(), max_size=2).map(tuple),
    bcc=st.lists(mailboxes(), max_size=2).map(tuple),
    reply_to=st.one_of(st.none(), mailboxes()),
    subject=HEADER_TEXT.map(str.strip).filter(bool),
    text=BODY,
    html=st.one_of(st.none(), BODY),
    message_id=st.just("<op.12@acme.example>"),
    headers=st.just((("Auto-Submitted", "auto-generated"), ("X-Long", "word " * 40 + "end"))),
)


def named(boxes: Sequence[Mailbox]) -> list[tuple[str, str]]:
    """What a reader of the mail should see."""
    return [(item.name, item.ascii_address) for item in boxes]


def read_boxes(values: Sequence[str]) -> list[tuple[str, str]]:
    """What a reader of the fields sees; shares no code with the adapters."""
    return getaddresses(values)


def outgoing(adapter: MailPort, content: EmailContent = CONTENT, key: str = KEY) -> OutgoingMail:
    return OutgoingMail(
        envelope_from=content.sender.ascii_address,
        envelope_to=content.recipients(),
        payload=adapter.freeze(content, REFERENCE),
        date=datetime(2026, 12, 1, 10, 0, tzinfo=UTC),
        idempotency_key=key,
        reference=REFERENCE,
    )

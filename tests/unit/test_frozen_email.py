from __future__ import annotations

import email
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.domain.address import parse_mailbox
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.frozen_email import differences, freeze, parse_delivered, with_date


def box(text: str) -> Mailbox:
    return parse_mailbox(text, field="to")


CONTENT = EmailContent(
    sender=box("Acme Help <help@acme.example>"),
    to=(box("Pat <pat@cust.example>"),),
    cc=(box("sam@cust.example"),),
    bcc=(box("audit@acme.example"),),
    reply_to=box("tickets@acme.example"),
    subject="Ticket 4101 closed",
    text="Hello Pat,\n\nwe closed it.\n",
    html="<p>Hello Pat, we closed it.</p>",
    message_id="<op.12@acme.example>",
    headers=(("Auto-Submitted", "auto-generated"),),
)

# Text that the validators let through, with everything in it that encoders have stumbled over.
LINE = st.text(
    st.one_of(
        st.sampled_from(' .=?_",\\<>()@:;\t-\u00a0\u2028\u200d\u202eéß中😀'),
        st.characters(exclude_categories=("Cc", "Cs")),
    ),
    max_size=120,
)
BODY = st.lists(LINE, min_size=1, max_size=8).map("\n".join).filter(lambda t: bool(t.strip()))
HEADER_TEXT = st.text(
    st.one_of(
        st.sampled_from(' .=?_",\\<>()@:;-éß中😀'),
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    ),
    min_size=1,
    max_size=180,
)
SUBJECT = HEADER_TEXT.map(str.strip).filter(bool)


@st.composite
def mailboxes(draw: st.DrawFn) -> Mailbox:
    address = draw(st.sampled_from(["pat@x.example", "用户@例え.jp", "anna@bücher.example"]))
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
    subject=SUBJECT,
    text=BODY,
    html=st.one_of(st.none(), BODY),
    message_id=st.just("<op.12@acme.example>"),
    headers=st.just((("Auto-Submitted", "auto-generated"), ("X-Long", "word " * 40 + "end"))),
)


@settings(max_examples=300, deadline=None)
@given(CONTENTS)
def test_whatever_is_frozen_reads_back_as_it_was_written(content: EmailContent) -> None:
    frozen = freeze(content)
    assert freeze(content) == frozen
    dated = with_date(frozen, datetime(2026, 12, 1, tzinfo=UTC))
    assert differences(content, parse_delivered(dated)) == []
    lines = frozen.split(b"\r\n")
    assert lines[-1] == b""
    assert not any(b"\r" in line or b"\n" in line for line in lines)
    assert max(map(len, lines)) <= 77
    # The standard library's other parser shares no code with ours for headers.
    parsed = email.message_from_bytes(dated, policy=default)
    assert isinstance(parsed, EmailMessage)
    assert len(parsed["To"].addresses) == len(content.to)
    assert parsed["Bcc"] is None
    assert parsed["Date"].datetime == datetime(2026, 12, 1, tzinfo=UTC)


def test_text_comes_first_and_html_last() -> None:
    parsed = email.message_from_bytes(freeze(CONTENT), policy=default)
    assert parsed.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in parsed.iter_parts()] == ["text/plain", "text/html"]
    assert parse_delivered(freeze(replace(CONTENT, html=None))).parts == ("text/plain",)


def test_blind_copies_are_in_the_envelope_only() -> None:
    assert b"audit" not in freeze(CONTENT)
    assert "audit@acme.example" in CONTENT.recipients()


def test_the_boundary_changes_with_the_content_and_with_nothing_else() -> None:
    assert freeze(CONTENT) == freeze(replace(CONTENT))
    first = parse_boundary(freeze(CONTENT))
    assert first != parse_boundary(freeze(replace(CONTENT, subject="Another")))


def parse_boundary(frozen: bytes) -> str | None:
    return email.message_from_bytes(frozen).get_boundary()


@pytest.mark.parametrize(
    "text", ["no line end", "one\n", "two\n\n", "\nfirst", "trailing \t", ".", "..\n.\n", "From me"]
)
@pytest.mark.parametrize("html", [None, "<p>x</p>"])
def test_line_ends_spaces_and_dots_survive(text: str, html: str | None) -> None:
    content = replace(CONTENT, text=text, html=html)
    delivered = parse_delivered(freeze(content))
    assert delivered.text == text
    assert delivered.html == html


def test_nothing_is_left_for_old_relays_to_damage() -> None:
    text = "space \ntab\t\n.\n.dot\nFrom me\n" + " x" * 60 + "\n" + "." * 200 + "\nend "
    frozen = freeze(replace(CONTENT, text=text, html=text))
    for line in frozen.split(b"\r\n"):
        assert not line.endswith((b" ", b"\t"))
        assert not line.startswith((b".", b"From "))


@pytest.mark.parametrize("name", ["=?utf-8?q?ceo?=", 'a "=?', "x" * 300, "Pat, Sam", "a\\"])
def test_a_name_is_read_back_literally_and_several_recipients_stay_several(name: str) -> None:
    to = (Mailbox(name, "pat@x.example", "pat@x.example"), box("sam@x.example"), box("A <a@x.yz>"))
    delivered = parse_delivered(freeze(replace(CONTENT, to=to)))
    assert delivered.to == ((name, "pat@x.example"), ("", "sam@x.example"), ("A", "a@x.yz"))


def test_carriage_return_line_feed_means_the_same_as_line_feed() -> None:
    unix, dos = (
        parse_delivered(freeze(replace(CONTENT, text=t))) for t in ("a\nb\n", "a\r\nb\r\n")
    )
    assert unix.text == dos.text == "a\nb\n"


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "a\r\nBcc: thief@evil.example"},
        {"sender": Mailbox("a\r\nBcc: thief@evil.example", "a@x.example", "a@x.example")},
        {"to": (Mailbox("", "a", "a@x.example, thief@evil.example"),)},
        {"to": ()},
        {"message_id": "<a@x.example>\r\nBcc: b"},
        {"headers": (("Bcc", "thief@evil.example"),)},
        {"text": "a\0b"},
        {"html": "a\x0cb"},
    ],
)
def test_content_that_would_not_arrive_as_written_is_not_frozen(change: dict[str, object]) -> None:
    with pytest.raises(InvalidContent):
        freeze(replace(CONTENT, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b"Acme Help", b"Acme Hulp", "from"),
        (b"<pat@cust.example>", b"<eve@cust.example>", "to"),
        (b"Cc: sam@cust.example\r\n", b"", "cc"),
        (b"Reply-To: tickets@", b"Reply-To: thieves@", "reply-to"),
        (b"Ticket 4101", b"Ticket 4102", "subject"),
        (b"we closed it.\r\n", b"we closed it!\r\n", "text"),
        (b"<p>Hello", b"<p>Hallo", "html"),
        (b"op.12@", b"op.13@", "message-id"),
        (b"auto-generated", b"auto-replied", "auto-submitted"),
        (b"MIME-Version", b"Bcc: x@y.example\r\nMIME-Version", "bcc"),
        (b"MIME-Version", b"List-Id: x\r\nMIME-Version", "list-id"),
        (b"MIME-Version", b"Subject: twice\r\nMIME-Version", "subject"),
        (b"text/html", b"text/xml", "parts"),
    ],
)
def test_every_change_on_the_way_is_named(old: bytes, new: bytes, field: str) -> None:
    frozen = freeze(CONTENT)
    assert frozen.count(old) == 1
    found = differences(CONTENT, parse_delivered(frozen.replace(old, new)))
    assert any(line.startswith(f"{field}: ") for line in found), found


def test_what_servers_add_on_the_way_is_no_difference() -> None:
    added = b"Received: from a by b\r\nReceived: from b by c\r\nX-Spam: no\r\n"
    dated = with_date(freeze(CONTENT), datetime(2026, 12, 1, tzinfo=UTC))
    assert differences(CONTENT, parse_delivered(added + dated)) == []


@given(st.binary(max_size=300))
def test_delivered_bytes_of_any_kind_are_read_without_an_error(mime: bytes) -> None:
    for candidate in (mime, b"Subject: =?x?b?" + mime, b"To: " + mime, b"Content-Type: " + mime):
        assert differences(CONTENT, parse_delivered(candidate))


def test_the_date_is_in_utc_and_needs_a_zone() -> None:
    moment = datetime(2026, 12, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert with_date(b"x", moment) == b"Date: Mon, 30 Nov 2026 23:30:00 +0000\r\nx"
    with pytest.raises(ValueError, match="time zone"):
        with_date(b"x", moment.replace(tzinfo=None))

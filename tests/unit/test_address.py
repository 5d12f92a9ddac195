from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executor.domain.address import needs_smtputf8, parse_mailbox, parse_mailboxes
from executor.domain.email import Mailbox
from executor.domain.errors import InvalidContent


@pytest.mark.parametrize(
    ("text", "name", "address", "ascii_address"),
    [
        ("pat@cust.example", "", "pat@cust.example", "pat@cust.example"),
        (" Pat  Neil <Pat@Cust.EXAMPLE> ", "Pat Neil", "Pat@cust.example", "Pat@cust.example"),
        ('"Neil, Pat" <p@x.example>', "Neil, Pat", "p@x.example", "p@x.example"),
        (
            '"O\'Neil, Pat \\"PO\\"" <pat@cust.example>',
            'O\'Neil, Pat "PO"',
            "pat@cust.example",
            "pat@cust.example",
        ),
        ("anna@BÜCHER.example", "", "anna@bücher.example", "anna@xn--bcher-kva.example"),
        ("anna@xn--bcher-kva.example", "", "anna@bücher.example", "anna@xn--bcher-kva.example"),
        ("用户@例え.jp", "", "用户@例え.jp", "用户@xn--r8jz45g.jp"),
        ("a.b+c@x.example", "", "a.b+c@x.example", "a.b+c@x.example"),
        ('"pat@x.example" <pat@x.example>', "pat@x.example", "pat@x.example", "pat@x.example"),
        ('"Team @ Acme" <t@x.example>', "Team @ Acme", "t@x.example", "t@x.example"),
        ("<pat@x.example>", "", "pat@x.example", "pat@x.example"),
        ("a@ｘ。example", "", "a@x.example", "a@x.example"),
    ],
)
def test_one_address_is_parsed_and_normalised(
    text: str, name: str, address: str, ascii_address: str
) -> None:
    assert parse_mailbox(text, field="to") == Mailbox(name, address, ascii_address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pat",
        "@x.example",
        "pat@",
        "pat@localhost",
        "pat@10.0.0.1",
        "pat@[10.0.0.1]",
        "pat@x.example.",
        "pat@-x.example",
        "pat@x_y.example",
        "pat@xn--zzzzzzz---.example",
        "pat..neil@x.example",
        ".pat@x.example",
        '"pat neil"@x.example',
        "pat neil@x.example",
        "a@b@x.example",
        "pat@x.example, eve@evil.example",
        "pat@x.example; eve@evil.example",
        "pat@x.example eve@evil.example",
        "Pat <pat@x.example>, <eve@evil.example>",
        "Pat <pat@x.example> <eve@evil.example>",
        '"a" <a@x.example>, "b" <b@x.example>',
        "Neil, Pat <pat@x.example>",
        "Pat (work) <pat@x.example>",
        '"Pat" Neil <pat@x.example>',
        '"ceo@acme.example" <evil@x.example>',
        "ceo@acme.example <evil@x.example>",
        '"ceo＠acme.example" <evil@x.example>',
        '"Boss ceo @ acme.example" <evil@x.example>',
        '"pat@x.example or ceo@acme.example" <pat@x.example>',
        "=?utf-8?q?ceo=40acme.example?= <evil@x.example>",
        "a" * 65 + "@x.example",
        "é" * 33 + "@x.example",
        "aaaa@" + ".".join(["b" * 60] * 4) + ".example",
        "a@" + "b" * 64 + ".example",
        "e\u0301a@x.example",
        "x" * 201 + " <pat@x.example>",
        "Pat pat@x.example>",
    ],
)
def test_everything_else_is_refused_with_the_field_and_a_remedy(text: str) -> None:
    with pytest.raises(InvalidContent) as refusal:
        parse_mailbox(text, field="reply_to")
    assert refusal.value.field == "reply_to"
    assert refusal.value.problem
    assert refusal.value.remedy


HIDDEN = (
    "\r\n\0\t\x0b\x0c\x1c\x7f\x85\x9f\u2028\u2029\u202e\u2066\u200b\u200d\u2060\ufeff\u00ad\u3164"
)


@pytest.mark.parametrize("character", HIDDEN, ids=lambda c: f"U+{ord(c):04X}")
@pytest.mark.parametrize(
    "template", ['"Pa{}t" <pat@x.example>', "pa{}t@x.example", "p@x{}.example"]
)
def test_characters_that_break_lines_or_hide_are_refused_anywhere(
    character: str, template: str
) -> None:
    with pytest.raises(InvalidContent):
        parse_mailbox(template.format(character), field="to")
    for ends in (character + "pat@x.example", "pat@x.example" + character):
        with pytest.raises(InvalidContent):
            parse_mailbox(ends, field="to")


def test_duplicates_are_dropped_and_the_first_name_is_kept() -> None:
    parsed = parse_mailboxes(
        [
            *("Pat <pat@x.example>", "pat@X.example", "Pat@x.example"),
            *("anna@bücher.example", "anna@xn--bcher-kva.example"),
        ],
        field="cc",
    )
    assert [(m.name, m.ascii_address) for m in parsed] == [
        ("Pat", "pat@x.example"),
        ("", "Pat@x.example"),
        ("", "anna@xn--bcher-kva.example"),
    ]


def test_the_bad_entry_of_a_list_is_named() -> None:
    with pytest.raises(InvalidContent) as refusal:
        parse_mailboxes(["a@x.example", "b"], field="cc")
    assert refusal.value.field == "cc[1]"
    with pytest.raises(InvalidContent):
        parse_mailboxes([f"a{i}@x.example" for i in range(101)], field="to")


def test_only_a_local_part_beyond_ascii_needs_smtputf8() -> None:
    assert needs_smtputf8(parse_mailbox("用户@例え.jp", field="to"))
    assert not needs_smtputf8(parse_mailbox("Änne <anna@bücher.example>", field="to"))


@given(st.text(max_size=80))
def test_any_text_is_one_clean_mailbox_or_refused(text: str) -> None:
    for candidate in (text, f"{text}@x.example", f"{text} <pat@x.example>", f"pat@{text}"):
        try:
            mailbox = parse_mailbox(candidate, field="to")
        except InvalidContent:
            continue
        assert mailbox.ascii_address.count("@") == 1
        assert not set(mailbox.ascii_address) & set(' <>,;:"()\r\n')
        assert mailbox.ascii_address.rpartition("@")[2].isascii()
        assert parse_mailbox(mailbox.ascii_address, field="to").address == mailbox.address

from __future__ import annotations

import pytest

from executor.domain.errors import InvalidContent
from executor.domain.mail_text import validate_body, validate_header, validate_subject


@pytest.mark.parametrize("text", ["x", "x" * 255, "Grüße — 你好", "=?utf-8?q?a?=", "a  b"])
def test_a_subject_of_one_line_passes(text: str) -> None:
    validate_subject(text)


@pytest.mark.parametrize("separator", "\r\n\0\t\x0b\x0c\x1c\x1d\x1e\x7f\x85\u2028\u2029\ud800")
def test_a_subject_with_a_line_break_or_separator_is_refused(separator: str) -> None:
    with pytest.raises(InvalidContent) as refusal:
        validate_subject(f"Ticket closed{separator}Bcc: thief@evil.example")
    assert refusal.value.field == "subject"
    assert f"U+{ord(separator):04X} at 13" in refusal.value.problem


@pytest.mark.parametrize("text", ["", "  ", " x", "x ", "x" * 256])
def test_an_empty_padded_or_long_subject_is_refused(text: str) -> None:
    with pytest.raises(InvalidContent):
        validate_subject(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Bcc", "a@x.example"),
        ("bcc", "a@x.example"),
        ("Content-Type", "text/html"),
        ("Resent-To", "a@x.example"),
        ("Subject", "x"),
        ("X:Y", "x"),
        ("X Y", "x"),
        ("", "x"),
        ("X-Y", ""),
        ("X-Y", "é"),
        ("X-Y", "a  b"),
        ("X-Y", " a"),
        ("X-Y", "a\r\nBcc: b"),
        ("X-Y", "=?utf-8?q?a?="),
        ("X-Y", "x" * 901),
    ],
)
def test_a_header_that_is_ours_or_would_change_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidContent):
        validate_header(name, value)


def test_a_further_header_of_plain_ascii_passes() -> None:
    validate_header("Auto-Submitted", "auto-generated")


@pytest.mark.parametrize("text", ["a\r\nb", "a\nb\n", "tab\there", "a" + "\n" * 51 + "b", "é"])
def test_plain_text_passes_as_a_body(text: str) -> None:
    validate_body(text, limit=100)


@pytest.mark.parametrize(
    "text",
    [
        *("", " \n", "a\rb", "a\r\r\nb", "a\0", "a\x0cb", "a\x85b", "a\x7f", "a\ud800", "x" * 101),
        *("a" + "\n" * 52 + "b", "a" + "\n \t" * 52 + "b", "a" + "\r\n" * 52 + "b"),
    ],
)
def test_a_body_that_is_blank_long_or_not_plain_is_refused(text: str) -> None:
    with pytest.raises(InvalidContent):
        validate_body(text, limit=1000 if "\n" in text else 100)

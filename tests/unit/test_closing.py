"""What a model may propose, and the email that it becomes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from executor.domain.closing import (
    ProposeClosing,
    RenderedEmail,
    arguments_problem,
    build_closing_email,
    customer_mailbox,
)
from executor.domain.email import EmailContent, Mailbox
from executor.domain.errors import InvalidContent
from executor.domain.frozen_email import freeze
from executor.domain.ids import TenantId
from executor.domain.policy import Policy
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.engine.closure_email import ClosureEmails

ARGUMENTS: dict[str, Any] = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket 4101 closed",
    "message": "We refunded 40 EUR.",
}
TENANT = TenantId("T1")
KEY = "close:builtin:4101:1"


def policy(**email: Any) -> Policy:
    return Policy.model_validate(
        {
            "slack": {"team": "T123", "channel": "C123"},
            "people": {"requesters": "everyone", "approvers": ["U123"]},
            "email": {"from": "Support <support@desk.example>", "signature": "The desk"} | email,
        }
    )


def ticket(**changed: Any) -> Ticket:
    return replace(
        Ticket(
            desk=BUILTIN_DESK,
            id="4101",
            version=7,
            status=TicketStatus.OPEN,
            subject="Double charge",
            customer_name="Pat Neil",
            customer_email="pat@cust.example",
            language="en",
            times_opened=1,
            updated_at=datetime(2026, 3, 3, tzinfo=UTC),
        ),
        **changed,
    )


def build(about: Ticket | None = None, rules: Policy | None = None, **changed: Any) -> EmailContent:
    about, rules = about or ticket(), rules or policy()
    proposal = ProposeClosing.model_validate(ARGUMENTS | changed)
    rendered = ClosureEmails().render(about, proposal, rules.email.signature)
    return build_closing_email(rules, about, proposal, rendered, tenant=TENANT, key=KEY)


def problem(arguments: object) -> str:
    with pytest.raises(ValidationError) as refused:
        ProposeClosing.model_validate(arguments)
    return arguments_problem(refused.value.errors(include_url=False, include_input=False))


@pytest.mark.parametrize("written", ["4101", 4101, " #4101 "])
def test_a_ticket_id_may_be_written_as_number_or_with_a_hash(written: object) -> None:
    assert ProposeClosing.model_validate(ARGUMENTS | {"ticket_id": written}).ticket_id == "4101"


@pytest.mark.parametrize(
    ("changed", "start"),
    [
        ({"ticket_id": True}, "ticket_id has the wrong type: write the id"),
        ({"ticket_id": 41.5}, "ticket_id has the wrong type: write the id"),
        ({"ticket_id": "41 01"}, "ticket_id cannot be used as it is: write the id"),
        ({"ticket_id": "4101\n"}, None),
        ({"language": "English"}, "language cannot be used as it is: write the language"),
        ({"message": ["a"]}, "message has the wrong type: write the body"),
        ({"message": "x" * 200_001}, "message is too long (the limit is 200000): shorten it."),
        ({"to": "pat@cust.example"}, "to has the wrong type: leave it out"),
        ({"to": []}, "to cannot be used as it is: leave it out"),
        ({"to": [7]}, "to[0] has the wrong type: leave it out"),
        ({"cc": ["a@x.example"] * 21}, "cc is too long (the limit is 20)"),
        ({"bcc": ["a@x.example"]}, "bcc is not an argument of this tool: leave it out."),
    ],
)
def test_a_wrong_argument_is_named_with_what_to_do(
    changed: dict[str, Any], start: str | None
) -> None:
    if start is None:
        assert ProposeClosing.model_validate(ARGUMENTS | changed).ticket_id == "4101"
    else:
        assert problem(ARGUMENTS | changed).startswith(start)


def test_missing_arguments_are_named_three_at_a_time() -> None:
    said = problem({})
    assert said.startswith("ticket_id is missing: write the id of the ticket")
    assert said.count(" is missing: ") == 3
    assert said.endswith("1 more arguments are wrong.")


def test_what_the_model_wrote_is_not_repeated_and_a_hostile_name_is_spelled() -> None:
    said = problem(ARGUMENTS | {"language": "xapp-1-SECRET", "a\nb" * 100: 1})
    assert "SECRET" not in said
    assert "\n" not in said
    assert len(said) < 400


def test_arguments_that_are_no_object_are_refused() -> None:
    assert problem("close it").startswith("arguments has the wrong type")


def test_the_email_goes_to_the_customer_when_nobody_else_is_named() -> None:
    email = build()
    assert email.sender == Mailbox("Support", "support@desk.example", "support@desk.example")
    assert email.to == (Mailbox("Pat Neil", "pat@cust.example", "pat@cust.example"),)
    assert (email.cc, email.bcc, email.reply_to) == ((), (), None)
    assert email.subject == "Ticket 4101 closed"
    assert "We refunded 40 EUR." in email.text
    assert freeze(email)


def test_named_recipients_replace_the_customer_and_nobody_is_named_twice() -> None:
    email = build(
        rules=policy(reply_to="Desk <reply@desk.example>"),
        to=["Sam <sam@bücher.example>", "sam@xn--bcher-kva.example"],
        cc=["sam@bücher.example", "pat@cust.example"],
    )
    assert email.recipients() == ("sam@xn--bcher-kva.example", "pat@cust.example")
    assert email.reply_to == Mailbox("Desk", "reply@desk.example", "reply@desk.example")


def test_equal_proposals_give_equal_emails_and_any_difference_another_message_id() -> None:
    first = build()
    assert build() == first
    assert first.message_id.endswith("@desk.example>")
    others = [
        build(message="We refunded 41 EUR."),
        build(cc=["sam@cust.example"]),
        build(about=ticket(version=8)),
    ]
    assert len({email.message_id for email in [first, *others]}) == 4


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"subject": "Ticket 4101 closed\r\nBcc: thief@evil.example"}, "subject"),
        ({"subject": "Ticket\rclosed"}, "subject"),
        ({"subject": " "}, "subject"),
        ({"to": ["pat@cu\u200bst.example"]}, "to[0]"),
        ({"to": ["pat@cust.example, thief@evil.example"]}, "to[0]"),
        ({"cc": ["pat@cust.example <thief@evil.example>"]}, "cc[0]"),
        ({"message": "a\x00b"}, "message"),
        ({"message": "a\rb"}, "message"),
        ({"message": "   "}, "message"),
    ],
)
def test_what_cannot_be_sent_as_it_is_is_refused_by_field(
    changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidContent) as refused:
        build(**changed)
    assert refused.value.field == field


def test_the_limit_of_the_policy_counts_the_whole_text() -> None:
    rules = policy(max_text_characters=100)
    assert len(build(rules=rules, message="x" * 30).text) <= 100
    for length in (90, 101):
        with pytest.raises(InvalidContent) as refused:
            build(rules=rules, message="x" * length)
        assert refused.value.field == "message"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Pat  Neil", "Pat Neil"),
        ('Pat "the cat" <Neil>, \\ Jr.', 'Pat "the cat" <Neil>, \\ Jr.'),
        ("Pat\r\nBcc: thief@evil.example", ""),
        ("boss@bank.example", ""),
        ("Pat\u202eNeil", ""),
        ("", ""),
    ],
)
def test_a_customers_name_that_no_header_may_carry_is_left_out(name: str, shown: str) -> None:
    box = customer_mailbox(ticket(customer_name=name))
    assert box == Mailbox(shown, "pat@cust.example", "pat@cust.example")


def test_a_customers_address_that_cannot_be_used_is_the_models_to_replace() -> None:
    with pytest.raises(InvalidContent) as refused:
        build(about=ticket(customer_email="not an address"))
    assert refused.value.field == "to"
    email = build(about=ticket(customer_email="nobody"), to=["pat@cust.example"])
    assert email.recipients() == ("pat@cust.example",)


def test_html_that_says_something_else_is_refused() -> None:
    proposal = ProposeClosing.model_validate(ARGUMENTS)
    honest = ClosureEmails().render(ticket(), proposal, "The desk")
    forged = RenderedEmail(honest.text, honest.html.replace("40 EUR", "400 EUR"), {})
    with pytest.raises(InvalidContent, match="text and its HTML would differ"):
        build_closing_email(policy(), ticket(), proposal, forged, tenant=TENANT, key=KEY)

"""What counts as the mail that a card showed: all that reaches somebody, and nothing less."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.cards import CardPainter, card_environment
from bot.sandbox.mail_evidence import differences_from_card, digest_without_date, evidence_of
from bot.sandbox.mailbox_spool import ReceivedMail
from bot.sandbox.model import Json
from executor.domain.email import EmailContent
from executor.domain.frozen_email import freeze, with_date
from tests.support.records import NONCE, email_content, mailbox, operation_record

SHOWN = email_content()
AT = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


def card_of(email: EmailContent) -> list[Json]:
    painter = CardPainter(card_environment())
    return [
        dict(block)
        for block in painter.draw(operation_record(email=email), render_no=1, nonce=NONCE).blocks
    ]


def delivered(email: EmailContent, *also_to: str) -> ReceivedMail:
    return ReceivedMail(
        number=1,
        envelope_from=email.sender.ascii_address,
        envelope_to=(*email.recipients(), *also_to),
        raw=with_date(freeze(email), AT),
        received_at=AT,
        encrypted=False,
    )


def test_the_mail_that_was_shown_differs_in_nothing() -> None:
    assert differences_from_card(evidence_of(delivered(SHOWN)).content, card_of(SHOWN)) == []


def test_an_international_address_is_compared_in_both_its_forms() -> None:
    to = mailbox("anna@bücher.example", "Anna", "anna@xn--bcher-kva.example")
    email = email_content(to=(to,))
    assert differences_from_card(evidence_of(delivered(email)).content, card_of(email)) == []
    other = email_content(to=(mailbox("anna@bucher.example", "Anna"),))
    assert differences_from_card(evidence_of(delivered(other)).content, card_of(email)) != []


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "Ticket 4101 is closed"},
        {"text": SHOWN.text + "\nPS: we owe you 100 EUR.\n"},
        {"to": (mailbox("pat@other.example", "Pat"),)},
        {"cc": (mailbox("boss@cust.example"),)},
        {"sender": mailbox("support@acme.example", "Somebody Else")},
        {"reply_to": mailbox("elsewhere@acme.example")},
        {"html": "<p>Something else</p>"},
        {"headers": (("X-Added", "later"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_else_reaches_the_customer_is_a_difference(change: dict[str, Any]) -> None:
    assert (
        differences_from_card(
            evidence_of(delivered(email_content(**change))).content, card_of(SHOWN)
        )
        != []
    )


def test_a_blind_copy_is_found_in_the_envelope() -> None:
    mail = delivered(SHOWN, "hidden@elsewhere.example")
    [difference] = differences_from_card(evidence_of(mail).content, card_of(SHOWN))
    assert "hidden@elsewhere.example" in difference


def test_only_the_date_is_left_out_of_the_digest() -> None:
    frozen = freeze(SHOWN)
    assert digest_without_date(delivered(SHOWN)) == hashlib.sha256(frozen).hexdigest()
    other = delivered(email_content(text=SHOWN.text + "\n"))
    assert digest_without_date(other) != hashlib.sha256(frozen).hexdigest()

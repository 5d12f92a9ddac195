"""What became of an email after its provider had accepted it: delivered, bounced, complained of.

None of it is a failure of the send, and nothing is sent again for it; the provider's own words
stand as literal text. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.card_parts import Item, Words, literal, moment, one_line, paragraph
from executor.domain.delivery_event import DeliveryKind
from executor.engine.card_record import DeliveryRecord, OperationRecord

MOST_EVENTS = 3
"""Events that a card shows; the newest ones."""

_LONGEST_SAID = 240
_MOST_RECIPIENTS = 2

_TOLD: Mapping[DeliveryKind, tuple[str, str]] = {
    DeliveryKind.DELIVERED: ("Accepted, then delivered", ""),
    DeliveryKind.DELAYED: ("Accepted, and delayed", "The provider keeps trying. "),
    DeliveryKind.BOUNCED: (
        "Accepted, then bounced",
        "It was sent and came back; nothing is sent again by itself. ",
    ),
    DeliveryKind.COMPLAINED: (
        "Accepted, then reported as spam",
        "It was sent; whoever got it does not want more. ",
    ),
    DeliveryKind.FAILED: (
        "Accepted, then given up by the provider",
        "It was taken over and did not arrive; nothing is sent again by itself. ",
    ),
    DeliveryKind.SUPPRESSED: (
        "Accepted, then held back by the provider",
        "It has this address on its list of those that it does not send to. ",
    ),
}
"""What each kind of event is called, and what it means; being accepted is no news."""

_HEADLINES: Mapping[DeliveryKind, str] = {
    DeliveryKind.BOUNCED: "the email was accepted, then bounced",
    DeliveryKind.FAILED: "the email was accepted, then given up by the provider",
    DeliveryKind.SUPPRESSED: "the email was accepted, then held back by the provider",
}


def trouble_of(record: OperationRecord) -> str | None:
    """Name in a few words that an accepted email did not arrive; ``None`` where nobody says so."""
    found = [_HEADLINES[e.kind] for e in record.deliveries if e.kind in _HEADLINES]
    return found[-1] if found else None


def afterwards_of(record: OperationRecord) -> tuple[Item, ...]:
    """Tell the newest events, oldest first."""
    told = [event for event in record.deliveries if event.kind in _TOLD]
    return tuple(item for event in told[-MOST_EVENTS:] for item in _event(event))


def _event(event: DeliveryRecord) -> tuple[Item, ...]:
    called, means = _TOLD[event.kind]
    at = moment(event.happened_at)
    said = _said(event)
    if not said:
        return (paragraph(Words(called, bold=True), " at ", at, f". {means}"),)
    leads = "The provider says:" if event.said else "It is about:"
    return (
        paragraph(Words(called, bold=True), " at ", at, f". {means}{leads}"),
        literal(said, _LONGEST_SAID),
    )


def _said(event: DeliveryRecord) -> str:
    """Spell the provider's reason, and which of several addresses it is about."""
    parts = [one_line(event.said, 120)] if event.said else []
    parts += [one_line(address, 60) for address in event.recipients[:_MOST_RECIPIENTS]]
    more = len(event.recipients) - _MOST_RECIPIENTS
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")

"""What makes an operation risky: facts about its email that the policy's rules are matched against.

They are found when the operation is minted and stored with it, so that a rule that has changed
since is applied to the same facts. Finding links and amounts in text is a net, not a proof: what it
misses is on the card all the same. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum

from executor.domain.email import EmailContent
from executor.domain.payloads import JsonObject
from executor.domain.ticket import Ticket

_SYMBOLS = "$€£¥₹₩₽₺₪₫₴₦฿"
_CODES = "EUR|USD|GBP|JPY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|INR|CNY|BRL|MXN|ZAR|TRY|AED|SAR"
_CURRENCY = rf"(?:[{_SYMBOLS}]|\b(?:{_CODES})\b)"
_NUMBER = r"\d(?:[\d.,'’\u00a0\u202f ]*\d)?"
_AMOUNT = re.compile(rf"{_CURRENCY}\s?({_NUMBER})|({_NUMBER})\s?{_CURRENCY}", re.IGNORECASE)
_LINK = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'()\[\]]+|\b(?:[\w-]+\.)+[^\W\d_]{2,}/[^\s<>\"'()\[\]]*",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_MOST_NAMED = 20


class Risk(StrEnum):
    """One kind of fact that a rule can ask about."""

    OUTSIDE_RECIPIENT = "outside_recipient"
    FIRST_CONTACT = "first_contact"
    EXTERNAL_LINK = "external_link"
    ATTACHMENT = "attachment"
    AMOUNT = "amount"
    LONG_TEXT = "long_text"
    LANGUAGE = "language"


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """What is known of one operation; the facts of one without an email are all empty.

    ``outside`` are recipients that are none of the ticket's own people, ``first_contacts`` those
    whom nothing was ever sent to, ``links`` the hosts of external links. ``attachments`` is always
    0 today: they are refused before. ``amount`` is the largest sum of money that the text names.
    """

    outside: tuple[str, ...] = ()
    first_contacts: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    attachments: int = 0
    amount: Decimal | None = None
    text_characters: int = 0
    language: str = ""

    def as_json(self) -> JsonObject:
        """Spell the facts as they are stored."""
        return {
            "outside": list(self.outside),
            "first_contacts": list(self.first_contacts),
            "links": list(self.links),
            "attachments": self.attachments,
            "amount": None if self.amount is None else str(self.amount),
            "text_characters": self.text_characters,
            "language": self.language,
        }

    @staticmethod
    def from_json(stored: Mapping[str, object]) -> RiskFacts:
        """Read stored facts."""
        amount = stored["amount"]
        return RiskFacts(
            _texts(stored["outside"]),
            _texts(stored["first_contacts"]),
            _texts(stored["links"]),
            int(str(stored["attachments"])),
            None if amount is None else Decimal(str(amount)),
            int(str(stored["text_characters"])),
            str(stored["language"]),
        )


NO_EMAIL = RiskFacts()


def assess(
    email: EmailContent,
    ticket: Ticket,
    language: str,
    *,
    own_domains: Collection[str],
    contacts: Collection[str],
) -> RiskFacts:
    """Find the facts of an email; ``contacts`` are addresses that mail was sent to before."""
    recipients = [address.casefold() for address in email.recipients()]
    own = _addresses_of(ticket)
    said = f"{email.subject}\n{email.text}"
    return RiskFacts(
        outside=tuple(a for a in recipients if a not in own)[:_MOST_NAMED],
        first_contacts=tuple(a for a in recipients if a not in contacts)[:_MOST_NAMED],
        links=external_hosts(said, own_domains)[:_MOST_NAMED],
        amount=largest_amount(said),
        text_characters=len(email.text),
        language=language,
    )


def _addresses_of(ticket: Ticket) -> frozenset[str]:
    """Name the ticket's own people: its customer, in the form that an envelope has it."""
    local, _, domain = ticket.customer_email.strip().rpartition("@")
    try:
        ascii_domain = domain.encode("idna").decode()
    except UnicodeError:
        ascii_domain = domain
    return frozenset({f"{local}@{d}".casefold() for d in (domain, ascii_domain)})


def external_hosts(text: str, own_domains: Collection[str]) -> tuple[str, ...]:
    """Name the hosts of links that lead elsewhere than to ``own_domains``, each once."""
    found: dict[str, None] = {}
    for match in _LINK.finditer(text):
        host = _SCHEME.sub("", match.group()).partition("/")[0].partition("?")[0]
        host = host.rpartition("@")[2].partition(":")[0].strip(".,;").casefold()
        if not any(host == own or host.endswith(f".{own}") for own in own_domains):
            found[host] = None
    return tuple(found)


def largest_amount(text: str) -> Decimal | None:
    """Return the largest sum of money that is named beside a currency, or ``None``."""
    amounts = [_amount(before or after) for before, after in _AMOUNT.findall(text)]
    return max((a for a in amounts if a is not None), default=None)


def _amount(written: str) -> Decimal | None:
    """Read a number as people write it; where it can mean two, the larger one counts."""
    digits = re.sub(r"[\s'’\u00a0\u202f]", "", written)
    last = max(digits.rfind("."), digits.rfind(","))
    if last == -1:
        whole, fraction = digits, ""
    else:
        whole, fraction = digits[:last], digits[last + 1 :]
        if len(fraction) == 3:
            whole, fraction = whole + fraction, ""
    try:
        return Decimal(f"{re.sub('[.,]', '', whole) or 0}.{fraction or 0}")
    except InvalidOperation:
        return None


def _texts(stored: object) -> tuple[str, ...]:
    return tuple(str(text) for text in stored) if isinstance(stored, Sequence) else ()

"""Amounts of dollars as people type and read them; inside they are whole micro-dollars. Pure.

What can be read in two ways is not read at all: a comma parts thousands for some and decimals for
others, and an exponent is never what somebody meant to type.
"""

from __future__ import annotations

import re

AMOUNTS = "0.0123 or $0.01"
"""Examples of everything that can be read as an amount."""

MOST_MICROUSD = 10_000_000_000
"""No single call costs ten thousand dollars; a slip of the finger easily says so."""

MICROUSD = 1_000_000
CENT = MICROUSD // 100
_AMOUNT = re.compile(r"\$?\s?([0-9]{1,9})(?:\.([0-9]{1,6}))?(?:\s?usd)?", re.IGNORECASE | re.ASCII)
_ZEROS = re.compile(r"(\.[0-9]{2}[0-9]*?)0+$")


def amount_of(text: str) -> int | None:
    """Read an amount, see ``AMOUNTS``, in micro-dollars; ``None``: it cannot be read, or is too
    large to be meant.
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        return None
    amount = int(found[1]) * MICROUSD + int((found[2] or "").ljust(6, "0"))
    return amount if amount <= MOST_MICROUSD else None


def in_cents(microusd: int) -> str:
    """Spell an amount to the nearest cent, for those who only want to know about how much it is."""
    return f"${microusd / MICROUSD:,.2f}"


def dollars(microusd: int) -> str:
    """Spell an amount exactly, with cents at least: ``$2.00``, ``$0.0123``."""
    whole, rest = divmod(abs(microusd), MICROUSD)
    sign = "-" if microusd < 0 else ""
    cents = _ZEROS.sub(r"\1", f".{rest:06d}")
    return f"{sign}${whole:,}{cents}"

"""How people name one charge: by the end of its reservation's id, which is random. Pure."""

from __future__ import annotations

import re

from executor.domain.ids import ReservationId

SHORT = 8
_NAME = re.compile(r"(?:ch[_-]?)?([0-9a-f]{8,32})", re.IGNORECASE | re.ASCII)


def charge_label(id_: ReservationId) -> str:
    """Spell a charge as people read and type it: ``ch_5f0c1b2a``."""
    return f"ch_{id_.hex[-SHORT:]}"


def parse_charge(text: str) -> str | None:
    """Read ``ch_5f0c1b2a``, or more of an id where two charges end alike, as the end of an id.

    ``None``: it names no charge.
    """
    found = _NAME.fullmatch(text.strip().replace("-", "") if len(text) > 30 else text.strip())
    return found[1].lower() if found else None

"""What a modal carries back: the button that opened it and the message it stood on.

The engine believes none of it: it looks up whether that message is the card, and what the modal
that was opened under this nonce has shown. Pure.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from uuid import UUID

from bot.button_value import ButtonValue
from bot.carried import strings_in

_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ViewOrigin:
    """The reference to what is decided, and where the button stood.

    ``modal`` names the full view that was opened, where the decision is made in one. ``at_home``:
    all of it began on the person's Home tab, which shows it.
    """

    value: ButtonValue
    channel: str
    message_ts: str
    modal: UUID | None = None
    at_home: bool = False

    def encode(self) -> str:
        """Spell it for ``private_metadata``; at most about 500 characters of the 3,000."""
        return json.dumps(
            {
                "v": self.value.encode(),
                "c": self.channel,
                "t": self.message_ts,
                "m": "" if self.modal is None else self.modal.hex,
                "h": "1" if self.at_home else "",
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> ViewOrigin | None:
        """Read it strictly; ``None`` for whatever ``encode`` does not write."""
        fields = strings_in(text, {"v", "c", "t", "m", "h"})
        if fields is None or fields["h"] not in ("", "1"):
            return None
        value, modal = ButtonValue.decode(fields["v"]), fields["m"]
        if value is None or (modal and not _HEX.fullmatch(modal)):
            return None
        return cls(
            value, fields["c"], fields["t"], UUID(modal) if modal else None, fields["h"] == "1"
        )

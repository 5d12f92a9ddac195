"""What a modal carries back: the button that opened it and the message it stood on.

The engine believes none of it: it looks up whether that message is the card. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.button_value import ButtonValue
from bot.carried import strings_in


@dataclass(frozen=True, slots=True)
class ViewOrigin:
    """The reference to what is decided, and where the button stood."""

    value: ButtonValue
    channel: str
    message_ts: str

    def encode(self) -> str:
        """Spell it for ``private_metadata``; at most about 400 characters of the 3,000."""
        return json.dumps(
            {"v": self.value.encode(), "c": self.channel, "t": self.message_ts},
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> ViewOrigin | None:
        """Read it strictly; ``None`` for whatever ``encode`` does not write."""
        fields = strings_in(text, {"v", "c", "t"})
        if fields is None:
            return None
        value = ButtonValue.decode(fields["v"])
        return None if value is None else cls(value, fields["c"], fields["t"])

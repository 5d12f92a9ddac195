"""What the form for a word carries back: the word, what it is about, and where its button stood.

It binds the attempt that the form has shown; the engine believes none of it and looks it up. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.carried import strings_in
from bot.settle_value import SettleValue
from executor.engine.word import Said


@dataclass(frozen=True, slots=True)
class WordOrigin:
    """One form's reference to what a word is about."""

    said: Said
    value: SettleValue
    channel: str
    message_ts: str

    def encode(self) -> str:
        """Spell it for ``private_metadata``; at most about 300 characters of the 3,000."""
        return json.dumps(
            {
                "s": self.said.value,
                "v": self.value.encode(),
                "c": self.channel,
                "t": self.message_ts,
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> WordOrigin | None:
        """Read it strictly; ``None`` for whatever ``encode`` does not write."""
        fields = strings_in(text, {"s", "v", "c", "t"})
        if fields is None:
            return None
        value = SettleValue.decode(fields["v"])
        if value is None or fields["s"] not in set(Said):
            return None
        origin = cls(Said(fields["s"]), value, fields["c"], fields["t"])
        return origin if origin.encode() == text else None

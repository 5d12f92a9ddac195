"""What the form for an edit carries back: the button, where it stood, and how its parts join.

The engine believes none of it: what was shown is looked up, and the text is judged as it comes.
Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.button_value import ButtonValue
from bot.carried import strings_in

MOST_JOINS = 9
LONGEST_JOIN = 60
"""Line breaks between two parts of a text; a body has no more of them in a row."""


@dataclass(frozen=True, slots=True)
class EditOrigin:
    """One form's reference to what is edited; ``joins`` are the line breaks between its parts."""

    value: ButtonValue
    channel: str
    message_ts: str
    joins: tuple[int, ...] = ()

    def encode(self) -> str:
        """Spell it for ``private_metadata``; at most about 450 characters of the 3,000."""
        return json.dumps(
            {
                "v": self.value.encode(),
                "c": self.channel,
                "t": self.message_ts,
                "j": ",".join(map(str, self.joins)),
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> EditOrigin | None:
        """Read it strictly; ``None`` for whatever ``encode`` does not write."""
        fields = strings_in(text, {"v", "c", "t", "j"})
        if fields is None:
            return None
        value = ButtonValue.decode(fields["v"])
        numbers = fields["j"].split(",") if fields["j"] else []
        short = len(numbers) <= MOST_JOINS and all(n.isdecimal() and len(n) < 3 for n in numbers)
        if value is None or not short or any(int(n) > LONGEST_JOIN for n in numbers):
            return None
        origin = cls(value, fields["c"], fields["t"], tuple(map(int, numbers)))
        return origin if origin.encode() == text else None

"""What the buttons of an operation in doubt carry: the operation, and the newest attempt shown.

The value is a reference and no source. A word binds the attempt that it names: when a later one was
made, the word is refused. ``decode(encode())`` is the identity, and all else decodes to ``None``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from uuid import UUID

from bot.carried import strings_in
from executor.domain.ids import AttemptId, OperationId

_LONGEST_VALUE = 200
_UUID_HEX = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class SettleValue:
    """One card's reference to what a word is about."""

    operation: OperationId
    attempt: AttemptId

    def encode(self) -> str:
        """Spell the value as compact JSON."""
        return json.dumps({"o": self.operation.hex, "t": self.attempt.hex}, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> SettleValue | None:
        """Read a value strictly; ``None`` for whatever ``encode`` does not write."""
        if len(text) > _LONGEST_VALUE:
            return None
        fields = strings_in(text, {"o", "t"})
        if fields is None or not all(map(_UUID_HEX.fullmatch, fields.values())):
            return None
        value = cls(OperationId(UUID(fields["o"])), AttemptId(UUID(fields["t"])))
        return value if value.encode() == text else None

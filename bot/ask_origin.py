"""What the form for a question carries back: what is asked about, and where it began. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.carried import strings_in
from bot.operation_value import operation_of
from executor.domain.ids import OperationId


@dataclass(frozen=True, slots=True)
class AskOrigin:
    """The operation, and the channel in which its asker can be answered privately."""

    operation: OperationId
    channel: str

    def encode(self) -> str:
        """Spell it for ``private_metadata``."""
        return json.dumps({"o": self.operation.hex, "c": self.channel}, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str) -> AskOrigin | None:
        """Read it strictly; ``None`` for whatever ``encode`` does not write."""
        fields = strings_in(text, {"o", "c"})
        operation = None if fields is None else operation_of(fields["o"])
        return None if fields is None or operation is None else cls(operation, fields["c"])

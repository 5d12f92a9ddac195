"""What a button carries: which approval it decides, and exactly which content was under it.

The value is a reference and no source: what was approved is read from the store by these names.
``decode(encode())`` is the identity, and everything else decodes to ``None``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from uuid import UUID

from executor.domain.ids import ApprovalId, OperationId

LONGEST_VALUE = 2_000
"""Characters of a button's value (docs.slack.dev, button element, 2026)."""

_HIGHEST_REVISION = 2**31 - 1
_UUID_HEX = re.compile(r"[0-9a-f]{32}")
_DIGEST_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ButtonValue:
    """One drawing's reference to what a click decides; ``nonce`` names the posting attempt."""

    approval: ApprovalId
    operation: OperationId
    content_revision: int
    digest: bytes
    nonce: UUID

    def encode(self) -> str:
        """Spell the value as compact JSON."""
        return json.dumps(
            {
                "a": self.approval.hex,
                "o": self.operation.hex,
                "r": self.content_revision,
                "d": self.digest.hex(),
                "n": self.nonce.hex,
            },
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> ButtonValue | None:
        """Read a value strictly; ``None`` for whatever ``encode`` does not write."""
        if len(text) > LONGEST_VALUE:
            return None
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict) or set(fields) != {"a", "o", "r", "d", "n"}:
            return None
        revision = fields["r"]
        if type(revision) is not int or not 0 <= revision <= _HIGHEST_REVISION:
            return None
        if not all(_matches(_UUID_HEX, fields[name]) for name in ("a", "o", "n")):
            return None
        if not _matches(_DIGEST_HEX, fields["d"]):
            return None
        value = cls(
            ApprovalId(UUID(fields["a"])),
            OperationId(UUID(fields["o"])),
            revision,
            bytes.fromhex(fields["d"]),
            UUID(fields["n"]),
        )
        return value if value.encode() == text else None


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None

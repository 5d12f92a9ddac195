"""The version of an outside ticket, which is compared by equality and never counted.

A desk stamps seconds; what the stamp cannot tell apart, the hash does. Whether one version comes
after another is asked in one place only: when a ticket that we closed is seen open again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from executor.domain.payloads import JsonObject


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a desk stamps, and the hash of what was approved.

    ``updated_at`` is kept as the desk spells it and has a resolution of one second; two changes of
    one second are told apart by ``fields_sha256`` (hex) alone, which only a reading can compare.
    """

    updated_at: str
    fields_sha256: str

    def as_json(self) -> JsonObject:
        """Spell the stamp as intents and evidence keep it."""
        return {"updated_at": self.updated_at, "fields_sha256": self.fields_sha256}

    def comes_after(self, other: Stamp) -> bool:
        """Say whether this version was seen later; within one second, any other version counts."""
        mine, theirs = moment(self.updated_at), moment(other.updated_at)
        return mine > theirs or (mine == theirs and self.fields_sha256 != other.fields_sha256)


DeskVersion: TypeAlias = "int | Stamp"
"""How a desk names a version: the built-in one counts, the others stamp."""


def moment(updated_at: str) -> datetime:
    """Read a stamp's time; raises ``ValueError`` for what is no time with an offset."""
    read = datetime.fromisoformat(updated_at)
    if read.tzinfo is None:
        raise ValueError("a stamp without an offset")
    return read


def stamp_from(document: object) -> Stamp | None:
    """Read a stamp as ``as_json`` spells it; ``None`` for everything else."""
    if not isinstance(document, Mapping):
        return None
    updated_at, fields = document.get("updated_at"), document.get("fields_sha256")
    if not isinstance(updated_at, str) or not isinstance(fields, str):
        return None
    try:
        moment(updated_at)
    except ValueError:
        return None
    return Stamp(updated_at, fields)

"""The file of an audit: journal entries as they are hashed, under a header that says where they
end.

JSON Lines, each line in canonical form (RFC 8785), so that every byte of a line follows from what
it says: a changed byte is a changed content or no such line. ``docs/audit.md`` is its description.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from executor.domain.errors import InvalidContent
from executor.domain.ids import RunId, TenantId
from executor.domain.journal import JournalEntry, tenant_subject
from executor.domain.payloads import JsonValue, canonical, digest
from executor.domain.transition import Machine

FORMAT = "signoff-audit"
VERSION = 1
LONGEST_LINE = 1 << 28
"""Bytes; longer than what half a million chains need in the header."""


class Unusable(Exception):
    """This is no file of an audit, or of a version that is not known."""


class Misspelt(Exception):
    """A line is not as an export writes it."""


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """Where the chain of one subject ends by its stored head; ``run`` is ``None`` for the
    tenant's own."""

    subject: RunId
    run: int | None
    position: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Header:
    """What was exported: one run by its number, or, with ``run`` ``None``, the whole tenant.

    What had been committed at ``exported_at``, by the database's clock, is in it.
    """

    tenant_id: TenantId
    run: int | None
    exported_at: datetime
    chains: tuple[ChainEnd, ...]

    def content(self) -> dict[str, JsonValue]:
        """Spell what the fingerprint covers."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "tenant_id": self.tenant_id,
            "run": self.run,
            "exported_at": _spelt(self.exported_at),
            "chains": [
                {
                    "subject": str(end.subject),
                    "run": end.run,
                    "position": end.position,
                    "hash": end.hash.hex(),
                }
                for end in self.chains
            ],
        }

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 over the header, and so over every head: it fixes each byte of a whole file."""
        return digest(self.content())

    def line(self) -> bytes:
        """Spell the first line."""
        return canonical({**self.content(), "sha256": self.fingerprint.hex()}) + b"\n"


def entry_line(entry: JournalEntry, stored: bytes) -> bytes:
    """Spell an entry with the hash that is stored for it."""
    hashes = {"previous_hash": entry.previous_hash.hex(), "hash": stored.hex()}
    return canonical({**entry.content(), **hashes}) + b"\n"


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Chain(_Line):
    subject: str
    run: int | None
    position: int
    hash: str


class _Header(_Line):
    format: str
    version: int
    tenant_id: str
    run: int | None
    exported_at: str
    chains: list[_Chain]
    sha256: str


class _Entry(_Line):
    tenant_id: str
    subject: str
    position: int
    machine: str | None
    entity_id: str
    seq: int | None
    source: str | None
    target: str | None
    event: str
    actor: str
    detail: dict[str, Any]
    recorded_at: str
    previous_hash: str
    hash: str


def read_header(line: bytes) -> Header:
    """Read the first line; raises ``Unusable``, and ``Misspelt`` for a header that was changed."""
    try:
        found = _object(line)
    except Misspelt as error:
        raise Unusable(f"the first line is no header: {error}") from error
    if found.get("format") != FORMAT:
        raise Unusable(f"the first line does not say that its format is {FORMAT}")
    if found.get("version") != VERSION:
        raise Unusable(f"it is not of version {VERSION}, which is the one that is known here")
    try:
        said = _Header.model_validate(found)
        header = Header(
            TenantId(said.tenant_id),
            said.run,
            datetime.fromisoformat(said.exported_at),
            tuple(
                ChainEnd(RunId(UUID(c.subject)), c.run, c.position, bytes.fromhex(c.hash))
                for c in said.chains
            ),
        )
        spelt = header.line()
    except (ValidationError, ValueError, OverflowError, InvalidContent) as error:
        raise Misspelt("the header was changed: its fields are not those of a header") from error
    if spelt != line:
        raise Misspelt("the header was changed: its sha256 is not that of what it says")
    problem = _contradiction(header)
    if problem is not None:
        raise Misspelt(problem)
    return header


def read_entry(line: bytes) -> tuple[JournalEntry, bytes]:
    """Read an entry and the hash that is stored for it; raises ``Misspelt``."""
    try:
        said = _Entry.model_validate(_object(line))
        entry = JournalEntry(
            TenantId(said.tenant_id),
            RunId(UUID(said.subject)),
            said.position,
            None if said.machine is None else Machine(said.machine),
            UUID(said.entity_id),
            said.seq,
            said.source,
            said.target,
            said.event,
            said.actor,
            said.detail,
            datetime.fromisoformat(said.recorded_at),
            bytes.fromhex(said.previous_hash),
        )
        stored = bytes.fromhex(said.hash)
        spelt = entry_line(entry, stored)
    except (ValidationError, ValueError, OverflowError, RecursionError, InvalidContent) as error:
        raise Misspelt("its fields are not those of an entry") from error
    if spelt != line:
        raise Misspelt("it is not written as an export writes it")
    return entry, stored


def _contradiction(header: Header) -> str | None:
    subjects = [end.subject for end in header.chains]
    own = tenant_subject(header.tenant_id)
    if len(set(subjects)) < len(subjects):
        return "the header lists a subject twice"
    if any((end.run is None) != (end.subject == own) for end in header.chains):
        return "the header lists a chain that belongs neither to a run nor to the tenant"
    if header.run is not None and [end.run for end in header.chains] != [header.run]:
        return "the header lists other chains than that of its run"
    return None


def _object(line: bytes) -> dict[str, Any]:
    if len(line) > LONGEST_LINE:
        raise Misspelt("it is too long")
    if not line.endswith(b"\n"):
        raise Misspelt("it is cut off: its end of line is missing")
    try:
        found = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Misspelt("it is no UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise Misspelt("it is no JSON") from error
    if not isinstance(found, dict):
        raise Misspelt("it is no JSON object")
    return found


def _spelt(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")

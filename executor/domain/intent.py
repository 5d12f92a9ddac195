"""The intent: the frozen, canonical content of an operation, and what makes two proposals the same.

Two digests must not be mixed. ``digest`` covers the whole intent, who asked, who edited it and
under which policy included; it is what an approval consents to. ``content_digest`` leaves those
out: it is what two proposals of different runs are compared by when they name the same intent key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executor.domain.effect import Capability, EffectKind
from executor.domain.ids import EffectId, OperationId, PrincipalId, TenantId
from executor.domain.payloads import JsonObject, JsonValue, canonical, digest
from executor.domain.stamp import Stamp
from executor.domain.ticket import Ticket

CLOSE_TICKET = "close_ticket"
REOPEN_TICKET = "reopen_ticket"
CALL_TOOL = "call_tool"
RAISE_BUDGET = "raise_budget"
ABOUT_A_TICKET = frozenset({CLOSE_TICKET, REOPEN_TICKET})
"""The kinds that have a ticket as their target; the database holds one for these alone."""
_ABOUT_THE_ASKING = frozenset({"requested_by", "edited_by", "policy_version"})


@dataclass(frozen=True, slots=True)
class PlannedEffect:
    """One ordered part of an operation, with the bytes that will leave.

    ``payload`` of an email is the whole MIME message without its ``Date``; ``envelope`` is
    ``{"from": "…", "to": ["…"]}``. A transactional effect has its canonical JSON as payload. What
    an outside desk takes is as ``OutgoingChange``: its ``envelope`` is ``{"ticket": "…", "marker":
    "…", "stamp": {…}}``. ``content`` is what the intent says of it,
    ``promise`` what the card says of its provider.
    """

    id: EffectId
    kind: EffectKind
    capability: Capability
    provider: str
    payload: bytes
    envelope: JsonObject
    content: JsonObject
    promise: str


@dataclass(frozen=True, slots=True)
class Intent:
    """What would happen, exactly."""

    kind: str
    key: str
    document: JsonObject
    effects: tuple[PlannedEffect, ...]

    @property
    def canonical(self) -> bytes:
        """The document in canonical form; what is stored and digested."""
        return canonical(self.document)

    @property
    def digest(self) -> bytes:
        """SHA-256 over the whole document."""
        return hashlib.sha256(self.canonical).digest()

    @property
    def content_digest(self) -> bytes:
        """SHA-256 over the document without who asked or edited it and under which policy."""
        return content_digest(self.document)


def content_digest(document: Mapping[str, JsonValue]) -> bytes:
    """Digest what two proposals are compared by.

    The payload's hash is left out as well: for some providers it covers the effect's own id, which
    no two operations share; every field that it is made from is in the document.
    """
    content = {k: v for k, v in document.items() if k not in _ABOUT_THE_ASKING}
    parts = content.get("effects")
    if isinstance(parts, list):
        content["effects"] = [
            {k: v for k, v in part.items() if k != "payload_sha256"}
            for part in parts
            if isinstance(part, dict)
        ]
    return digest(content)


def close_key(desk: str, ticket_id: str, episode: int) -> str:
    """Name the closing of one ticket in one of its episodes."""
    return f"close:{desk}:{ticket_id}:{episode}"


def episode_of(key: str) -> int:
    """Return the episode that a closing's key names."""
    return int(key.rpartition(":")[2])


def reopen_key(desk: str, ticket_id: str, closing: OperationId) -> str:
    """Name the undoing of one close; there can be one for each operation that closed."""
    return f"reopen:{desk}:{ticket_id}:{closing}"


def message_id(key: str, content: JsonObject, tenant: TenantId, sender_domain: str) -> str:
    """Derive a Message-ID from what is sent and why, so that equal proposals stay equal."""
    name = digest({"tenant": tenant, "key": key, "content": content}).hex()[:40]
    return f"<{name}@{sender_domain}>"


def about_ticket(ticket: Ticket, stamp: Stamp | None) -> JsonObject:
    """Spell what an operation on a ticket is about; ``stamp`` is an outside ticket's version."""
    target: dict[str, JsonValue] = {
        "desk": ticket.desk,
        "id": ticket.id,
        "version": ticket.version,
        "subject": ticket.subject,
    }
    if stamp is not None:
        target["stamp"] = stamp.as_json()
    return {"ticket": target}


def intent_document(
    kind: str,
    *,
    tenant: TenantId,
    requested_by: PrincipalId,
    policy_version: str,
    about: Mapping[str, JsonValue],
    effects: Sequence[PlannedEffect],
    templates: Mapping[str, str],
    edited_by: PrincipalId | None = None,
) -> JsonObject:
    """Compose the document of an operation; ``about`` is what it is about, such as its ``ticket``.

    ``templates`` maps each template's name to the SHA-256 (hex) of its source. ``edited_by`` is the
    person who wrote what it says, where one did.
    """
    return {
        "schema": 1,
        "kind": kind,
        "tenant": tenant,
        "requested_by": requested_by,
        **({} if edited_by is None else {"edited_by": edited_by}),
        "policy_version": policy_version,
        **about,
        "effects": [{"kind": planned.kind.value, **planned.content} for planned in effects],
        "templates": dict(templates),
    }

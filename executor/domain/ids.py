"""Identifiers: what names each record, inside and towards providers.

Keys are UUIDs of version 7, so that rows of one time lie together in an index and no restore of an
older backup can mint the name of something that a provider has already seen. Runs and operations
carry a short number beside the key, for people only (``run_7``, ``op_12``); it is unique in a
tenant.
"""

from __future__ import annotations

import re
import uuid
from typing import NewType

TenantId = NewType("TenantId", str)
PrincipalId = NewType("PrincipalId", str)
RunId = NewType("RunId", uuid.UUID)
OperationId = NewType("OperationId", uuid.UUID)
EffectId = NewType("EffectId", uuid.UUID)
AttemptId = NewType("AttemptId", uuid.UUID)
ApprovalId = NewType("ApprovalId", uuid.UUID)
ReservationId = NewType("ReservationId", uuid.UUID)

_RUN_NUMBER = re.compile(r"(?:run[_-]?)?(\d{1,18})", re.IGNORECASE)
_OPERATION_NUMBER = re.compile(r"(?:op[_-]?)?(\d{1,18})", re.IGNORECASE)


def uuid7(unix_milliseconds: int, random_bits: int) -> uuid.UUID:
    """Compose a UUID of version 7 (RFC 9562, section 5.7) from a time and 74 random bits."""
    value = (unix_milliseconds & ((1 << 48) - 1)) << 80
    value |= 0x7 << 76
    value |= ((random_bits >> 62) & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random_bits & ((1 << 62) - 1)
    return uuid.UUID(int=value)


def slack_principal(team_id: str, user_id: str) -> PrincipalId:
    """Name a Slack user as a principal; both ids are opaque strings (Enterprise Grid: ``W…``)."""
    return PrincipalId(f"slack:{team_id}:{user_id}")


def slack_user(principal: PrincipalId) -> tuple[str, str] | None:
    """Split a principal into team and user, or return ``None`` when it is not a Slack user."""
    parts = principal.split(":")
    if len(parts) == 3 and parts[0] == "slack":
        return parts[1], parts[2]
    return None


def policy_principal(version: str) -> PrincipalId:
    """Name the policy itself as the one that consented."""
    return PrincipalId(f"policy:{version}")


def is_policy(principal: PrincipalId) -> bool:
    """Say whether this is the policy's own word, which no person stands behind."""
    return principal.startswith("policy:")


def operator_principal(name: str) -> PrincipalId:
    """Name an operator, who has no Slack identity but holds the database's credentials."""
    return PrincipalId(f"operator:{name}")


def is_operator(principal: PrincipalId) -> bool:
    """Say whether this is an operator's word, given at the command line."""
    return principal.startswith("operator:")


def run_label(number: int) -> str:
    """Spell a run's number as people read and type it."""
    return f"run_{number}"


def operation_label(number: int) -> str:
    """Spell an operation's number as people read it."""
    return f"op_{number}"


def parse_run_number(text: str) -> int | None:
    """Read ``run_7``, ``run-7`` or ``7`` as a run's number; anything else is ``None``."""
    match = _RUN_NUMBER.fullmatch(text.strip())
    return int(match.group(1)) if match else None


def parse_operation_number(text: str) -> int | None:
    """Read ``op_12``, ``op-12`` or ``12`` as an operation's number; anything else is ``None``."""
    match = _OPERATION_NUMBER.fullmatch(text.strip())
    return int(match.group(1)) if match else None


def idempotency_key(operation: OperationId, effect: EffectId) -> str:
    """Name one effect of one operation towards a provider; the same for each of its attempts."""
    return f"signoff-{operation.hex}-{effect.hex}"


def desk_marker(effect: EffectId) -> str:
    """Name one effect of ours in an outside desk, where it is found by that name."""
    return f"signoff-{effect.hex}"

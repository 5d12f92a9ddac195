"""What a button carries that is about an operation as such, whatever its content: its id. Pure."""

from __future__ import annotations

import re
from uuid import UUID

from executor.domain.ids import OperationId

_HEX = re.compile(r"[0-9a-f]{32}")
_CHOICE = re.compile(r"([a-z_]{1,30}):([0-9a-f]{32})")


def operation_value(operation: OperationId) -> str:
    """Spell the value of a button."""
    return operation.hex


def operation_of(value: str) -> OperationId | None:
    """Read it strictly; ``None`` for whatever ``operation_value`` does not write."""
    return OperationId(UUID(value)) if _HEX.fullmatch(value) else None


def choice_value(action: str, operation: OperationId) -> str:
    """Spell the value of a choice in a menu, which holds 75 characters at most."""
    return f"{action}:{operation.hex}"


def choice_of(value: str) -> tuple[str, str] | None:
    """Split a choice into the action and the value that its button would have had."""
    found = _CHOICE.fullmatch(value)
    return None if found is None else (found[1], found[2])

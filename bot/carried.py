"""What Slack carries back of ours as text: read strictly, or not at all. Pure."""

from __future__ import annotations

import json
from collections.abc import Set


def strings_in(text: str, names: Set[str]) -> dict[str, str] | None:
    """Read a JSON object of exactly these names, each with a string; ``None`` for all else."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or set(fields) != names:
        return None
    if not all(isinstance(part, str) and _is_ours(part) for part in fields.values()):
        return None
    return fields


def _is_ours(part: str) -> bool:
    """We write names, numbers and JSON of them: what could not even be stored is none of it."""
    return part.isascii() and part.isprintable()

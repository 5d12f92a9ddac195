"""blocks.validate: needs no token and no scope, and answers with every violation it finds.

Source: Slack's method page blocks.validate, 2026: exactly one of `blocks`, `message`, `view`;
pointers of bare blocks begin at the array.
"""

from __future__ import annotations

import json

from bot.sandbox.blocks import validate_message, validate_view
from bot.sandbox.model import Json


def run(args: Json) -> Json:
    """Validate the one payload that was given."""
    given = [name for name in ("blocks", "message", "view") if args.get(name) is not None]
    if len(given) != 1:
        return {"ok": False, "error": "invalid_arguments"}
    name = given[0]
    payload = args[name]
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except ValueError:
            return {"ok": False, "error": "invalid_arguments"}
    if name == "view":
        errors = validate_view(payload)
    elif name == "message":
        errors = validate_message(payload.get("blocks", []) if isinstance(payload, dict) else None)
    else:
        errors = validate_message(payload)
    if not errors:
        return {"ok": True}
    # Only a payload that has a name of its own keeps that name at the front of its pointers.
    prefix = {"blocks": "/blocks", "message": "", "view": "/view"}[name]
    found = [e.to_json() | {"pointer": e.pointer.removeprefix(prefix) or "/"} for e in errors]
    return {"ok": False, "error": f"invalid_{name}", "errors": found}

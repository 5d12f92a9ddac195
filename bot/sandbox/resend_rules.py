"""What Resend refuses, and in which words (Resend, "Errors" and "Send email", 2026)."""

from __future__ import annotations

import json
import re

from aiohttp import web

from bot.sandbox.model import Json
from bot.sandbox.provider_faults import Answer

MOST_RECIPIENTS = 50

_MESSAGES = {
    400: ("validation_error", "We found an error with one or more fields in the request."),
    401: ("missing_api_key", "Missing API key in the authorization header."),
    403: ("invalid_api_key", "API key is invalid."),
    404: ("not_found", "The requested endpoint does not exist."),
    405: ("method_not_allowed", "Method is not allowed for the requested path."),
    409: ("concurrent_idempotent_requests", "The original request is still in progress."),
    422: ("validation_error", "We found an error with one or more fields in the request."),
    429: ("rate_limit_exceeded", "Too many requests. Please limit the number of requests."),
}
_FIELDS = frozenset(
    {"from", "to", "subject", "bcc", "cc", "reply_to", "html", "text", "headers", "tags"}
)
_ADDRESS = r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
_NAME = r'(?:"(?:[^"\\]|\\.)*"|[^"<>,;:@()\[\]\\]+)'
_MAILBOX = re.compile(rf"(?:{_NAME} <(?P<named>{_ADDRESS})>|(?P<bare>{_ADDRESS}))")
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_HEADER = re.compile(r"[\x21-\x39\x3b-\x7e]{1,76}")


def error(status: int, name: str | None = None, message: str | None = None) -> Answer:
    """Make an error in Resend's own shape."""
    usual = _MESSAGES.get(status, ("internal_server_error", "An unexpected error occurred."))
    return Answer(
        status,
        {"statusCode": status, "name": name or usual[0], "message": message or usual[1]},
    )


def address_of(mailbox: str) -> str | None:
    """Read the address out of `Name <address>`, or `None` if it is nothing of the kind."""
    match = _MAILBOX.fullmatch(mailbox)
    return (match["named"] or match["bare"]) if match else None


def recipients_of(fields: Json) -> tuple[str, ...]:
    """List whom a valid request goes to."""
    boxes = [str(box) for name in ("to", "cc", "bcc") for box in _listed(fields.get(name, []))]
    return tuple(dict.fromkeys(address_of(box) or box for box in boxes))


def refusal(
    request: web.Request, raw: bytes, api_key: str, verified_domains: frozenset[str] | None
) -> Answer | None:
    """Say why a request is refused, or nothing when it is not."""
    if not request.headers.get("User-Agent"):
        # Cloudflare in front of Resend turns such requests away, in words of its own.
        return Answer(403, "error code: 1010")
    authorization = request.headers.get("Authorization")
    if authorization is None:
        return error(401)
    if authorization != f"Bearer {api_key}":
        return error(403)
    if request.path != "/emails":
        return error(404)
    if request.method != "POST":
        return error(405)
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= 256:
        return error(400, "invalid_idempotency_key", "The key must be between 1-256 chars.")
    try:
        fields = json.loads(raw)
    except ValueError:
        fields = None
    if request.content_type != "application/json" or not isinstance(fields, dict):
        return error(400, message="The request body is not valid JSON.")
    return _field_error(fields) or _domain_error(fields, verified_domains)


def _field_error(fields: Json) -> Answer | None:
    missing = [name for name in ("from", "to", "subject") if not fields.get(name)]
    if missing:
        return error(422, "missing_required_field", f"Missing `{missing[0]}` field.")
    if not fields.get("html") and not fields.get("text"):
        return error(422, "missing_required_field", "Missing `html` or `text` field.")
    unknown = set(fields) - _FIELDS
    if unknown:
        return error(422, message=f"Unknown field `{min(unknown)}`.")
    for name in ("from", "subject", "html", "text"):
        if name in fields and not isinstance(fields[name], str):
            return error(422, message=f"The `{name}` field must be a `string`.")
    if any(character in fields["subject"] for character in "\r\n"):
        return error(422, message="The `subject` field must be one line.")
    if address_of(fields["from"]) is None:
        return error(422, message="Invalid `from` field.")
    for name in ("to", "cc", "bcc", "reply_to"):
        boxes = _listed(fields.get(name, []))
        if len(boxes) > MOST_RECIPIENTS:
            return error(422, message=f"The `{name}` field must not have more than 50 items.")
        if any(not isinstance(box, str) or address_of(box) is None for box in boxes):
            return error(422, message=f"Invalid `{name}` field.")
    return _tag_error(fields.get("tags", [])) or _header_error(fields.get("headers", {}))


def _tag_error(tags: object) -> Answer | None:
    if not isinstance(tags, list):
        return error(422, message="The `tags` field must be an `array`.")
    for tag in tags:
        if not isinstance(tag, dict) or set(tag) != {"name", "value"}:
            return error(422, message="Tags need `name` and `value`.")
        if not all(isinstance(text, str) and _TAG.fullmatch(text) for text in tag.values()):
            return error(
                422,
                message="Tags should only contain ASCII letters, numbers, underscores, or dashes.",
            )
    return None


def _header_error(headers: object) -> Answer | None:
    if not isinstance(headers, dict):
        return error(422, message="The `headers` field must be an `object`.")
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or not isinstance(value, str) or "\n" in value:
            return error(422, message="Invalid `headers` field.")
    return None


def _domain_error(fields: Json, verified_domains: frozenset[str] | None) -> Answer | None:
    domain = (address_of(fields["from"]) or "").rpartition("@")[2]
    if verified_domains is None or domain in verified_domains:
        return None
    return error(403, "validation_error", f"The {domain} domain is not verified.")


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]

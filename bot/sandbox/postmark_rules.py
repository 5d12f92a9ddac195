"""What Postmark refuses, and with which codes (Postmark, "API overview", error codes, 2026).

The codes stand in the body; nearly all of them come with status 422.
"""

from __future__ import annotations

import json
import re
from email.utils import getaddresses

from aiohttp import web

from bot.sandbox.model import Json
from bot.sandbox.provider_faults import Answer

MOST_RECIPIENTS = 50
MOST_FOUND = 500

_USUAL = {
    401: (10, "Request does not contain a valid Server token."),
    404: (0, "The requested resource does not exist."),
    429: (429, "Rate limit exceeded."),
    503: (100, "The API is offline for maintenance."),
}
_FIELDS = frozenset(
    {
        "From",
        "To",
        "Cc",
        "Bcc",
        "ReplyTo",
        "Subject",
        "TextBody",
        "HtmlBody",
        "Headers",
        "Metadata",
        "MessageStream",
        "TrackOpens",
        "TrackLinks",
    }
)
_ADDRESS = re.compile(
    r"[a-z0-9!#$%&'`*+\-/=?^_{|}~]+(?:\.[a-z0-9!#$%&'`*+\-/=?^_{|}~]+)*@"
    r"[a-z0-9-]+(?:\.[a-z0-9-]+)+",
    re.IGNORECASE,
)


def error(status: int, code: int | None = None, message: str | None = None) -> Answer:
    """Make an error in Postmark's own shape."""
    usual = _USUAL.get(status, (300, "Invalid email request"))
    if status >= 500 and status not in _USUAL:
        usual = (status, "Internal server error.")
    body = {
        "ErrorCode": usual[0] if code is None else code,
        "Message": message or usual[1],
    }
    return Answer(status, body)


def addresses_of(value: str) -> list[str]:
    """Read the addresses of a field such as `"Neil, Pat" <pat@x.example>, sam@x.example`."""
    return [address for _, address in getaddresses([value])]


def recipients_of(fields: Json) -> tuple[str, ...]:
    """List whom a valid request goes to."""
    found = [a for name in ("To", "Cc", "Bcc") for a in addresses_of(fields.get(name, ""))]
    return tuple(dict.fromkeys(address for address in found if address))


def token_refusal(request: web.Request, tokens: frozenset[str]) -> Answer | None:
    """Say that the token is missing or wrong, if it is."""
    return None if request.headers.get("X-Postmark-Server-Token") in tokens else error(401)


def send_refusal(request: web.Request, raw: bytes) -> Answer | None:
    """Say why a mail is refused, or nothing when it is not."""
    if request.content_type != "application/json":
        return error(422, 409, "JSON required.")
    try:
        fields = json.loads(raw)
    except ValueError:
        return error(422, 402, "Received invalid JSON input.")
    if not isinstance(fields, dict) or set(fields) - _FIELDS:
        return error(422, 403, "Incompatible JSON.")
    for name in ("From", "To", "Cc", "Bcc", "ReplyTo", "Subject", "TextBody", "HtmlBody"):
        if name in fields and not isinstance(fields[name], str):
            return error(422, 403, f"Incompatible JSON: '{name}'.")
    return _field_error(fields)


def _field_error(fields: Json) -> Answer | None:
    for name in ("From", "To"):
        if not fields.get(name):
            return error(422, 300, f"Zero recipients or sender specified: '{name}'.")
    if not fields.get("TextBody") and not fields.get("HtmlBody"):
        return error(422, 300, "Provide either email TextBody or HtmlBody or both.")
    if any(character in fields.get("Subject", "") for character in "\r\n"):
        return error(422, 300, "Invalid 'Subject'.")
    for name in ("From", "To", "Cc", "Bcc", "ReplyTo"):
        boxes = addresses_of(fields.get(name, "")) if fields.get(name) else []
        if any(not _ADDRESS.fullmatch(box) for box in boxes):
            return error(422, 300, f"Error parsing '{name}': Illegal email address.")
    if len(recipients_of(fields)) > MOST_RECIPIENTS:
        return error(422, 300, "Maximum of 50 recipients allowed per email message.")
    return _metadata_error(fields.get("Metadata", {})) or _header_error(fields.get("Headers", []))


def _metadata_error(metadata: object) -> Answer | None:
    if not isinstance(metadata, dict) or len(metadata) > 10:
        return error(422, 300, "Invalid metadata: at most 10 fields.")
    for name, value in metadata.items():
        if not 1 <= len(name) <= 20 or not isinstance(value, str) or len(value) > 80:
            return error(422, 300, "Invalid metadata: names up to 20, values up to 80 characters.")
    if len({name.lower() for name in metadata}) != len(metadata):
        return error(422, 300, "Invalid metadata: duplicate names.")
    return None


def _header_error(headers: object) -> Answer | None:
    if not isinstance(headers, list):
        return error(422, 403, "Incompatible JSON: 'Headers'.")
    for header in headers:
        if not isinstance(header, dict) or set(header) != {"Name", "Value"}:
            return error(422, 403, "Incompatible JSON: 'Headers'.")
        if not all(isinstance(text, str) and "\n" not in text for text in header.values()):
            return error(422, 300, "Invalid header.")
    return None

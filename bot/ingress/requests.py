"""The body of a verified request, parsed strictly; nothing here sees a byte before it is verified.

Source: docs.slack.dev, Events API, interactivity, slash commands (2026): events are JSON; clicks
and views are a form whose one field ``payload`` is JSON; commands are a plain form.
"""

from __future__ import annotations

import json
from typing import Any, Literal
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field

LARGEST_BODY_BYTES = 256 * 1024
_MOST_FIELDS = 64
_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"


class Malformed(Exception):
    """A verified request whose body is not what Slack sends."""


class UrlVerification(BaseModel):
    """Slack asks whether this is the address."""

    model_config = ConfigDict(frozen=True)

    type: Literal["url_verification"]
    challenge: str = Field(max_length=1_000)


class EventCallback(BaseModel):
    """An event, to be stored as it came; ``payload`` is the whole of it."""

    model_config = ConfigDict(frozen=True)

    type: Literal["event_callback"]
    team_id: str = Field(min_length=1, max_length=64)
    event_id: str = Field(min_length=1, max_length=128)
    event: dict[str, Any]


class Interaction(BaseModel):
    """A click, a view or a command; ``body`` is what the listeners read."""

    model_config = ConfigDict(frozen=True)

    body: dict[str, Any]


class Other(BaseModel):
    """Something of Slack's that asks nothing of us."""

    model_config = ConfigDict(frozen=True)


Parsed = UrlVerification | EventCallback | Interaction | Other


def parse(body: bytes, content_type: str) -> Parsed:
    """Parse a verified body; raises ``Malformed``."""
    try:
        if content_type == _JSON:
            return _event(_object(body.decode("utf-8")))
        if content_type == _FORM:
            return _form(body)
    except (ValueError, RecursionError) as error:
        # A ValueError too: a field that does not validate, bytes that are no UTF-8.
        raise Malformed from error
    raise Malformed


def _event(document: dict[str, Any]) -> Parsed:
    match document.get("type"):
        case "url_verification":
            return UrlVerification.model_validate(document)
        case "event_callback":
            return EventCallback.model_validate(document)
        case str():
            return Other()
        case _:
            raise Malformed


def _form(body: bytes) -> Parsed:
    pairs = parse_qsl(
        body.decode("ascii"),
        keep_blank_values=True,
        strict_parsing=True,
        errors="strict",
        max_num_fields=_MOST_FIELDS,
    )
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Malformed
    # The command's own text or channel may hold the word "payload": only the field counts.
    if "payload" in fields:
        return Interaction(body=_object(fields["payload"]))
    if "command" in fields:
        return Interaction(body=dict(fields))
    if "ssl_check" in fields:
        return Other()
    raise Malformed


def _object(text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise Malformed
    return document

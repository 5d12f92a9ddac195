"""The body of a verified request, parsed strictly; nothing here sees a byte before it is verified.

Source: docs.slack.dev, Events API, interactivity, slash commands (2026): events are JSON; clicks
and views are a form whose one field ``payload`` is JSON; commands are a plain form.
"""

from __future__ import annotations

import json
import math
from typing import Any, Literal
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, Field

from bot.listeners.payload import ButtonClick, SlashCommand, ViewSubmission

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


class Authorization(BaseModel):
    """An installation that an event is sent to."""

    model_config = ConfigDict(frozen=True)

    enterprise_id: str | None = None
    is_enterprise_install: bool = False


class EventCallback(BaseModel):
    """An event, to be stored as it came; ``payload`` is the whole of it."""

    model_config = ConfigDict(frozen=True)

    type: Literal["event_callback"]
    team_id: str = Field(min_length=1, max_length=64)
    event_id: str = Field(min_length=1, max_length=128)
    api_app_id: str | None = None
    event: dict[str, Any]
    authorizations: tuple[Authorization, ...] = ()

    def is_for(self, team: str) -> bool:
        """Say whether this is for the installation in ``team``, or in that whole organisation."""
        return self.team_id == team or any(
            one.is_enterprise_install and one.enterprise_id == team for one in self.authorizations
        )


class Interaction(BaseModel):
    """A click, a view or a command; ``body`` is what the listeners read."""

    model_config = ConfigDict(frozen=True)

    body: dict[str, Any]

    @property
    def api_app_id(self) -> object:
        """The app that it is for, where it says so."""
        return self.body.get("api_app_id")


class Other(BaseModel):
    """Something of Slack's that asks nothing of us."""

    model_config = ConfigDict(frozen=True)


Parsed = UrlVerification | EventCallback | Interaction | Other


def parse(body: bytes, content_type: str, charset: str | None = None) -> Parsed:
    """Parse a verified body; raises ``Malformed``."""
    if charset is not None and charset.casefold() != "utf-8":
        raise Malformed
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
    if "payload" in fields and "command" in fields:
        raise Malformed
    if "payload" in fields:
        return _interaction(_object(fields["payload"]))
    if "command" in fields:
        SlashCommand.model_validate(fields)
        return Interaction(body=dict(fields))
    if "ssl_check" in fields:
        return Other()
    raise Malformed


def _interaction(document: dict[str, Any]) -> Interaction:
    """Refuse what no listener could read: who pressed something would be left without an answer."""
    match document.get("type"):
        case "block_actions":
            ButtonClick.model_validate(document)
        case "view_submission":
            ViewSubmission.model_validate(document)
    return Interaction(body=document)


def _object(text: str) -> dict[str, Any]:
    document = json.loads(text, parse_float=_finite, parse_constant=_finite)
    if not isinstance(document, dict):
        raise Malformed
    return document


def _finite(text: str) -> float:
    """Read a number that can be stored; what JSON does not have, or has no end, is none."""
    number = float(text)
    if not math.isfinite(number):
        raise Malformed
    return number

"""What Slack says about a person, how old that word may be, and whether such a person may act.

Facts are observed by the bot and stored; the executor only reads them. ``users.info`` is the source
(docs.slack.dev, users.info, 2026): ``deleted``, ``is_bot``, ``is_restricted`` and
``is_ultra_restricted`` (guests), ``is_stranger`` and ``team_id`` (people of other workspaces).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason, Refused

FRESH_FOR = timedelta(seconds=60)
"""How old an observation may be where something is decided or opened (design: G6)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One observation of one person; ``wanted_at`` is since when somebody waits for a newer one."""

    team_id: str
    deleted: bool
    is_bot: bool
    is_guest: bool
    is_stranger: bool
    observed_at: datetime
    wanted_at: datetime | None = None

    def facts(self) -> JsonObject:
        """Spell the observation as it is stored, without its times."""
        return {
            "team_id": self.team_id,
            "deleted": self.deleted,
            "is_bot": self.is_bot,
            "is_guest": self.is_guest,
            "is_stranger": self.is_stranger,
        }


def objection(identity: Identity | None, team_id: str, *, now: datetime) -> Refused | None:
    """Say why this person may not act now, or ``None``.

    ``IDENTITY_UNKNOWN`` means: look again and ask again; nobody acts on an old observation.
    """
    if identity is None or now - identity.observed_at > FRESH_FOR:
        return Refused(Reason.IDENTITY_UNKNOWN)
    if identity.team_id != team_id or identity.is_stranger:
        return Refused(Reason.OTHER_WORKSPACE)
    problems = [
        word
        for word, true in (
            ("deactivated", identity.deleted),
            ("bot", identity.is_bot),
            ("guest", identity.is_guest),
        )
        if true
    ]
    if problems:
        return Refused(Reason.IDENTITY_REFUSED, {"is": problems[0]})
    return None

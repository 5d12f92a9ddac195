"""What Slack says about a person, how old that word may be, and whether such a person may act.

Facts are observed by the bot and stored; the executor only reads them. ``users.info`` is the source
(docs.slack.dev, user object, 2026): ``deleted``, ``is_bot``, ``is_app_user``, ``is_restricted`` and
``is_ultra_restricted`` (guests), ``is_stranger`` and ``team_id`` (people of other workspaces), and
on Enterprise Grid ``enterprise_user`` with ``enterprise_id`` and ``teams``. Every id is opaque.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason, Refused

FRESH_FOR = timedelta(seconds=60)
"""How old an observation may be where something is decided or opened (design: G6)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One observation of one person; ``wanted_at`` is since when somebody waits for a newer one.

    ``is_app_only`` is an account that uses the app and is no member; ``is_unknown`` is somebody
    whom Slack does not know or does not show. ``teams`` are the workspaces of the person's
    enterprise in which the person is; without an enterprise both are empty.
    """

    team_id: str
    deleted: bool
    is_bot: bool
    is_guest: bool
    is_stranger: bool
    observed_at: datetime
    wanted_at: datetime | None = None
    is_app_only: bool = False
    is_unknown: bool = False
    enterprise_id: str = ""
    teams: tuple[str, ...] = ()

    def facts(self) -> JsonObject:
        """Spell the observation as it is stored, without its times."""
        return {
            "team_id": self.team_id,
            "deleted": self.deleted,
            "is_bot": self.is_bot,
            "is_guest": self.is_guest,
            "is_stranger": self.is_stranger,
            "is_app_only": self.is_app_only,
            "is_unknown": self.is_unknown,
            "enterprise_id": self.enterprise_id,
            "teams": list(self.teams),
        }

    def is_of(self, team: str) -> bool:
        """Say whether the person is one of this workspace's or, by its id, this enterprise's.

        On Grid ``team_id`` is any of the person's workspaces, or none: what counts is ``teams``.
        """
        if not team or self.is_stranger:
            return False
        if self.teams and team != self.enterprise_id:
            return team in self.teams
        return team in (self.team_id, self.enterprise_id)

    def agrees_with(self, team: str) -> bool:
        """Say whether somebody of whom a request says that they are of ``team`` can be this one."""
        return bool(team) and team in (self.team_id, self.enterprise_id, *self.teams)


def identity_of(
    facts: Mapping[str, Any], observed_at: datetime, wanted_at: datetime | None
) -> Identity:
    """Read stored facts; what an older release did not store counts against the person."""
    return Identity(
        team_id=facts["team_id"],
        deleted=facts["deleted"],
        is_bot=facts["is_bot"],
        is_guest=facts["is_guest"],
        is_stranger=facts["is_stranger"],
        observed_at=observed_at,
        wanted_at=wanted_at,
        is_app_only=facts.get("is_app_only", True),
        is_unknown=facts.get("is_unknown", True),
        enterprise_id=facts.get("enterprise_id", ""),
        teams=tuple(facts.get("teams", ())),
    )


def nobody(team_id: str, observed_at: datetime) -> Identity:
    """Describe somebody whom Slack does not know, or does not show."""
    return Identity(team_id, False, False, False, False, observed_at, is_unknown=True)


def somebody_elsewhere(team_id: str, observed_at: datetime) -> Identity:
    """Describe somebody of another workspace, of whom it does not matter who they are there."""
    return Identity(team_id, False, False, False, True, observed_at)


def objection(
    identity: Identity | None, team_id: str, *, now: datetime, agent: bool = False
) -> Refused | None:
    """Say why this person may not act in this workspace or enterprise now, or ``None``.

    ``IDENTITY_UNKNOWN`` means: look again and ask again; nobody acts on an old observation. With
    ``agent`` it may be a bot: for requests alone, and of one that the policy names.
    """
    if identity is None or now - identity.observed_at > FRESH_FOR:
        return Refused(Reason.IDENTITY_UNKNOWN)
    if not identity.is_of(team_id):
        return Refused(Reason.OTHER_WORKSPACE)
    problems = [
        word
        for word, true in (
            ("unknown", identity.is_unknown),
            ("deactivated", identity.deleted),
            ("bot", identity.is_bot and not agent),
            ("app", identity.is_app_only),
            ("guest", identity.is_guest),
        )
        if true
    ]
    if problems:
        return Refused(Reason.IDENTITY_REFUSED, {"is": problems[0]})
    return None

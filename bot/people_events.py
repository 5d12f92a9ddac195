"""Events that tell of a change of a person or of a user group: what was seen before is out of date.

Source: docs.slack.dev, events user_change, team_join, subteam_updated and subteam_members_changed
(2026). What the event says of them is not taken from it: events come late and out of order, so it
only says whom to look at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.event_names import GROUP_EVENTS, PEOPLE_EVENTS
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.domain.payloads import JsonObject


@dataclass(frozen=True, slots=True)
class Change:
    """Whom an event is about."""

    people: tuple[PrincipalId, ...] = ()
    groups: tuple[str, ...] = ()


def change_of(payload: JsonObject, tenant: TenantId) -> Change | None:
    """Read whom an event is about, or ``None`` for an event that is about nobody."""
    event = payload.get("event")
    if not isinstance(event, Mapping):
        return None
    kind = event.get("type")
    if kind in PEOPLE_EVENTS:
        user = _id_of(event.get("user"))
        return Change(people=() if user is None else (slack_principal(tenant, user),))
    if kind in GROUP_EVENTS:
        group = _id_of(event.get("subteam")) or _id_of(event, "subteam_id")
        return Change(groups=() if group is None else (group,))
    return None


def _id_of(thing: object, name: str = "id") -> str | None:
    found = thing.get(name) if isinstance(thing, Mapping) else None
    return found if isinstance(found, str) and found else None

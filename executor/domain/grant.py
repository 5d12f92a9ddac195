"""The grant: a role given to one principal, on resources, from a start to an end, until revoked.

A grant that somebody passes on (*on behalf of*) holds only while the one who passed it on has the
role without anybody's help. Time ends a grant by itself; nothing is written for that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType, assert_never
from uuid import UUID

from executor.domain.ids import PrincipalId
from executor.domain.intent import CALL_TOOL, CLOSE_TICKET, RAISE_BUDGET, REOPEN_TICKET
from executor.domain.transition import BORN, NoChange, Reason, Refused, Transition

GrantId = NewType("GrantId", UUID)

EVERYTHING = "*"
_DESK = r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,159}"
_TICKET = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_KIND = "|".join((CLOSE_TICKET, REOPEN_TICKET, CALL_TOOL, RAISE_BUDGET))
_SERVER = r"[a-z][a-z0-9_]{0,29}"
_TOOL = r"[A-Za-z0-9_.-]{1,64}"
_PATTERN = re.compile(
    rf"\*|kind:(?:{_KIND})|desk:{_DESK}|ticket:{_DESK}:{_TICKET}"
    rf"|server:{_SERVER}|tool:{_SERVER}:{_TOOL}"
)


class GrantStatus(StrEnum):
    """Where a grant stands; its times are another matter."""

    ACTIVE = "active"
    REVOKED = "revoked"


EDGES: frozenset[tuple[str, str]] = frozenset({(BORN, "active"), ("active", "revoked")})


@dataclass(frozen=True, slots=True)
class Resource:
    """What a right is asked for: one kind of operation on one thing in one place.

    That is a ticket of a desk, a tool of a server, or a limit of the budget: ``run:<number>`` or
    ``day:<date>``.
    """

    kind: str
    place: str
    thing: str

    @property
    def patterns(self) -> tuple[str, ...]:
        """What a grant has to name to cover it, beside everything."""
        narrower: tuple[str, ...] = ()
        if self.kind == CALL_TOOL:
            narrower = (f"server:{self.place}", f"tool:{self.place}:{self.thing}")
        elif self.kind != RAISE_BUDGET:
            narrower = (f"desk:{self.place}", f"ticket:{self.place}:{self.thing}")
        return (f"kind:{self.kind}", *narrower)


NO_SINGLE_THING = Resource("", "", "")
"""What a right about the whole tenant is asked for: only a grant about everything covers it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One role given to one principal; ``resource`` is a pattern, see ``covers``.

    ``on_behalf_of`` passed the role on; ``ends_at`` is exclusive, ``None``: until revoked.
    """

    id: GrantId
    number: int
    principal: PrincipalId
    role: str
    resource: str
    starts_at: datetime
    ends_at: datetime | None
    granted_by: PrincipalId
    on_behalf_of: PrincipalId | None = None
    status: GrantStatus = GrantStatus.ACTIVE
    seq: int = 1

    def holds(self, now: datetime) -> bool:
        """Say whether it counts at this moment."""
        begun = self.status is GrantStatus.ACTIVE and self.starts_at <= now
        return begun and (self.ends_at is None or now < self.ends_at)

    def covers(self, resource: Resource | None) -> bool:
        """Say whether it is about this resource; ``None`` asks for any at all."""
        if resource is None or self.resource == EVERYTHING:
            return True
        return self.resource in resource.patterns


def is_pattern(text: str) -> bool:
    """Say whether a resource is named: ``*``, ``kind:…``, ``desk:…``, ``ticket:<desk>:<id>``,
    ``server:…`` or ``tool:<server>:<tool>``.

    A desk's own name may have colons, as in ``ticket:zendesk:acme:35436``; a ticket's id has none.
    """
    return _PATTERN.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Revoked:
    """Somebody takes it back."""


Event = Revoked


def decide(grant: Grant, event: Event) -> Transition[GrantStatus] | NoChange | Refused:
    """Decide what an event does to a grant."""
    match event:
        case Revoked():
            if grant.status is GrantStatus.REVOKED:
                return NoChange(Reason.ALREADY_ENDED)
            return Transition(grant.status, GrantStatus.REVOKED, "revoked")
        case _:
            assert_never(event)

"""``/signoff grants`` and ``/signoff delegate``: roles are listed, given, passed on, and revoked.

After a COMMIT whose answer was lost the same is asked once more: a signed request gives one grant,
and revoking twice is revoking once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar, assert_never

from bot import grant_text, replies
from bot.grant_text import named
from bot.identity import IdentityWatch
from bot.listeners.grant_line import (
    GiveRole,
    GrantCommand,
    ListGrants,
    RevokeGrant,
    Unclear,
    UnclearGrant,
)
from bot.mrkdwn import hint
from bot.typed_time import moment_of, span_of
from executor.domain.errors import CommitUnknown
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.domain.transition import NoChange, Refused
from executor.engine.engine import Engine
from executor.engine.grant_reading import LocalTime, local_time, see_grants
from executor.engine.granting import Given, TakenBack, Wish, give, take_back

T = TypeVar("T")


class GrantCommands:
    """Carries out what one tenant's people say about grants."""

    def __init__(self, engine: Engine, tenant: TenantId, people: IdentityWatch) -> None:
        self._engine = engine
        self._tenant = tenant
        self._people = people

    async def carry_out(self, claimed: PrincipalId, command: GrantCommand, request: bytes) -> str:
        """Do what was asked and say what it came to; ``request`` is the signed request's hash.

        ``claimed`` names the sender as the request has it. Raises ``DatabaseUnavailable``, and
        ``CommitUnknown`` where asking again did not help.
        """
        if isinstance(command, UnclearGrant):
            return _unclear(command.what)
        who = await self._people.acting(claimed)
        if who is None:
            return replies.identity_unverified()
        match command:
            case ListGrants(past=past):
                found = await see_grants(self._engine, self._tenant, who, past=past)
                if isinstance(found, Refused):
                    return grant_text.refused_text(found)
                return grant_text.list_text(found, past=past)
            case GiveRole():
                return await self._give(who, command, request)
            case RevokeGrant(number=number):
                return await self._revoke(who, number)
            case _:
                assert_never(command)

    async def _give(self, who: PrincipalId, command: GiveRole, request: bytes) -> str:
        here = await local_time(self._engine, self._tenant)
        times = _times(command, here)
        if times is None:
            return grant_text.time_unclear()
        behalf = who if command.is_own else self._principal(command.behalf)
        wish = Wish(
            slack_principal(self._tenant, command.user),
            command.role,
            command.resource,
            *times,
            on_behalf_of=behalf,
        )
        result = await _surely(lambda: give(self._engine, self._tenant, who, wish, request))
        match result:
            case Given():
                back = hint(f"grants revoke {result.number}")
                return grant_text.given_text(result, here.zone, named, back)
            case NoChange():
                return grant_text.handled_before()
            case Refused():
                return grant_text.refused_text(result)
            case _:
                assert_never(result)

    async def _revoke(self, who: PrincipalId, number: int) -> str:
        result = await _surely(lambda: take_back(self._engine, self._tenant, who, number))
        match result:
            case TakenBack(grant=grant):
                return grant_text.taken_back_text(grant, named)
            case NoChange():
                return grant_text.revoked_before()
            case Refused():
                return grant_text.refused_text(result)
            case _:
                assert_never(result)

    def _principal(self, user: str | None) -> PrincipalId | None:
        return None if user is None else slack_principal(self._tenant, user)


async def _surely(act: Callable[[], Awaitable[T]]) -> T:
    try:
        return await act()
    except CommitUnknown:
        return await act()


def _times(command: GiveRole, here: LocalTime) -> tuple[datetime | None, datetime | None] | None:
    """Read from when and until when; ``None``: a time cannot be read."""
    begins = None if command.begins is None else moment_of(command.begins, here)
    ends = None if command.ends is None else moment_of(command.ends, here, is_end=True)
    if command.lasts is not None:
        span = span_of(command.lasts)
        ends = None if span is None else (begins or here.now) + span
    said = (command.begins, begins), (command.ends or command.lasts, ends)
    unread = any(typed is not None and read is None for typed, read in said)
    return None if unread else (begins, ends)


def _unclear(what: Unclear) -> str:
    match what:
        case Unclear.GIVE:
            return grant_text.give_wanted()
        case Unclear.DELEGATE:
            return grant_text.delegate_wanted()
        case Unclear.REVOKE:
            return grant_text.revoke_wanted()
        case Unclear.PERSON:
            return grant_text.person_unclear()
        case Unclear.WORDS:
            return grant_text.words_unclear()
        case _:
            assert_never(what)

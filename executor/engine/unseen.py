"""An approval that nobody can see is an incident: it alarms, it is counted, and people are told.

Each alarms once for as long as it is unseen, whichever process notices, and people are told once.
Both are forgotten when it is shown. A card that only waits for its turn is no incident. Locks:
cards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.domain.turn import WORKSPACE, Trouble, is_closed
from executor.engine.alarm import tell_unseen
from executor.engine.card_turns import Delivery
from executor.engine.engine import Engine
from executor.store import clock, people, tenants, troubles, unseen
from executor.store.unseen import UnseenCount, Untold
from executor.store.wakeups import Kind

ALARM_AFTER_SECONDS = 60.0
TELL_AFTER_SECONDS = 60.0
"""How long people are not told of a trouble that may pass by itself."""

_TELL_AGAIN_SECONDS = 30.0
_AT_ONCE = 1_000

__all__ = ["UnseenCount", "Untold"]


async def alarm_unseen(engine: Engine) -> int:
    """Alarm for the approvals that have become unseen; returns for how many.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        found = await unseen.alarm(conn, ALARM_AFTER_SECONDS, _AT_ONCE)
    for one in found:
        tell_unseen(one)
    return len(found)


@dataclass(frozen=True, slots=True)
class ToTell:
    """Approvals that ask for one channel and cannot be seen there, for one reason.

    ``troubles`` are those of all places, ``of_cards`` says that the channel is well and the cards
    are refused.
    """

    channel: str
    problem: str
    approvals: tuple[Untold, ...]
    troubles: Mapping[str, Trouble]
    of_cards: bool


async def to_tell(engine: Engine, delivery: Delivery) -> list[ToTell]:
    """Take the approvals of which people are to hear now, by channel and reason.

    What cannot be told is due again, ever later. Opens its own transaction.
    """
    tenant = delivery.tenant_id
    async with engine.database.transaction() as conn:
        known = await troubles.read(conn, tenant)
        if is_closed(WORKSPACE, known):
            return []
        found = await unseen.to_tell(
            conn,
            tenant,
            delivery.route.channel,
            lasting=[t.place for t in known.values() if t.lasting and t.closes],
            # One that is tried again and again is open now and then, and no better for it.
            passing=[t.place for t in known.values() if not t.lasting],
            after_seconds=TELL_AFTER_SECONDS,
            again_seconds=_TELL_AGAIN_SECONDS,
            most=_AT_ONCE,
        )
    groups: dict[tuple[str, str, bool], list[Untold]] = {}
    for one in found:
        channel = one.channel or delivery.route.channel
        of_card = channel not in known
        problem = (one.problem or "") if of_card else known[channel].problem
        groups.setdefault((channel, problem, of_card), []).append(one)
    return [
        ToTell(channel, problem, tuple(told), known, of_card)
        for (channel, problem, of_card), told in groups.items()
    ]


async def approvers_to_tell(engine: Engine, tenant: TenantId) -> list[PrincipalId]:
    """Name the approvers of the active policy, with those who were last seen in its groups.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
        named = () if policy is None else policy.people.approvers
        groups = [who.removeprefix("group:") for who in named if who.startswith("group:")]
        seen = await people.read_groups(conn, [(tenant, g) for g in groups]) if groups else {}
    users = [slack_principal(tenant, who) for who in named if not who.startswith("group:")]
    members = [who for group in seen.values() for who in sorted(group.members)]
    return list(dict.fromkeys([*users, *members]))


async def remember_telling(engine: Engine, tenant: TenantId, subjects: Sequence[UUID]) -> None:
    """Remember that people have been told; their cards may go to the fallback now.

    Opens its own transaction.
    """
    async with engine.database.transaction() as conn:
        await unseen.remember_telling(conn, tenant, subjects)
    engine.ring(Kind.CARDS)


@dataclass(frozen=True, slots=True)
class TroubleLine:
    """One place where nothing could be shown, and for how long it is so.

    ``is_tried`` says that nothing is found wrong any more, which the next message has to prove.
    """

    place: str
    problem: str
    seconds: float
    is_tried: bool


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What is not shown, and why."""

    unseen: Sequence[UnseenCount]
    troubles: Sequence[TroubleLine]


async def delivery_report(engine: Engine, delivery: Delivery) -> DeliveryReport:
    """Read what cannot be shown just now. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        counted = await unseen.count(conn, delivery.tenant_id, delivery.route.channel)
        known = await troubles.read(conn, delivery.tenant_id)
        now = await clock.now(conn)
    lines = [
        TroubleLine(
            trouble.place,
            trouble.problem,
            (now - trouble.since).total_seconds(),
            not trouble.closes,
        )
        for trouble in sorted(known.values(), key=lambda t: t.place)
    ]
    return DeliveryReport(counted, lines)

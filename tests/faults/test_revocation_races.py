"""A click and an opening against the revocation of the role that they rest on.

Two hundred rounds, see ``tests.support.racing``. In turns it is the approver's own role that is
taken back, the requester's, and the role of whoever passed it on to the approver. The journal tells
what was first: what was opened before the revocation is done, and nothing that rests on what was
revoked is opened or counted after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from executor.adapters.host_clock import mint_id
from executor.domain.grant import Grant, GrantId, GrantStatus
from executor.domain.ids import PrincipalId, operator_principal
from executor.domain.journal import tenant_subject, verify
from executor.domain.transition import Machine, Reason
from executor.engine.click import Recorded
from executor.engine.granting import TakenBack, take_back
from executor.store import grants, journal
from executor.store.database import Database
from tests.support import invariants
from tests.support.office import RENE, RIKO, SAM, TENANT, Office, policy
from tests.support.race_clicks import approve, check_told
from tests.support.race_record import DONE, Round
from tests.support.race_track import FIRST_TICKET, Prize
from tests.support.racing import ROUNDS, Case, Gun, Racer, race

ADA = operator_principal("ada")
# Whoever acts in this race has the role by a grant alone.
BY_GRANTS = policy(people={"requesters": ["U0ABSENT"], "approvers": ["U0ABSENT"]})


class Loses(Enum):
    """Who loses the role, and which."""

    APPROVER = (RENE, "approver")
    REQUESTER = (RIKO, "requester")
    GIVER = (SAM, "approver")


def who_loses(number: int) -> Loses:
    """Change it every other round, so that each also meets what was approved before."""
    return list(Loses)[number // 2 % len(Loses)]


def ticket_of(number: int) -> str:
    return f"ticket:builtin:{FIRST_TICKET + number}"


async def give_roles(database: Database) -> None:
    """Give the roles of every round, each about its own ticket, in one commit."""
    subject = tenant_subject(TENANT)
    async with database.transaction() as conn:
        await grants.hold_rights(conn, TENANT)
        chain = await journal.lock_chain(conn, [(TENANT, subject)])
        for new in (new for number in range(ROUNDS) for new in _roles(number, chain.now)):
            born = chain.birth(Machine.GRANT, TENANT, subject, new.id, GrantStatus.ACTIVE, ADA, {})
            await grants.insert(conn, TENANT, new, "", born, chain.now)
        await journal.advance(conn, chain)


def _roles(number: int, now: datetime) -> Iterator[Grant]:
    def given(who: PrincipalId, role: str, giver: PrincipalId | None = None) -> Grant:
        until = None if giver is None else now + timedelta(days=1)
        id_ = GrantId(mint_id())
        return Grant(id_, 0, who, role, ticket_of(number), now, until, ADA, giver)

    yield given(RIKO, "requester")
    if who_loses(number) is Loses.GIVER:
        yield given(SAM, "approver")
        yield given(RENE, "approver", SAM)
    else:
        yield given(RENE, "approver")


@dataclass(frozen=True)
class Told:
    """What the revoker was told, and when it was by the journal."""

    result: object
    at: datetime


async def revoke(racer: Racer, prize: Prize, gun: Gun) -> Told:
    who, role = who_loses(prize.round).value
    [(grant, number)] = await racer.office.rows(
        "SELECT id, number FROM grants WHERE principal = :p AND role = :r AND resource = :on",
        p=who,
        r=role,
        on=ticket_of(prize.round),
    )
    await gun()
    result = await take_back(racer.office.engine, TENANT, ADA, number)
    [(at,)] = await racer.office.rows(
        "SELECT recorded_at FROM journal "
        "WHERE machine = 'grant' AND target = 'revoked' AND entity_id = :id",
        id=grant,
    )
    return Told(result, at)


def who_won(name: str, loses: Loses) -> str:
    return f"{name}, when the {loses.name.lower()} loses it"


def revoked_or_done(one: Round) -> str:
    check_told(one)
    loses, revoked, told = who_loses(one.prize.round), one.told["revoke"], one.told["approve"]
    assert isinstance(revoked.result, TakenBack)
    late = [e for e in one.notes("voted") if e.at > revoked.at]
    assert not late or loses is Loses.REQUESTER, "a vote without a right to it was counted"
    opened = one.move("operation", "executing")
    if opened is not None:
        assert opened.at < revoked.at, "it was opened without a right to it"
        assert one.status == DONE
        return who_won("approve", loses)
    if one.move("approval", "granted") is None:
        assert one.status == "awaiting"
        assert not isinstance(told, Recorded)
        assert told.reason is Reason.NOT_PERMITTED
        [refused] = one.notes("decision_refused")
        assert refused.at > revoked.at, "refused while there was a right to it"
        return who_won("revoke", loses)
    stale = one.move("operation", "stale")
    assert stale is not None
    assert stale.at > revoked.at, "stopped while there was a right to it"
    assert one.reason == Reason.NOT_PERMITTED
    assert stale.detail.get("who") == (RIKO if loses is Loses.REQUESTER else None)
    return who_won("revoke", loses)


REVOCATION = Case(
    {"approve": approve, "revoke": revoke},
    revoked_or_done,
    [who_won(name, loses) for name in ("approve", "revoke") for loses in Loses],
    may_wait=True,
)


async def test_a_revocation_is_before_an_opening_and_stops_it_or_after_it_and_does_not(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database, active=BY_GRANTS)
    await give_roles(database)
    await race(office, database_url, REVOCATION)
    await invariants.check(database)
    async with database.transaction() as conn:
        entries, head = await journal.read_chain(conn, TENANT, tenant_subject(TENANT))
    assert verify(entries, head) is None

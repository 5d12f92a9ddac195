"""A grant is given or revoked whole or not at all, and before an opening or after it."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.errors import CommitUnknown
from executor.domain.ids import operator_principal
from executor.domain.journal import tenant_subject, verify
from executor.domain.transition import NoChange
from executor.engine.claims import ClaimedOperation
from executor.engine.granting import Given, TakenBack, Wish, give, list_grants, take_back
from executor.engine.opening import NotOpened, Opened
from executor.store import journal
from executor.store.database import Database
from tests.support.failpoints import Crashed, Gate, Trap
from tests.support.office import OTTO, TENANT, Office
from tests.support.tcp_proxy import tcp_proxy
from tests.support.waiting import until_blocked

ADA = operator_principal("ada")
WISH = Wish(OTTO, "approver")
REQUEST = bytes(32)


async def _chain_holds(office: Office) -> None:
    async with office.database.transaction() as conn:
        entries, head = await journal.read_chain(conn, TENANT, tenant_subject(TENANT))
    assert verify(entries, head) is None


@pytest.mark.parametrize(("point", "stored"), [("grant.before", 0), ("grant.after", 1)])
async def test_a_crash_leaves_a_grant_whole_or_not_at_all(
    office: Office, point: str, stored: int
) -> None:
    dying = office.colleague(failpoints=Trap(point))
    with pytest.raises(Crashed):
        await give(dying.engine, TENANT, ADA, WISH, REQUEST)
    assert len(await list_grants(office.engine, TENANT)) == stored
    again = await give(office.engine, TENANT, ADA, WISH, REQUEST)
    assert isinstance(again, NoChange if stored else Given)
    [line] = await list_grants(office.engine, TENANT)
    dying = office.colleague(failpoints=Trap(point))
    with pytest.raises(Crashed):
        await take_back(dying.engine, TENANT, ADA, line.grant.number)
    again_ = await take_back(office.engine, TENANT, ADA, line.grant.number)
    assert isinstance(again_, NoChange if stored else TakenBack)
    await _chain_holds(office)


@pytest.mark.parametrize("stored", [True, False])
async def test_after_a_lost_answer_asking_again_gives_one_grant(
    office: Office, database_url: str, stored: bool
) -> None:
    async with tcp_proxy(database_url) as proxy:
        far = Database.connect(proxy.url, application_name="far")
        engine = office.colleague(far).engine
        if stored:
            proxy.lose_commit_answers()
        else:
            proxy.stop_commits()
        with pytest.raises(CommitUnknown):
            await give(engine, TENANT, ADA, WISH, REQUEST)
        again = await give(engine, TENANT, ADA, WISH, REQUEST)
        await far.dispose()
    assert isinstance(again, NoChange if stored else Given)
    assert len(await list_grants(office.engine, TENANT)) == 1
    await _chain_holds(office)


async def _approved_by_grant(office: Office) -> tuple[int, ClaimedOperation]:
    given = await give(office.engine, TENANT, ADA, WISH)
    assert isinstance(given, Given)
    operation = await office.proposed()
    await office.click(operation, OTTO)
    return given.number, await office.claim_operation(operation)


async def test_a_revocation_waits_for_an_opening_that_has_begun(
    office: Office, database_url: str
) -> None:
    number, claimed = await _approved_by_grant(office)
    gate = Gate("open.before")
    opening = asyncio.create_task(office.colleague(failpoints=gate).open_one(claimed))
    await gate.reached.wait()
    revoking = asyncio.create_task(take_back(office.engine, TENANT, ADA, number))
    await until_blocked(database_url)
    gate.open()
    assert isinstance(await opening, Opened)
    assert isinstance(await revoking, TakenBack)


async def test_an_opening_waits_for_a_revocation_that_has_begun_and_opens_nothing(
    office: Office, database_url: str
) -> None:
    number, claimed = await _approved_by_grant(office)
    gate = Gate("grant.before")
    far = office.colleague(failpoints=gate)
    revoking = asyncio.create_task(take_back(far.engine, TENANT, ADA, number))
    await gate.reached.wait()
    opening = asyncio.create_task(office.open_one(claimed))
    await until_blocked(database_url)
    gate.open()
    assert isinstance(await revoking, TakenBack)
    assert isinstance(await opening, NotOpened)
    assert office.mail.accepted == 0

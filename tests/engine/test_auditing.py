"""A journal that was exported from real work is whole without the database, and holds one tenant's
alone."""

from __future__ import annotations

import json

from sqlalchemy import text

from executor.domain.audit import Broken, Whole, audit
from executor.domain.ids import TenantId
from executor.domain.journal import tenant_subject
from executor.engine.auditing import export
from executor.engine.setup import activate_policy
from executor.store.database import Database
from tests.support.fake_mail import applied, unknown
from tests.support.office import CHANNEL, TENANT, Office, policy

OTHER = TenantId("T0OTHER")


async def exported(
    office: Office, number: int | None = None, tenant: TenantId = TENANT, at_once: int = 500
) -> list[bytes]:
    made = await export(office.engine, tenant, number, at_once=at_once)
    assert made is not None
    return [line async for line in made.lines]


async def sent(office: Office, ticket: str = "4101") -> None:
    claimed, opened = await office.opened(ticket)
    await office.report(claimed, opened, applied())


async def test_a_run_that_sent_is_exported_whole_in_however_many_parts(office: Office) -> None:
    await sent(office)
    lines = await exported(office, 1, at_once=3)
    found = audit(lines)
    assert isinstance(found, Whole)
    [count] = await office.rows(
        "SELECT count(*) FROM journal JOIN runs ON id = subject WHERE number = 1"
    )
    assert found.entries == len(lines) - 1 == count[0] > 15
    whole = await exported(office, 1)
    assert lines[1:] == whole[1:]


async def test_a_tenant_is_exported_with_its_own_chain_and_every_run(office: Office) -> None:
    await sent(office)
    claimed, opened = await office.opened("4102")
    await office.report(claimed, opened, unknown())
    found = audit(await exported(office))
    assert isinstance(found, Whole)
    assert [end.run for end in found.header.chains] == [None, 1, 2]
    assert found.header.chains[0].subject == tenant_subject(TENANT)


async def test_what_is_added_while_an_export_is_read_is_not_in_it(office: Office) -> None:
    await sent(office)
    made = await export(office.engine, TENANT, at_once=1)
    assert made is not None
    lines = [await anext(made.lines)]
    await office.start_run("close 4102")
    await activate_policy(office.engine, policy(email={"from": "Other <o@acme.example>"}))
    lines += [line async for line in made.lines]
    assert isinstance(audit(lines), Whole)
    assert made.header.chains != (await export(office.engine, TENANT)).header.chains  # type: ignore[union-attr]


async def test_nothing_of_another_tenant_is_exported(office: Office) -> None:
    await sent(office)
    await activate_policy(office.engine, policy(slack={"team": OTHER, "channel": CHANNEL}))
    lines = await exported(office, tenant=OTHER)
    assert {json.loads(line)["tenant_id"] for line in lines} == {OTHER}
    assert len(lines) == 2
    assert isinstance(audit(lines), Whole)
    assert await export(office.engine, OTHER, 1) is None
    mine = await exported(office)
    assert {json.loads(line)["tenant_id"] for line in mine} == {TENANT}


async def test_what_was_taken_out_of_the_journal_is_missing_in_the_export(
    database: Database,
) -> None:
    office = await Office.open(database)
    await sent(office)
    async with database.transaction() as conn:
        # Whoever owns the table can do what is refused to everybody else.
        await conn.execute(text("ALTER TABLE journal DISABLE TRIGGER USER"))
        await conn.execute(text("DELETE FROM journal WHERE event = 'voted'"))
        await conn.execute(text("ALTER TABLE journal ENABLE TRIGGER USER"))
    found = audit(await exported(office, 1))
    assert isinstance(found, Broken)
    assert found.position == found.line - 1
    assert f"entry {found.position} is missing before it" in found.problem

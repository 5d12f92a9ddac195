"""What a process does before it works: the schema is moved, the policy that it was given is made
active.
"""

from __future__ import annotations

from executor.domain.ids import PrincipalId, operator_principal
from executor.domain.journal import tenant_subject
from executor.domain.payloads import JsonObject
from executor.domain.policy import Policy
from executor.engine.engine import Engine
from executor.engine.pausing import let_go_on
from executor.store import journal, tenants
from executor.store.database import Database
from executor.store.migrate import migrate, pending


async def move_schema(database: Database) -> list[str]:
    """Bring the schema up to this code; returns the files applied now. Safe for several at once."""
    return await migrate(database)


async def schema_is_current(database: Database) -> bool:
    """Say whether nothing is left to migrate."""
    return not await pending(database)


POLICY_FILE = operator_principal("policy file")
"""Who changes a policy where nothing else is known: whoever may write to the file."""


async def activate_policy(engine: Engine, policy: Policy, by: PrincipalId = POLICY_FILE) -> bool:
    """Make a policy the one that binds, and say so in the tenant's journal; returns whether it was
    another before.

    Opens its own transaction. Waits for every opening that reads the old one: what opened before
    was allowed by it, what opens after is judged by the new one. Once more: nothing is changed.
    """
    tenant = policy.tenant_id
    async with engine.database.transaction() as conn:
        change = await tenants.put_policy(conn, policy)
        if change is None:
            return False
        subject = tenant_subject(tenant)
        chain = await journal.lock_chain(conn, [(tenant, subject)])
        detail: JsonObject = {"from": change.before, "to": change.now, "by": by}
        note = chain.note(tenant, subject, subject, "policy_activated", by, detail)
        await journal.write_notes(conn, [note])
        await journal.advance(conn, chain)
    # A higher limit of the day lets paused runs go on at once.
    await let_go_on(engine, tenant)
    return True

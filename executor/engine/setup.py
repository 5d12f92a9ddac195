"""What a process does before it works: the schema is moved, the policy that it was given is made
active.
"""

from __future__ import annotations

from executor.domain.policy import Policy
from executor.engine.engine import Engine
from executor.store import tenants
from executor.store.database import Database
from executor.store.migrate import migrate, pending


async def move_schema(database: Database) -> list[str]:
    """Bring the schema up to this code; returns the files applied now. Safe for several at once."""
    return await migrate(database)


async def schema_is_current(database: Database) -> bool:
    """Say whether nothing is left to migrate."""
    return not await pending(database)


async def activate_policy(engine: Engine, policy: Policy) -> bool:
    """Make a policy the one that binds; returns whether another was active before.

    Opens its own transaction. Waits for every opening that reads the old one: what opened before
    was allowed by it, what opens after is judged by the new one.
    """
    async with engine.database.transaction() as conn:
        return await tenants.put_policy(conn, policy)

"""Other tenants on the same database, and floods of work in them."""

from __future__ import annotations

import asyncpg

from executor.domain.identity import Identity
from executor.domain.ids import RunId, TenantId, slack_principal
from executor.engine.claims import ClaimedRun
from executor.engine.setup import activate_policy
from executor.engine.start import Started, StartRequest, start
from executor.store import clock
from executor.store.people import put_identity
from tests.support.office import CHANNEL, Office, policy

# Rows that no transition made have no journal: what ties them to one is dropped first; no index is.
NO_REFERENCES = """
DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS owner, conname FROM pg_constraint
                 WHERE contype = 'f' AND connamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.owner, found.conname);
    END LOOP;
END $$
"""
_RUNS = """
INSERT INTO runs (tenant_id, id, seq, status, goal, requester, origin_key, request_digest,
    reply_to, policy_version, due_at, created_at, deadline_at, max_parked_seconds)
SELECT $1, gen_random_uuid(), 1, 'queued', 'g', 'r', $3 || n, '', '{}', 'v',
       now() - interval '1 hour' + n * interval '1 microsecond', now(), now() + interval '7 days',
       259200
FROM generate_series(1, $2) n
"""
_OPERATIONS = """
INSERT INTO operations (tenant_id, id, seq, status, run_id, kind, intent_key, intent, digest,
    content_digest, content_revision, requester, policy_version, place, thing, desk, ticket_id,
    ticket_version, risks, created_at, due_at)
SELECT $1, gen_random_uuid(), 2, 'approved', gen_random_uuid(), 'close_ticket', $3 || n, 'x',
       sha256('x'), '', 1, 'r', 'v', 'd', $3 || n, 'd', $3 || n, 1,
       '{"outside": [], "first_contacts": [], "links": [], "attachments": 0, "amount": null,
         "text_characters": 0, "language": ""}',
       now(), now() - interval '1 hour' + n * interval '1 microsecond'
FROM generate_series(1, $2) n
"""


async def move_in(office: Office, team: str, **sections: object) -> TenantId:
    """Make another tenant, whose requester may start runs."""
    people = {"requesters": ["U0REQUESTER"], "approvers": ["U0REVIEWER"]}
    active = policy(slack={"team": team, "channel": CHANNEL}, people=people, **sections)
    await activate_policy(office.engine, active)
    async with office.database.transaction() as conn:
        seen = Identity(team, False, False, False, False, await clock.now(conn))
        who = slack_principal(team, "U0REQUESTER")
        await put_identity(conn, TenantId(team), who, seen)
    return TenantId(team)


async def queue_runs(office: Office, tenant: TenantId, count: int) -> list[RunId]:
    """Queue as many runs of one tenant in one commit, and return them in their order."""
    who = slack_principal(tenant, "U0REQUESTER")
    requests = [StartRequest(tenant, who, "g", f"flood:{n}", {}) for n in range(count)]
    started = [
        s for s in await start(office.engine, requests) if isinstance(s, Started) and not s.again
    ]
    assert len(started) == count
    return [one.run_id for one in sorted(started, key=lambda one: one.number)]


async def pour_runs(connection: asyncpg.Connection, tenant: str, count: int, key: str) -> None:
    """Insert rows of queued runs of the same tenant, without their history."""
    await connection.execute(_RUNS, tenant, count, key)


async def pour_operations(
    connection: asyncpg.Connection, tenant: str, count: int, key: str
) -> None:
    """Insert rows of approved operations that are due, without their history."""
    await connection.execute(_OPERATIONS, tenant, count, key)


def tenants_of(claims: list[ClaimedRun]) -> list[TenantId]:
    """Say whose runs were claimed."""
    return [claimed.key[0] for claimed in claims]

"""The command line of an operator, and the office that it looks into."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result
from sqlalchemy import text

from bot.cli import main
from executor.domain.ids import OperationId
from executor.engine.setup import activate_policy
from tests.support.fake_mail import unknown
from tests.support.office import CHANNEL, TEAM, TENANT, Office, policy

POLICY = f"""
[slack]
team = "{TEAM}"
channel = "{CHANNEL}"
[people]
requesters = "everyone"
approvers = ["U0REVIEWER"]
[email]
from = "Acme Support <support@acme.example>"
"""

_GIVE_AWAY = """
DO $$ DECLARE found record; BEGIN
    FOR found IN SELECT conrelid::regclass AS owner, conname FROM pg_constraint
                 WHERE contype = 'f' AND connamespace = 'public'::regnamespace LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.owner, found.conname);
    END LOOP;
    ALTER TABLE journal DISABLE TRIGGER USER;
    FOR found IN SELECT c.table_name AS owner FROM information_schema.columns c
                 JOIN information_schema.tables t USING (table_schema, table_name)
                 WHERE c.column_name = 'tenant_id' AND c.table_schema = 'public'
                   AND t.table_type = 'BASE TABLE'
                   AND c.table_name NOT IN ('policies', 'identity_observations', 'turns') LOOP
        EXECUTE format('UPDATE %I SET tenant_id = %L WHERE tenant_id = %L', found.owner,
                       '{new}', '{old}');
    END LOOP;
END $$
"""


class Operator:
    """One operator; ``office`` is where the work happens."""

    def __init__(self, office: Office, url: str, policy_file: Path) -> None:
        policy_file.write_text(POLICY, encoding="utf-8")
        self.office = office
        self._env: dict[str, str | None] = {
            "DATABASE_URL": url,
            "SIGNOFF_POLICY": str(policy_file),
        }

    async def run(self, *arguments: str, without_policy: bool = False) -> Result:
        """Give a command; it has a loop of its own."""
        env = self._env | ({"SIGNOFF_POLICY": None} if without_policy else {})
        return await asyncio.to_thread(CliRunner().invoke, main, list(arguments), env=env)

    async def in_doubt(self, ticket: str = "4101") -> OperationId:
        """Walk to an operation of which nobody knows whether it was done."""
        claimed, opened = await self.office.opened(ticket)
        await self.office.report(claimed, opened, unknown())
        return claimed.claim.key[1]

    async def give_everything_to(self, team: str) -> None:
        """Let all that was done until now be another tenant's; its journal does not verify then."""
        other = policy(slack={"team": team, "channel": CHANNEL})
        await activate_policy(self.office.engine, other)
        async with self.office.database.transaction() as conn:
            await conn.execute(text(_GIVE_AWAY.format(new=team, old=TENANT)))

"""The reference job through the engine alone: propose, show, approve, open, send once, tell."""

from __future__ import annotations

from executor.adapters.models.scripted import ScriptedModel
from executor.store.database import Database
from tests.support.office import Office
from tests.support.reference_job import close_a_ticket


async def test_a_ticket_is_closed_and_its_mail_sent_once(database: Database) -> None:
    await close_a_ticket(await Office.open(database), database, ScriptedModel())

"""The reference job with a model at a server: each provider's wire, streamed and not."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from bot.sandbox.model_double import ModelDouble
from bot.sandbox.model_reply import SaidCall, SaidReply
from executor.domain.policy_money import PriceSection
from executor.engine.driver import Crew
from executor.engine.worker import Worker, WorkerTerms
from executor.store.database import Database
from executor.store.wakeups import listening
from tests.adapters.remote_models import KINDS, MODEL, model_at
from tests.support.office import Office, policy
from tests.support.reference_job import close_a_ticket
from tests.support.waiting import until_true

PRICED = policy(
    prices={
        MODEL: PriceSection(
            input_usd_per_million=Decimal("1.1"), output_usd_per_million=Decimal(7)
        ).model_dump()
    }
)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_real_model_gets_a_ticket_closed_for_what_its_server_charged(
    database: Database, kind: str, streamed: bool
) -> None:
    office = await Office.open(database, active=PRICED)
    async with ModelDouble() as double:
        await close_a_ticket(office, database, model_at(double, kind, streamed=streamed))
    assert double.refused == []
    assert len(double.billed) == double.faults.calls == 3, "read, propose, tell"
    charged = sum(-(-(b.input_tokens * 11 + b.output_tokens * 70) // 10) for b in double.billed)
    for kept in ("run_budgets", "tenant_days"):
        told = await office.rows(f"SELECT spent_microusd, held_microusd FROM {kept}")  # noqa: S608
        assert [tuple(row) for row in told] == [(charged, 0)]


@pytest.mark.parametrize("kind", KINDS)
async def test_the_model_is_told_that_its_arguments_were_no_object(
    database: Database, kind: str
) -> None:
    office = await Office.open(database, active=PRICED)
    broken = SaidReply("", (SaidCall("c1", "read_ticket", '{"ticket_id": "41'),))
    async with ModelDouble([broken]) as double, listening(database) as listener:
        crew = Crew(model_at(double, kind, streamed=True), office.providers, office.emails)
        worker = Worker(office.engine, crew, listener, "w1", WorkerTerms(poll_seconds=0.1))
        working = asyncio.create_task(worker.run())
        await office.start_run("close 4101")
        await until_true(database, "SELECT count(*) = 1 FROM approvals")
        worker.stop()
        await working
    assert double.refused == []
    [(asked, answered)] = await office.rows(
        "SELECT m.content #>> '{tool_calls,0,arguments}', t.content #> '{result}' FROM steps m "
        "JOIN steps t ON t.run_id = m.run_id AND t.number = 2 WHERE m.number = 1"
    )
    assert asked == '{"ticket_id": "41'
    assert answered["error"] == "arguments_invalid"
    assert "one object" in answered["message"]

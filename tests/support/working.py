"""A run in a worker's hands: its script, its proposals, and one drive at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from executor.domain.closing import ProposeClosing
from executor.domain.ids import OperationId, PrincipalId, RunId
from executor.engine.converging import AcceptResult
from executor.engine.driver import Crew, drive
from executor.engine.leases import run_keeper
from executor.engine.ports import ModelPort
from tests.support.fake_model import FakeModel, says
from tests.support.office import RIKO, TENANT, Office


@dataclass
class Working:
    """One run, driven by hand with a scripted model."""

    office: Office
    run_id: RunId
    model: ModelPort = field(default_factory=lambda: FakeModel([says("All done.")]))
    results: list[AcceptResult] = field(default_factory=list)

    @classmethod
    async def start(
        cls, office: Office, model: ModelPort, *, requester: PrincipalId = RIKO
    ) -> Working:
        """Queue a run."""
        return cls(office, await office.start_run(requester=requester), model)

    @classmethod
    async def propose(
        cls, office: Office, *proposals: ProposeClosing, requester: PrincipalId = RIKO
    ) -> Working:
        """Queue a run whose first reply has proposed already; the model then says its last word."""
        working = cls(office, await office.start_run(requester=requester))
        claimed = await office.claim_run(working.run_id)
        working.results = await office.ask(working.run_id, claimed, *proposals)
        return working

    async def drive(
        self, office: Office | None = None, *, owner: str = "w1", stop: asyncio.Event | None = None
    ) -> None:
        """Claim the run if it is due, and drive it until it waits or ends."""
        office = office or self.office
        claimed = await office.claim_run(self.run_id, owner)
        key = (TENANT, self.run_id)
        keeper = run_keeper(office.engine, key, claimed.lease)
        crew = Crew(self.model, office.providers, office.emails)
        await drive(office.engine, crew, key, keeper, stop or asyncio.Event())

    async def due(self) -> bool:
        """Say whether a worker would take the run now."""
        rows = await self.office.rows(
            "SELECT 1 FROM runs WHERE id = :id AND due_at <= signoff_clock()", id=self.run_id
        )
        return bool(rows)

    async def operations(self) -> list[OperationId]:
        """List what the run proposed, in order."""
        rows = await self.office.rows(
            "SELECT operation_id FROM proposals WHERE run_id = :id ORDER BY step, ordinal",
            id=self.run_id,
        )
        return [OperationId(id_) for (id_,) in rows]

    async def told(self) -> list[dict[str, object]]:
        """List the results that the model was given, in the order of their record."""
        rows = await self.office.rows(
            "SELECT content -> 'result' FROM steps WHERE run_id = :id AND kind = 'tool' "
            "ORDER BY number",
            id=self.run_id,
        )
        return [result for (result,) in rows]

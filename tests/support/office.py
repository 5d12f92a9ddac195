"""An engine with everything around it, for tests of the use cases: real database, fakes outside.

``Office`` is what one tenant needs to work: an active policy, people with fresh identities, a desk
with tickets, and short ways to walk an operation to any of its states.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import text

from executor.adapters.host_clock import SystemClock, mint_id
from executor.domain.approval import Vote
from executor.domain.closing import ProposeClosing
from executor.domain.effect import Outcome
from executor.domain.identity import Identity
from executor.domain.ids import (
    OperationId,
    PrincipalId,
    RunId,
    TenantId,
    slack_principal,
)
from executor.domain.lease import LeaseTerms
from executor.domain.new_ticket import NewTicket
from executor.domain.policy import Policy
from executor.domain.stamp import DeskVersion
from executor.domain.transition import Refused
from executor.engine.accept import Asked, accept
from executor.engine.card_turns import Delivery, DueCard, Route, due_cards
from executor.engine.claims import ClaimedOperation, ClaimedRun, claim_operations, claim_runs
from executor.engine.click import Click, ClickResult
from executor.engine.closure_email import ClosureEmails
from executor.engine.converging import Accepted, AcceptResult
from executor.engine.decisions import decide_clicks
from executor.engine.desk import write_as_customer
from executor.engine.desk_port import TicketDesk
from executor.engine.endings import Stopped, cancel
from executor.engine.engine import Durations, Engine
from executor.engine.failpoint import Failpoints, Inert
from executor.engine.opening import Opened, OpenResult, Ready, open_attempts
from executor.engine.presenting import Shown, begin_posting, finish_drawing, present
from executor.engine.providers import Providers
from executor.engine.report import Report, report
from executor.engine.setup import activate_policy
from executor.engine.start import Started, StartRequest, start
from executor.engine.tool_port import ToolServers
from executor.store import clock, desk
from executor.store.cards import SubjectKind
from executor.store.database import Database
from executor.store.people import put_identity
from tests.support.clock import move_clock
from tests.support.fake_mail import FakeMail
from tests.support.reading import Reading
from tests.support.unpaced import UNPACED

TEAM = "T0TEAM1"
TENANT = TenantId(TEAM)
RIKO = slack_principal(TEAM, "U0REQUESTER")
RENE = slack_principal(TEAM, "U0REVIEWER")
SAM = slack_principal(TEAM, "U0SECOND")
OTTO = slack_principal(TEAM, "U0OUTSIDER")
CHANNEL = "C0APPROVALS"
DELIVERY = Delivery(TENANT, Route(CHANNEL), UNPACED)
MOST_TURNS = 1_000


def policy(**changes: object) -> Policy:
    """Make the tests' policy; ``changes`` replace whole sections."""
    document: dict[str, object] = {
        "slack": {"team": TEAM, "channel": CHANNEL},
        "people": {
            "requesters": ["U0REQUESTER", "U0SECOND"],
            "approvers": ["U0REVIEWER", "U0SECOND", "U0REQUESTER"],
        },
        "email": {"from": "Acme Support <support@acme.example>", "signature": "Acme Support"},
        # Runs that a test walks by hand stay at work, as many as it likes.
        "admission": {"max_active_runs": 1_000},
    }
    return Policy.model_validate(document | changes)


def closing(ticket: str = "4101", **changes: object) -> ProposeClosing:
    """Make a proposal as the model writes it."""
    fields: dict[str, object] = {
        "ticket_id": ticket,
        "language": "en",
        "subject": f"Ticket {ticket} closed",
        "message": "Your invoice is corrected.",
    }
    return ProposeClosing.model_validate(fields | changes)


SHORT = Durations(
    lease=LeaseTerms(ttl_seconds=30.0, margin_seconds=5.0, heartbeat_seconds=5.0),
    first_byte_seconds=10.0,
    clock_allowance_seconds=1.0,
    retry_seconds=1.0,
)


@dataclass
class Office(Reading):
    """One tenant at work."""

    tenant = TENANT
    mail: FakeMail
    emails: ClosureEmails
    claims: dict[RunId, ClaimedRun] = field(default_factory=dict)
    held: dict[OperationId, ClaimedOperation] = field(default_factory=dict)
    desk: TicketDesk | None = None
    tools: ToolServers | None = None

    @property
    def providers(self) -> Providers:
        """What a worker of this office works with outside."""
        return Providers(self.mail, self.desk, self.tools)

    @classmethod
    async def open(
        cls,
        database: Database,
        *,
        failpoints: Failpoints | None = None,
        durations: Durations = SHORT,
        active: Policy | None = None,
    ) -> Office:
        """Open an office on a migrated database: policy active, people looked at, two tickets."""
        engine = Engine(database, SystemClock(), mint_id, durations, failpoints or Inert())
        office = cls(database, engine, FakeMail(), ClosureEmails())
        await activate_policy(engine, active or policy())
        await office.look_at(RIKO, RENE, SAM, OTTO)
        for number in ("4101", "4102"):
            await office.import_ticket(number)
        return office

    async def look_at(self, *people: PrincipalId, **facts: bool | str) -> None:
        """Store fresh observations of people."""
        async with self.database.transaction() as conn:
            moment = await clock.now(conn)
            for who in people:
                identity = Identity(
                    team_id=str(facts.get("team_id", TEAM)),
                    deleted=bool(facts.get("deleted", False)),
                    is_bot=bool(facts.get("is_bot", False)),
                    is_guest=bool(facts.get("is_guest", False)),
                    is_stranger=bool(facts.get("is_stranger", False)),
                    observed_at=moment,
                )
                await put_identity(conn, TENANT, who, identity)

    async def import_ticket(self, number: str, tenant: TenantId = TENANT) -> None:
        """Put one believable ticket on the desk."""
        ticket = NewTicket.model_validate(
            {
                "id": number,
                "subject": f"Invoice {number}",
                "language": "en",
                "customer": {"name": "Pat Doe", "email": "pat@cust.example"},
                "messages": [
                    {"kind": "customer", "author": "Pat Doe", "body": "It is wrong."},
                    {"kind": "agent", "author": "Ann", "body": "It is corrected now."},
                ],
            }
        )
        async with self.database.transaction() as conn:
            await desk.import_ticket(conn, tenant, ticket, await clock.now(conn))

    async def customer_writes(self, number: str = "4101") -> None:
        """Let the customer write, which bumps the ticket's version."""
        await write_as_customer(self.database, TENANT, number, "Still broken!")

    async def start_run(
        self, goal: str = "close 4101", requester: PrincipalId = RIKO, key: str | None = None
    ) -> RunId:
        """Queue a run."""
        request = StartRequest(TENANT, requester, goal, key or uuid.uuid4().hex, {})
        [result] = await start(self.engine, [request])
        assert isinstance(result, Started), result
        return result.run_id

    async def claim_run(self, run_id: RunId, owner: str = "w1") -> ClaimedRun:
        """Claim what is due and return the claim of this run."""
        for claimed in await claim_runs(self.engine, owner, 100):
            self.claims[claimed.key[1]] = claimed
        return self.claims[run_id]

    async def claim_run_if_any(self, owner: str = "w1") -> list[ClaimedRun]:
        """Claim whatever runs are due."""
        return await claim_runs(self.engine, owner, 100)

    async def claim_operations(self, owner: str = "w1") -> list[ClaimedOperation]:
        """Claim the operations that are due."""
        claims = await claim_operations(self.engine, owner, 100)
        self.held |= {claimed.claim.key[1]: claimed for claimed in claims}
        return claims

    async def claim_operation(self, operation: OperationId, owner: str = "w1") -> ClaimedOperation:
        """Claim what is due and return the newest claim of this operation."""
        await self.claim_operations(owner)
        return self.held[operation]

    async def ask(
        self,
        run_id: RunId,
        claimed: ClaimedRun,
        *proposals: ProposeClosing,
        version: DeskVersion | None = 2,
        step: int = 1,
    ) -> list[AcceptResult]:
        """Record a model's reply at ``step`` and accept what it proposes, in one commit."""
        await self.record_reply(run_id, step, len(proposals))
        return await accept(
            self.engine,
            self.providers,
            self.emails,
            (TENANT, run_id),
            claimed.lease.epoch,
            [Asked(step, ordinal, item, version) for ordinal, item in enumerate(proposals)],
            step + 1,
        )

    async def propose(
        self,
        run_id: RunId,
        claimed: ClaimedRun,
        ticket: str = "4101",
        *,
        message: str = "Your invoice is corrected.",
        version: int | None = 2,
        step: int = 1,
    ) -> OperationId:
        """Propose one closing and return the operation that it came to."""
        [result] = await self.ask(
            run_id, claimed, closing(ticket, message=message), version=version, step=step
        )
        assert isinstance(result, Accepted), result
        return result.operation_id

    async def record_reply(self, run_id: RunId, step: int, count: int) -> None:
        """Record a reply with ``count`` tool calls, unless that step is there."""
        calls = [{"id": "call_0", "name": "propose_closing", "arguments": {}}] * count
        async with self.database.transaction() as conn:
            await conn.execute(
                text(
                    "INSERT INTO steps (tenant_id, run_id, number, kind, content, recorded_at) "
                    "VALUES (:t, :r, :n, 'model', CAST(:c AS jsonb), signoff_clock()) "
                    "ON CONFLICT DO NOTHING"
                ),
                {
                    "t": TENANT,
                    "r": run_id,
                    "n": step,
                    "c": json.dumps({"text": "", "tool_calls": calls}),
                },
            )

    async def show(self) -> None:
        """Post every card that is due, as a bot would, one after the other."""
        for _ in range(MOST_TURNS):
            turn = await self.due_cards()
            if not turn:
                return
            await self._show(turn)
        raise AssertionError("cards stay due")

    async def due_cards(self) -> Sequence[DueCard]:
        """Take the cards whose turn it is, as a bot would; what runs say of themselves stays."""
        taken = (await due_cards(self.engine, DELIVERY, 50)).cards
        return [due for due in taken if due.card.kind is not SubjectKind.RUN]

    async def _show(self, turn: Sequence[DueCard]) -> None:
        for due in turn:
            shown = Shown(hashlib.sha256(b"view").digest(), [], 1)
            if due.card.kind is SubjectKind.OPERATION and due.card.ts is None:
                record = due.record
                revision = getattr(record, "content_revision", 1)
                shown = Shown(shown.view_digest, [], revision)
                nonce = mint_id()
                await begin_posting(self.engine, due.card, nonce, CHANNEL, shown)
                await present(
                    self.engine,
                    due.card,
                    nonce,
                    channel=CHANNEL,
                    ts=f"ts-{due.card.subject_id}",
                    shown=shown,
                )
            if due.card.kind is SubjectKind.OPERATION:
                await finish_drawing(self.engine, due.card, shown)

    async def click_for(
        self,
        operation: OperationId,
        who: PrincipalId = RENE,
        vote: Vote = Vote.APPROVE,
        note: str = "",
        *,
        request_hash: bytes | None = None,
    ) -> Click:
        """Make the click that a person would make on the operation's card."""
        async with self.database.transaction() as conn:
            row = (
                await conn.execute(
                    text(
                        "SELECT id, digest, content_revision FROM approvals WHERE tenant_id = :t "
                        "AND operation_id = :o ORDER BY opened_at DESC LIMIT 1"
                    ),
                    {"t": TENANT, "o": operation},
                )
            ).one()
        return Click(
            TENANT,
            operation,
            row.id,
            bytes(row.digest),
            row.content_revision,
            mint_id(),
            who,
            vote,
            note,
            CHANNEL,
            f"ts-{operation}",
            request_hash or hashlib.sha256(uuid.uuid4().bytes).digest(),
            who.rsplit(":", 1)[-1],
        )

    async def click(
        self,
        operation: OperationId,
        who: PrincipalId = RENE,
        vote: Vote = Vote.APPROVE,
        note: str = "",
    ) -> ClickResult:
        """Click once, as one person."""
        [result] = await self.decide(await self.click_for(operation, who, vote, note))
        return result

    async def decide(self, *clicks: Click) -> list[ClickResult]:
        """Record clicks in one commit."""
        return await decide_clicks(self.engine, clicks)

    async def proposed(self, ticket: str = "4101") -> OperationId:
        """Walk to a proposal whose card is shown."""
        run_id = await self.start_run(f"close {ticket}")
        operation = await self.propose(run_id, await self.claim_run(run_id), ticket)
        await self.show()
        return operation

    async def proposed_many(self, count: int, *, first: int = 5000) -> list[OperationId]:
        """Walk to as many proposals, each of its own run and ticket, whose cards are shown.

        The tickets are new ones, numbered from ``first``.
        """
        tickets = [str(first + number) for number in range(count)]
        for ticket in tickets:
            await self.import_ticket(ticket)
        runs = await start(
            self.engine,
            [StartRequest(TENANT, RIKO, f"close {ticket}", ticket, {}) for ticket in tickets],
        )
        proposed = []
        for ticket, run in zip(tickets, runs, strict=True):
            assert isinstance(run, Started)
            claimed = self.claims.get(run.run_id) or await self.claim_run(run.run_id)
            proposed.append(await self.propose(run.run_id, claimed, ticket))
        await self.show()
        return proposed

    async def approved_many(self, count: int, *, first: int = 5000) -> list[OperationId]:
        """Walk to as many approved operations; see ``proposed_many``."""
        proposed = await self.proposed_many(count, first=first)
        await self.decide(*[await self.click_for(operation) for operation in proposed])
        return proposed

    async def approved(self, ticket: str = "4101") -> OperationId:
        """Walk to an approved operation."""
        operation = await self.proposed(ticket)
        await self.click(operation)
        return operation

    async def claimed(self, ticket: str = "4101", owner: str = "w1") -> ClaimedOperation:
        """Walk to an operation that a worker holds."""
        return await self.claim_operation(await self.approved(ticket), owner)

    def colleague(
        self,
        database: Database | None = None,
        *,
        failpoints: Failpoints | None = None,
    ) -> Office:
        """Return another process's view of the same office: the same mailbox, another engine."""
        other = database or self.database
        engine = Engine(other, SystemClock(), mint_id, self.engine.durations, failpoints or Inert())
        return Office(other, engine, self.mail, self.emails, desk=self.desk, tools=self.tools)

    async def later_unseen(self, **by: float) -> None:
        """Let time pass on the database's clock, and look at nobody."""
        async with self.database.transaction() as conn:
            await move_clock(conn, timedelta(**by))

    async def later(self, **by: float) -> None:
        """Let time pass on the database's clock, and look at everybody again after it."""
        await self.later_unseen(**by)
        await self.look_at(RIKO, RENE, SAM, OTTO)

    async def cancel(self, run_id: RunId, who: PrincipalId = RENE) -> Stopped | Refused:
        """Cancel a run at a person's word."""
        number = await self.value(
            "SELECT number FROM runs WHERE tenant_id = :t AND id = :id", run_id
        )
        return await cancel(self.engine, TENANT, int(number), who)

    async def open_one(self, claimed: ClaimedOperation) -> OpenResult:
        """Open the next attempt of one claimed operation."""
        [result] = await self.open_all(claimed)
        return result

    async def open_all(self, *claimed: ClaimedOperation) -> list[OpenResult]:
        """Open the next attempts of claimed operations in one commit."""
        return await open_attempts(self.engine, self.providers, [Ready(c.claim) for c in claimed])

    async def opened(self, ticket: str = "4101") -> tuple[ClaimedOperation, Opened]:
        """Walk to an operation whose mail may leave."""
        claimed = await self.claimed(ticket)
        result = await self.open_one(claimed)
        assert isinstance(result, Opened), result
        return claimed, result

    async def report(
        self, claimed: ClaimedOperation, opened: Opened, outcome: Outcome, actor: str = "w1"
    ) -> str | None:
        """Report what came of an attempt and return where the operation stands then."""
        [status] = await report(
            self.engine, [Report(claimed.claim.key, opened.attempt.id, outcome, actor)]
        )
        return status

"""An agent of the office: what it asks for in a message, and what came of it."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import replace
from typing import Any

from executor.domain.agent_request import AgentRequest, Unreadable, read_request
from executor.domain.ids import OperationId, PrincipalId, RunId, slack_principal
from executor.domain.policy import Policy
from executor.engine.events import StoredEvent
from executor.engine.replacement_scene import Workshop
from executor.engine.request_record import RequestRecord
from executor.engine.request_record import read_request as read_answer
from executor.engine.requesting import CameTo, Wish, handle_by_asking
from executor.engine.setup import activate_policy
from executor.store import inbox
from tests.support.office import TEAM, TENANT, Office, policy

AGENT = slack_principal(TEAM, "U0AGENT")
OTHER_AGENT = slack_principal(TEAM, "U0ROBOT")
REQUESTERS = ["U0REQUESTER", "U0SECOND", "U0AGENT", "U0ROBOT"]
_numbers = itertools.count(1)


def people(**changes: object) -> dict[str, object]:
    """Section ``people`` of a policy that names two agents among its requesters."""
    return {
        "requesters": REQUESTERS,
        "approvers": ["U0REVIEWER", "U0SECOND", "U0REQUESTER"],
        "agents": ["U0AGENT", "U0ROBOT"],
        **changes,
    }


def policy_with_agents(**changes: object) -> Policy:
    """Make the tests' policy with two agents; ``changes`` replace whole sections."""
    return policy(**{"people": people(), **changes})


async def admit(office: Office, **changes: object) -> None:
    """Let the policy name two agents, and look at them as the bots that they are."""
    await activate_policy(office.engine, policy_with_agents(**changes))
    await office.look_at(AGENT, OTHER_AGENT, is_bot=True)


def closing_of(
    ticket: str = "4101", *, key: str | None = "key-1", **arguments: Any
) -> AgentRequest:
    """Make the request for one closing, read as it would arrive."""
    fields = {
        "ticket_id": ticket,
        "language": "en",
        "subject": f"Ticket {ticket} closed",
        "message": "Your invoice is corrected.",
        **arguments,
    }
    return _read("close_ticket", key, fields)


def run_of(goal: str = "close 4101", *, key: str | None = "key-1") -> AgentRequest:
    """Make the request for a run."""
    return _read("run", key, {"goal": goal})


def _read(kind: str, key: str | None, arguments: dict[str, Any]) -> AgentRequest:
    read = read_request({"kind": kind, "request_key": key or "none", "arguments": arguments})
    assert isinstance(read, AgentRequest), read
    return replace(read, request_key=key)


def wish_for(
    asked: AgentRequest | Unreadable, *, agent: PrincipalId = AGENT, ts: str | None = None
) -> Wish:
    """Make the wish of one message, by default a new one."""
    at = ts or f"17000000{next(_numbers):02d}.000100"
    return Wish(TENANT, agent, "C0APPROVALS", at, at, asked)


async def event_of(office: Office) -> StoredEvent:
    """Store an event that nobody has handled."""
    id_ = f"Ev{uuid.uuid4().hex}"
    async with office.database.transaction() as conn:
        await inbox.put(conn, TENANT, id_, {})
    return StoredEvent(TENANT, id_, {}, 1)


async def ask(
    office: Office,
    asked: AgentRequest | Unreadable,
    *,
    agent: PrincipalId = AGENT,
    ts: str | None = None,
    event: StoredEvent | None = None,
) -> CameTo | None:
    """Let an agent ask in one message."""
    shop = Workshop(office.engine, office.providers, office.emails)
    stored = event or await event_of(office)
    return await handle_by_asking(office.engine, shop, stored, wish_for(asked, agent=agent, ts=ts))


async def accepted(office: Office, asked: AgentRequest, **by: Any) -> tuple[RunId, OperationId]:
    """Let an agent ask for one closing, and return its run and its operation."""
    came = await ask(office, asked, **by)
    assert came is not None, "it was not handled"
    assert came.run_id is not None, came
    found = await office.value(
        "SELECT operation_id FROM proposals WHERE tenant_id = :t AND run_id = :id", came.run_id
    )
    return came.run_id, OperationId(uuid.UUID(found))


async def answers(office: Office) -> list[RequestRecord]:
    """Read what is told of every request, oldest first."""
    rows = await office.rows("SELECT id FROM agent_requests ORDER BY asked_at, ts")
    async with office.database.transaction() as conn:
        return [await read_answer(conn, TENANT, id_) for (id_,) in rows]

"""An agent in Slack asks for something: one message is one commit, whatever it comes to.

A run is started as for a person. One closing is accepted as a model's proposal is, in a run that
nobody drives. Requests of one agent wait for each other, so that the same message, or the same key
of the agent's own, comes to the same however often it arrives, and what the agent has under way is
counted truly. An agent that goes on asking in vain is answered no more for a while: so two programs
that answer each other come to an end. Locks: the event, the agent (advisory), policies, then as
``start`` or as ``accept``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from executor.domain import identity
from executor.domain.agent_request import AgentRequest, ClosingArguments, RunArguments, Unreadable
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.stamp import DeskVersion, Stamp, moment
from executor.domain.transition import Reason, Refused
from executor.engine import undriven
from executor.engine.accept import Asked, Sights, Work, lock_proposals, looked, write_accepted
from executor.engine.converging import Answered
from executor.engine.engine import Engine
from executor.engine.events import StoredEvent
from executor.engine.failpoint import Commit
from executor.engine.replacement_scene import Workshop
from executor.engine.rights import read_rights
from executor.engine.start import StartRequest, start_in
from executor.store import agent_requests, cards, clock, inbox, runs, tenants
from executor.store.agent_requests import NewRequest, Outcome
from executor.store.cards import SubjectKind
from executor.store.connection import Connection
from executor.store.people import read_identities
from executor.store.wakeups import Kind

__all__ = ["CameTo", "Outcome", "Wish", "handle_by_asking", "is_named"]

MOST_UNDER_WAY = 60
"""Runs of one agent that have not ended; each holds at most one operation of a request."""

MOST_IN_VAIN = 60
"""Requests of one agent in an hour of which nothing came; of more, nothing is kept or told."""

_HOUR_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What an agent asks for in one message; it is answered in the thread of ``thread_ts``."""

    tenant_id: TenantId
    agent: PrincipalId
    channel: str
    ts: str
    thread_ts: str
    asked: AgentRequest | Unreadable

    @property
    def request(self) -> AgentRequest | None:
        """What can be read of it."""
        return self.asked if isinstance(self.asked, AgentRequest) else None

    @property
    def origin_key(self) -> str:
        """Name what starts its run: the agent's own key, or else the message."""
        key = None if self.request is None else self.request.request_key
        if key is not None:
            return f"agent-key:{self.agent}:{key}"
        return f"agent:{self.tenant_id}:{self.channel}:{self.ts}"

    @property
    def reply_to(self) -> JsonObject:
        """Where it is answered."""
        return {"channel": self.channel, "thread_ts": self.thread_ts}


@dataclass(frozen=True, slots=True)
class CameTo:
    """What a request came to; ``answer`` tells of what has no run."""

    outcome: Outcome
    run_id: RunId | None = None
    answer: JsonObject = field(default_factory=dict)


async def is_named(engine: Engine, tenant: TenantId, principal: PrincipalId) -> bool:
    """Say whether the active policy names this agent. Opens its own transaction."""
    async with engine.database.transaction() as conn:
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
    return policy is not None and policy.is_agent(principal)


async def handle_by_asking(
    engine: Engine, shop: Workshop | None, event: StoredEvent, wish: Wish
) -> CameTo | None:
    """Do what an agent's message asks for and mark its event handled, in one commit.

    ``None``: it was handled before, or goes unanswered. Without a ``shop`` nothing can be proposed
    here. Opens its own transactions. Raises ``CommitUnknown``; handling it again is then safe.
    """
    request = wish.request
    if shop is None or request is None or not isinstance(request.arguments, ClosingArguments):
        async with engine.committing(Commit.START) as conn:
            came = await _handle(conn, engine, event, wish, None)
    else:
        arguments, shopping = request.arguments, shop

        async def once(sights: Sights | None, last_look: bool) -> CameTo | None:
            closing = _Closing(shopping, arguments, sights, last_look)
            async with engine.committing(Commit.ACCEPT) as conn:
                return await _handle(conn, engine, event, wish, closing)

        came = await looked(engine, shop.providers, [arguments.ticket_id], once)
    engine.ring(Kind.WORK)
    engine.ring(Kind.CARDS)
    return came


@dataclass(frozen=True, slots=True)
class _Closing:
    """One closing that is asked for, and how its ticket was seen outside, if it is there."""

    shop: Workshop
    arguments: ClosingArguments
    sights: Sights | None
    last_look: bool

    @property
    def work(self) -> Work:
        """The proposal that it is; the version is that which the agent named, or that of now."""
        version = self.arguments.version
        asked = Asked(
            1,
            0,
            self.arguments,
            None if version is None else self._read(version),
            as_it_stands=version is None,
        )
        return Work(self.shop.engine, self.shop.providers, self.shop.emails, [asked])

    def _read(self, version: int | str) -> DeskVersion:
        if isinstance(version, int):
            return version
        stamp = self.stamp
        if stamp is not None and _is_moment(version, stamp.updated_at):
            return stamp
        return Stamp(version, "")

    @property
    def stamp(self) -> Stamp | None:
        """The version of an outside ticket as it was seen."""
        seen = (self.sights or {}).get(self.arguments.ticket_id)
        found = None if seen is None else seen.observation
        return None if found is None else found.stamp


def _is_moment(text: str, updated_at: str) -> bool:
    try:
        return text == updated_at or moment(text) == moment(updated_at)
    except ValueError:
        return False


async def _handle(
    conn: Connection, engine: Engine, event: StoredEvent, wish: Wish, closing: _Closing | None
) -> CameTo | None:
    if not await inbox.handled(conn, event):
        return None
    await agent_requests.lock_agent(conn, wish.tenant_id, wish.agent)
    if await agent_requests.is_known(conn, wish.tenant_id, wish.channel, wish.ts):
        return None
    load = await agent_requests.load_of(conn, wish.tenant_id, wish.agent, _HOUR_SECONDS)
    if load.in_vain > MOST_IN_VAIN:
        return None
    if load.in_vain == MOST_IN_VAIN:
        came = _refused(Refused(Reason.QUEUE_FULL, {"in_vain": MOST_IN_VAIN}))
    else:
        came = await _earlier(conn, wish) or await _judge(
            conn, engine, wish, closing, load.under_way
        )
    await _record(conn, engine, wish, came)
    return came


async def _earlier(conn: Connection, wish: Wish) -> CameTo | None:
    """Say what the same key has come to before, however the agent stands now."""
    request = wish.request
    if request is None or request.request_key is None:
        return None
    earlier = await agent_requests.of_key(conn, wish.tenant_id, wish.agent, request.request_key)
    if earlier is None:
        return None
    if earlier.content_digest != request.content_digest:
        return _refused(Refused(Reason.ALREADY_STARTED, {"run": earlier.run_number}))
    return CameTo(Outcome.REPEATED, earlier.run_id)


async def _judge(
    conn: Connection, engine: Engine, wish: Wish, closing: _Closing | None, under_way: int
) -> CameTo:
    tenant, asked = wish.tenant_id, wish.asked
    policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
    if policy is None:
        return _refused(Refused(Reason.NOT_PERMITTED, {"missing": Permission.REQUEST.value}))
    now = await clock.now(conn)
    objection = await _objection(conn, policy, wish, now)
    if objection is not None:
        return _refused(objection)
    if isinstance(asked, Unreadable):
        return _refused(Refused(Reason.ARGUMENTS_INVALID, {"problem": asked.problem}))
    if under_way >= MOST_UNDER_WAY:
        return _refused(Refused(Reason.QUEUE_FULL, {"under_way": under_way}))
    if isinstance(asked.arguments, RunArguments):
        return await _start(conn, engine, wish, asked.arguments)
    if closing is None:
        return _refused(Refused(Reason.NOT_CONFIGURED))
    return await _propose(conn, policy, wish, closing, now)


async def _objection(conn: Connection, policy: Policy, wish: Wish, now: datetime) -> Refused | None:
    """Say why this agent may not ask for anything at all just now."""
    who = (wish.tenant_id, wish.agent)
    rights = await read_rights(conn, {wish.tenant_id: policy}, [who])
    seen = (await read_identities(conn, [who])).get(who)
    agent = policy.is_agent(wish.agent)
    return identity.objection(
        seen, policy.slack.team, now=now, agent=agent
    ) or rights.authority_to_propose(policy, now).objection(wish.agent, Permission.REQUEST)


async def _start(conn: Connection, engine: Engine, wish: Wish, arguments: RunArguments) -> CameTo:
    request = StartRequest(
        wish.tenant_id, wish.agent, arguments.goal, wish.origin_key, wish.reply_to
    )
    [result] = await start_in(conn, engine, [request])
    if isinstance(result, Refused):
        return _refused(result)
    return CameTo(Outcome.ACCEPTED, result.run_id)


async def _propose(
    conn: Connection, policy: Policy, wish: Wish, closing: _Closing, now: datetime
) -> CameTo:
    """Accept one closing as a proposal, in a run that nobody drives and that begins with it."""
    run_id = RunId(closing.shop.engine.mint())
    goal = f"close ticket {closing.arguments.ticket_id}, as an agent in Slack has asked"
    row = runs.RunRow(
        wish.tenant_id,
        run_id,
        0,
        0,
        RunStatus.QUEUED,
        goal,
        wish.agent,
        policy.version,
        None,
        None,
        0,
        now,
        now,
        driven=False,
    )
    scene = await lock_proposals(
        conn, closing.work, policy, row, closing.sights, last_look=closing.last_look
    )
    # Decided once without a trace: a run begins only where there is something to wait for.
    [first], _ = scene.decide(_copy(scene.chain))
    if isinstance(first, Answered):
        return _answered(first.result, closing)
    await undriven.start_waiting(
        conn,
        scene.chain,
        policy,
        row.key,
        goal=goal,
        requester=wish.agent,
        origin=wish.origin_key,
        reply_to=wish.reply_to,
    )
    _, state = scene.decide(scene.chain)
    await write_accepted(conn, scene, state)
    return CameTo(Outcome.ACCEPTED, run_id)


def _copy(chain: Chain) -> Chain:
    return Chain(chain.now, {key: replace(head) for key, head in chain.heads.items()})


def _answered(result: JsonObject, closing: _Closing) -> CameTo:
    """Take what a model would be told at once for an agent."""
    error = result.get("error")
    if error is None:
        kept = ("operation", "status", "reason", "rejected_because")
        return CameTo(Outcome.ANSWERED, answer={k: result[k] for k in kept if k in result})
    reason = Reason(str(error))
    detail = {k: v for k, v in result.items() if k not in ("error", "message")}
    if reason is Reason.VERSION_CHANGED and closing.stamp is not None:
        detail["updated_at"] = closing.stamp.updated_at
    return _refused(Refused(reason, detail))


def _refused(refused: Refused) -> CameTo:
    answer: JsonObject = {"reason": refused.reason.value, "detail": refused.detail}
    return CameTo(Outcome.REFUSED, answer=answer)


async def _record(conn: Connection, engine: Engine, wish: Wish, came: CameTo) -> None:
    """Keep what was asked and what came of it, and have it told."""
    request, now = wish.request, await clock.now(conn)
    new = NewRequest(
        wish.tenant_id,
        engine.mint(),
        wish.agent,
        wish.channel,
        wish.ts,
        wish.thread_ts,
        None if request is None else request.request_key,
        None if request is None else request.kind,
        None if request is None else request.content_digest,
        came.outcome,
        came.run_id,
        came.answer,
    )
    await agent_requests.insert(conn, new, now)
    await cards.want(conn, [(wish.tenant_id, new.id, SubjectKind.REQUEST)], now)

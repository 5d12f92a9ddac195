"""T0: a start that is acknowledged is stored; what started it starts one run, however often it
comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from executor.domain import identity
from executor.domain.authority import Authority
from executor.domain.ids import PrincipalId, RunId, TenantId
from executor.domain.journal import Chain
from executor.domain.payloads import JsonObject, digest
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.secret_text import as_kept
from executor.domain.transition import Machine, Reason, Refused
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.rights import read_rights
from executor.store import budgets, journal, runs, tenants
from executor.store.admission import Admission, admit_to_queue
from executor.store.connection import Connection
from executor.store.people import read_identities
from executor.store.wakeups import Kind

LONGEST_GOAL = 4_000


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A wish for a run. ``origin_key`` names what started it, e.g. ``slash:T1:1337.42.abc``.

    ``reply_to`` is the bot's own note of where the wish came from; it is stored and given back.
    """

    tenant_id: TenantId
    requester: PrincipalId
    goal: str
    origin_key: str
    reply_to: JsonObject


@dataclass(frozen=True, slots=True)
class Started:
    """The run that this origin started; ``again`` when it had started it before."""

    run_id: RunId
    number: int
    again: bool


StartResult = Started | Refused


async def start(engine: Engine, requests: Sequence[StartRequest]) -> list[StartResult]:
    """Queue one run for each request, in one commit.

    Opens its own transaction. A request whose origin is known returns the run that it started; the
    same origin with another goal or requester is refused. Raises ``CommitUnknown``.
    """
    async with engine.committing(Commit.START) as conn:
        results = await start_in(conn, engine, requests)
    engine.ring(Kind.WORK)
    return results


async def start_in(
    conn: Connection, engine: Engine, requests: Sequence[StartRequest]
) -> list[StartResult]:
    """Queue runs inside the caller's transaction, which calls this once; see ``start``."""
    policies = await tenants.share_policies(conn, {r.tenant_id for r in requests})
    people = await read_identities(conn, {(r.tenant_id, r.requester) for r in requests})
    rights = await read_rights(conn, policies, {(r.tenant_id, r.requester) for r in requests})
    known = await runs.by_origin(conn, {(r.tenant_id, r.origin_key) for r in requests})
    queues = await _join_queues(conn, policies, requests, known)
    # Two equal requests in one group are one request: the first of them starts the run.
    fresh = {
        (r.tenant_id, r.origin_key): RunId(engine.mint())
        for r in requests
        if (r.tenant_id, r.origin_key) not in known
    }
    chain = await journal.lock_chain(conn, [(tenant, id_) for (tenant, _), id_ in fresh.items()])
    results: list[StartResult | None] = []
    new: dict[tuple[TenantId, str], runs.NewRun] = {}
    for request in requests:
        key = (request.tenant_id, request.origin_key)
        if key in known:
            # What started a run once is told of that run, whatever has become of the requester.
            results.append(None)
            continue
        policy = policies.get(request.tenant_id)
        observed = people.get((request.tenant_id, request.requester))
        objection = _objection(rights.of(policy, chain.now), request)
        if objection is None and policy is not None:
            objection = identity.objection(
                observed,
                policy.slack.team,
                now=chain.now,
                agent=policy.is_agent(request.requester),
            )
        if policy is None or objection is not None:
            results.append(objection or Refused(Reason.NOT_PERMITTED))
            continue
        queue = queues[request.tenant_id]
        if key not in new and not queue.has_room():
            results.append(queue.refusal())
            continue
        results.append(None)
        if key not in new:
            queue.taken += 1
            new[key] = runs.NewRun(
                request.tenant_id,
                fresh[key],
                goal_of(request),
                request.requester,
                request.origin_key,
                _digest(request),
                request.reply_to,
                policy.version,
                chain.now + timedelta(seconds=policy.run.max_seconds),
                policy.run.max_parked_seconds,
                chain.birth(
                    Machine.RUN,
                    request.tenant_id,
                    fresh[key],
                    fresh[key],
                    RunStatus.QUEUED,
                    request.requester,
                    {"goal": goal_of(request), "origin_key": request.origin_key},
                ),
            )
    numbers = await _insert(conn, list(new.values()), policies, chain)
    if len(numbers) < len(new):
        known |= await runs.by_origin(conn, list(new))
    return [
        result if result is not None else _answer(request, new, numbers, known)
        for request, result in zip(requests, results, strict=True)
    ]


@dataclass(slots=True)
class _Queue:
    """What one tenant's queue has room for, as this transaction holds it, and who took of it."""

    admission: Admission
    limit: int
    taken: int = 0

    def has_room(self) -> bool:
        return self.taken < self.admission.admitted

    def refusal(self) -> Refused:
        waiting = (self.admission.waiting or 0) + self.taken
        return Refused(Reason.QUEUE_FULL, {"queued": waiting, "limit": self.limit})


async def _join_queues(
    conn: Connection,
    policies: dict[TenantId, Policy],
    requests: Sequence[StartRequest],
    known: dict[tuple[TenantId, str], runs.KnownRun],
) -> dict[TenantId, _Queue]:
    """Hold room for what may be queued; ``known`` gains what others have started meanwhile."""
    wanted = {(r.tenant_id, r.origin_key) for r in requests} - known.keys()
    asked = Counter(tenant for tenant, _ in wanted if tenant in policies)
    queues = {}
    for tenant, count in sorted(asked.items()):
        limit = policies[tenant].admission.max_queued_runs
        queues[tenant] = _Queue(await admit_to_queue(conn, tenant, count, limit), limit)
    # Who waited for the last place may have waited for its own twin.
    short = {t for t, queue in queues.items() if queue.admission.admitted < asked[t]}
    if short:
        known |= await runs.by_origin(conn, {key for key in wanted if key[0] in short})
    return queues


async def _insert(
    conn: Connection,
    new: Sequence[runs.NewRun],
    policies: dict[TenantId, Policy],
    chain: Chain,
) -> dict[RunId, int]:
    if not new:
        return {}
    numbers = await runs.insert_runs(conn, new, chain.now)
    born = [r for r in new if r.id in numbers]
    await budgets.open_run_budgets(
        conn,
        {(r.tenant_id, r.id): policies[r.tenant_id].budget.run_microusd for r in born},
    )
    # A run that another transaction started first was not born here: its chain is not ours.
    for lost in (r for r in new if r.id not in numbers):
        chain.grown.pop((lost.tenant_id, lost.id))
    await journal.advance(conn, chain)
    return numbers


def _answer(
    request: StartRequest,
    new: dict[tuple[TenantId, str], runs.NewRun],
    numbers: dict[RunId, int],
    known: dict[tuple[TenantId, str], runs.KnownRun],
) -> StartResult:
    key = (request.tenant_id, request.origin_key)
    earlier = known.get(key)
    if earlier is not None:
        if earlier.request_digest != _digest(request):
            return Refused(Reason.ALREADY_STARTED, {"run": earlier.number})
        return Started(earlier.id, earlier.number, again=True)
    run = new[key]
    if run.request_digest != _digest(request):
        return Refused(Reason.ALREADY_STARTED, {"run": numbers[run.id]})
    return Started(run.id, numbers[run.id], again=False)


def _objection(authority: Authority | None, request: StartRequest) -> Refused | None:
    if authority is None:
        return Refused(Reason.NOT_PERMITTED, {"missing": Permission.REQUEST.value})
    return authority.objection(request.requester, Permission.REQUEST)


def goal_of(request: StartRequest) -> str:
    """Return the goal as it is recorded and shown: what looks like a secret is hidden in it."""
    return as_kept(request.goal, LONGEST_GOAL)


def _digest(request: StartRequest) -> bytes:
    return digest({"goal": goal_of(request), "requester": request.requester})

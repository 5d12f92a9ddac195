"""One approved operation and one thing that goes wrong, played until no machine has anything to do.

A story is lived by one worker after the other: each goes on from what the record says, until it
dies or nothing is due any more. Time is the database's, moved from one due moment to the next, and
the doubles' clocks with it; what people do meanwhile stands on an agenda.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import asyncpg

from bot.sandbox.clock import VirtualClock
from executor.adapters.host_clock import mint_id
from executor.domain.approval import Vote
from executor.domain.closing import ProposeClosing
from executor.domain.effect import Capability
from executor.domain.ids import OperationId
from executor.domain.stamp import DeskVersion
from executor.engine.accept import Asked, accept
from executor.engine.click import Click
from executor.engine.converging import Accepted
from executor.engine.executing import execute, openings
from executor.engine.leases import operation_keeper
from executor.engine.reconciler import reconcile
from executor.engine.recovering import recover_due
from executor.store import card_turns, cards, clock
from executor.store.cards import Posting, PostingOutcome
from tests.support.failpoints import Crashed
from tests.support.mortal import Death, Mortal
from tests.support.office import CHANNEL, RENE, TENANT, Office

MOST_STEPS = 200
SOON = 0.01

# One round trip for each of these: stories spend most of their time waiting for the database.
_DUE = """
SELECT extract(epoch FROM conclude - signoff_clock())::float8,
       extract(epoch FROM recover - signoff_clock())::float8,
       extract(epoch FROM work - signoff_clock())::float8
FROM (SELECT min(conclude_at) AS conclude FROM attempts WHERE status = 'dispatched') a,
     (SELECT min(recover_at) AS recover FROM attempts) b,
     (SELECT min(due_at) AS work FROM operations WHERE status IN ('approved', 'executing')) c"""

_PASS_TIME = """
BEGIN;
SET LOCAL signoff.clock_may_move = 'on';
INSERT INTO clock_offset (moved) VALUES (interval '{seconds:.6f} seconds')
ON CONFLICT (only_row) DO UPDATE SET moved = clock_offset.moved + excluded.moved;
UPDATE identity_observations SET observed_at = signoff_clock();
COMMIT"""

_TRIES = """
SELECT e.kind, a.status, a.lookups, a.evidence ->> 'a_person_is_asked', a.evidence ->> 'search'
FROM attempts a JOIN effects e ON e.tenant_id = a.tenant_id AND e.id = a.effect_id
WHERE a.operation_id = :o ORDER BY e.position, a.number"""


@dataclass(frozen=True)
class Try:
    """One attempt as the record has it at the end."""

    kind: str
    status: str
    lookups: int
    asked: str | None
    found_by_search: bool


@dataclass(frozen=True)
class Ending:
    """How a story ended: what the record says, and what the outside has taken from us."""

    status: str
    reason: str | None
    parts: dict[str, str]
    tries: tuple[Try, ...]
    accepted: int
    closes: int
    notes: int

    @property
    def truth(self) -> tuple[str, int, int, int]:
        """What counts of it."""
        return self.status, self.accepted, self.closes, self.notes

    @property
    def asked(self) -> str | None:
        """Why a person is asked, where one is."""
        told = [t.asked for t in self.tries if t.status == "unknown" and t.asked is not None]
        return told[0] if told else None

    @property
    def lookups(self) -> int:
        """How often somebody has searched or read back."""
        return sum(t.lookups for t in self.tries)


class Scene(ABC):
    """One provider or desk with its double, and the office that works with it."""

    capability: Capability
    outside_desk = False
    gives_up: float | None = None
    """Seconds that a request waits for an answer, in stories in which none comes."""

    def __init__(
        self, office: Office, raw: asyncpg.Connection[asyncpg.Record], time: VirtualClock
    ) -> None:
        self.office = office
        self.raw = raw
        self.time = time
        self._agenda: list[tuple[float, Callable[[], None]]] = []

    @abstractmethod
    async def make_tickets(self, numbers: Sequence[int]) -> None:
        """Put tickets on the desk."""

    @abstractmethod
    async def version(self, number: int) -> DeskVersion:
        """Read what a proposal about a ticket is bound to."""

    @abstractmethod
    async def calm_down(self) -> None:
        """Let nothing go wrong any more; what hangs goes on hanging."""

    @abstractmethod
    def begin(self, number: int) -> None:
        """Count for this ticket from now on."""

    @abstractmethod
    async def taken(self) -> tuple[int, int, int]:
        """Count mails accepted, closes and notes of this story."""

    @abstractmethod
    async def hangs(self) -> None:
        """Wait until a request of this story is left without an answer."""

    def proposal(self, number: int) -> ProposeClosing:
        """Propose to close a ticket."""
        return ProposeClosing(
            ticket_id=str(number),
            language="en",
            subject=f"Ticket {number} closed",
            message="Your invoice is corrected.",
            to=("pat@cust.example",),
        )

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Let something happen so many seconds from now."""
        self._agenda.append((self.time.now() + seconds, what))

    def next_event(self) -> float | None:
        """Say in how many seconds somebody else does something, if ever."""
        return min((at - self.time.now() for at, _ in self._agenda), default=None)

    def let_happen(self) -> None:
        """Do what is on the agenda by now."""
        now = self.time.now()
        due = [what for at, what in self._agenda if at <= now]
        self._agenda = [(at, what) for at, what in self._agenda if at > now]
        for what in due:
            what()

    def forget_agenda(self) -> None:
        """Let nothing happen any more."""
        self._agenda.clear()

    async def pass_time(self, seconds: float) -> None:
        """Move all clocks, and look at everybody again."""
        await self.raw.execute(_PASS_TIME.format(seconds=seconds))
        self.time.advance(seconds)
        self.let_happen()


SceneT = TypeVar("SceneT", bound=Scene)


async def _nothing(scene: Any, operation: OperationId) -> None:
    return None


@dataclass(frozen=True)
class Scenario(Generic[SceneT]):
    """What goes wrong: planned before the first attempt, and what happens after it.

    ``killed_at`` is where a first worker dies in any case. ``learnable`` is false where not even a
    provider that could be asked tells; ``loses`` where an answer that decides gets lost;
    ``repeats`` where the provider itself does a thing twice. ``hangs``: no answer comes. ``skips``
    counts the points before the trouble, which another scenario has told. ``alone``: each story
    has a run of its own.
    """

    name: str
    plan: Callable[[SceneT], None] = lambda scene: None
    after: Callable[[SceneT, OperationId], Awaitable[None]] = _nothing
    killed_at: Death | None = None
    learnable: bool = True
    loses: bool = False
    repeats: bool = False
    hangs: bool = False
    skips: int = 0
    alone: bool = False


@dataclass
class _Proposed:
    """An operation whose card is out, and the click that approves it."""

    number: int
    operation: OperationId
    click: Click


@dataclass
class Play(Generic[SceneT]):
    """One scenario on its scene: first without another death, then once for each."""

    scene: SceneT
    scenario: Scenario[SceneT]
    first_number: int
    numbers: int = field(default=0)

    async def untouched(self) -> tuple[Ending, Mortal]:
        """Play it without another death; returns who has passed all moments that could be last."""
        [proposed] = await self._propose(1)
        witness = Mortal(clock=self.scene.time.now)
        return await self._play(proposed, witness), witness

    async def killed(self, deaths: Sequence[Death]) -> list[Ending]:
        """Play it once for each death."""
        if self.scenario.alone:
            proposed = [one for _ in deaths for one in await self._propose(1)]
        else:
            proposed = await self._propose(len(deaths))
        endings = []
        for one, death in zip(proposed, deaths, strict=True):
            mortal = Mortal(death)
            endings.append(await self._play(one, mortal))
            assert mortal.dead, f"{self.scenario.name}: nobody came to {death}"
        return endings

    async def _propose(self, count: int) -> list[_Proposed]:
        """Walk to operations whose cards are out: one run, one reply of the model, one commit."""
        scene, office = self.scene, self.scene.office
        await scene.calm_down()
        first = self.first_number + self.numbers
        numbers = range(first, first + count)
        self.numbers += count
        await scene.make_tickets(numbers)
        run_id = await office.start_run()
        claimed = await office.claim_run(run_id)
        await office.record_reply(run_id, 1, count)
        asked = [
            Asked(1, place, scene.proposal(number), await scene.version(number))
            for place, number in enumerate(numbers)
        ]
        key, epoch = (TENANT, run_id), claimed.lease.epoch
        results = await accept(office.engine, office.providers, office.emails, key, epoch, asked, 2)
        operations = [r.operation_id for r in results if isinstance(r, Accepted)]
        assert len(operations) == count, results
        return await self._show(numbers, operations)

    async def _show(
        self, numbers: Sequence[int], operations: Sequence[OperationId]
    ) -> list[_Proposed]:
        """Record that each card is being posted; the click on it will tell that it arrived."""
        view = hashlib.sha256(b"view").digest()
        async with self.scene.office.database.transaction() as conn:
            now = await clock.now(conn)
            await cards.keep_view(conn, TENANT, view, [], now)
            nonces = {operation: mint_id() for operation in operations}
            for card in await card_turns.claim(conn, TENANT, operations, 60.0):
                nonce = nonces[OperationId(card.subject_id)]
                posting = Posting(
                    nonce, card.subject_id, CHANNEL, 1, view, PostingOutcome.SENDING, None, now
                )
                await cards.begin_posting(conn, TENANT, posting, now)
        consents = {
            operation: (id_, bytes(digest))
            for operation, id_, digest in await self.scene.office.rows(
                "SELECT operation_id, id, digest FROM approvals WHERE operation_id = ANY(:o)",
                o=list(operations),
            )
        }
        return [
            _Proposed(number, o, _click(o, *consents[o], nonces[o]))
            for number, o in zip(numbers, operations, strict=True)
        ]

    async def _play(self, proposed: _Proposed, second: Mortal) -> Ending:
        """Approve it, and let one worker after the other go on until nothing is due any more."""
        scene, office, scenario = self.scene, self.scene.office, self.scenario
        await scene.calm_down()
        scene.begin(proposed.number)
        scene.forget_agenda()
        # A minute later, on every clock: nothing of this story is as old as what was proposed.
        await scene.pass_time(60.0)
        await office.decide(proposed.click)
        scenario.plan(scene)
        lives = [second, Mortal()]
        if scenario.killed_at is not None:
            lives.insert(0, Mortal(scenario.killed_at))
        happened = False
        for number, mortal in enumerate(lives):
            worker = _Worker(scene, f"w{number}", mortal, hangs=scenario.hangs)
            for _ in range(MOST_STEPS):
                going_on = await worker.step()
                if not happened and worker.has_worked:
                    happened = True
                    await scenario.after(scene, proposed.operation)
                if mortal.dead or not going_on:
                    break
            else:
                raise AssertionError(f"{scenario.name}: still due after {MOST_STEPS} steps")
            if not mortal.dead:
                break
        return await self._ending(proposed.operation)

    async def _ending(self, operation: OperationId) -> Ending:
        office = self.scene.office
        [(status, reason)] = await office.rows(
            "SELECT status, reason FROM operations WHERE id = :o", o=operation
        )
        parts = await office.rows(
            "SELECT kind, status FROM effects WHERE operation_id = :o ORDER BY position",
            o=operation,
        )
        tries = [
            Try(kind, status, lookups, asked, search is not None)
            for kind, status, lookups, asked, search in await office.rows(_TRIES, o=operation)
        ]
        accepted, closes, notes = await self.scene.taken()
        return Ending(status, reason, dict(parts), tuple(tries), accepted, closes, notes)


def _click(operation: OperationId, approval: Any, digest: bytes, nonce: Any) -> Click:
    request = hashlib.sha256(json.dumps([str(operation)]).encode()).digest()
    return Click(
        TENANT,
        operation,
        approval,
        digest,
        1,
        nonce,
        RENE,
        Vote.APPROVE,
        "",
        CHANNEL,
        f"ts-{operation}",
        request,
        RENE.rsplit(":", 1)[-1],
    )


class _Worker:
    """One process: it concludes, recovers and drives what is due, and nothing else."""

    def __init__(self, scene: Scene, owner: str, mortal: Mortal, *, hangs: bool) -> None:
        self._scene, self._owner, self._mortal, self._hangs = scene, owner, mortal, hangs
        self._office = scene.office.colleague(failpoints=mortal)
        self.has_worked = False

    async def step(self) -> bool:
        """Do what is due, or let time pass until something is; ``False``: nothing ever is."""
        waits: list[float | None] = list(await self._scene.raw.fetchrow(_DUE))
        known = [w for w in (*waits, self._scene.next_event()) if w is not None]
        if not known:
            return False
        if min(known) > 0:
            await self._scene.pass_time(min(known) + SOON)
            return True
        self._scene.let_happen()
        for wait, do in zip(waits, (self._conclude, self._recover, self._work), strict=True):
            if wait is not None and wait <= 0 and not self._mortal.dead:
                with suppress(Crashed):
                    await do()
        return True

    async def _conclude(self) -> None:
        await reconcile(self._office.engine)

    async def _recover(self) -> None:
        await recover_due(self._office.engine, self._office.providers)

    async def _work(self) -> None:
        engine, providers = self._office.engine, self._office.providers
        claims = await self._office.claim_operations(self._owner)
        if not claims:
            # Somebody who is dead by now holds it.
            await self._scene.pass_time(1.0)
        for claimed in claims:
            self.has_worked = True
            keeper = operation_keeper(engine, claimed.claim.key, claimed.lease)
            working = execute(engine, providers, openings(engine, providers), claimed.claim, keeper)
            await (self._impatiently(working) if self._hangs else working)

    async def _impatiently(self, working: Any) -> None:
        """Work; where no answer comes, all the time that a request may take is over at once."""

        async def give_up() -> None:
            await self._scene.hangs()
            skip_ahead(self._scene.gives_up or 0.0)

        watching = asyncio.create_task(give_up())
        try:
            await working
        finally:
            watching.cancel()
            await asyncio.wait({watching})


def skip_ahead(seconds: float) -> None:
    """Let the running loop believe that so much time has passed: its timeouts end now."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]

"""Bot and executor in this process, with the sandbox's Slack and mailbox and a real database.

    async with Harness(database_url) as h:
        number = await h.start_run("close 4101")
        card = await h.card()
        await h.person("U0REVIEWER").click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)

Everything between them goes over HTTP and SMTP as it would between processes. ``start_bot`` starts
another bot process's worth beside the first one; ``start_worker`` another executor's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient
from sqlalchemy import text

from bot.application import Bot, News, installation_of
from bot.card_delivery import CardDelivery
from bot.cards import CardPainter, card_environment
from bot.ingress.webhooks import Webhook
from bot.sandbox.interaction import Person
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.model import Json, Message
from bot.sandbox.scripted_person import rendered
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.tickets import sandbox_tickets
from bot.sandbox.workspace import Workspace
from bot.slack_pace import delivery_of
from bot.step_up import StepUp
from executor.adapters.host_clock import SystemClock, mint_id
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.adapters.models.scripted import ScriptedModel
from executor.domain.operation import OperationStatus
from executor.domain.policy import Policy
from executor.domain.run import RunStatus
from executor.domain.secret_text import LOOKS_ALONE, Secrets
from executor.engine import desk
from executor.engine.card_turns import Paces
from executor.engine.closure_email import ClosureEmails
from executor.engine.compensating import compensate_until_cancelled
from executor.engine.driver import Crew
from executor.engine.engine import Bell, Durations, Engine
from executor.engine.failpoint import Failpoints, Inert
from executor.engine.ports import MailPort, ModelPort
from executor.engine.providers import Providers
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep_until_cancelled
from executor.engine.worker import Worker, WorkerTerms
from executor.store.database import Database
from executor.store.wakeups import Kind, Listener, listening
from tests.support.card_reading import action_ids
from tests.support.clock import move_clock
from tests.support.fake_model import FakeModel, calls, says
from tests.support.unpaced import UNPACED

APPROVALS = "C0APPROVALS"
SUPPORT = "C0SUPPORT"
REQUESTER, REVIEWER, SECOND = "U0REQUESTER", "U0REVIEWER", "U0SECOND"
OUTSIDER, GUEST = "U0OUTSIDER", "U0GUEST"
PATIENCE_SECONDS = 15.0

T = TypeVar("T")


def about_an_operation(args: Json) -> bool:
    """Tell calls about operations' cards from those about what runs say of themselves."""
    return str(args.get("text", "")).startswith("op_")


def policy_document(**sections: dict[str, Any]) -> dict[str, Any]:
    """A policy for the sandbox's workspace; ``sections`` are merged into it."""
    document: dict[str, Any] = {
        "slack": {"team": "TSIGNOFF", "channel": APPROVALS},
        "tenant": {"name": "Acme Support", "timezone": "Europe/Amsterdam"},
        "people": {"requesters": "everyone", "approvers": [REVIEWER, SECOND]},
        "email": {"from": "Acme Support <support@acme.example>"},
    }
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section}
    return document


def make_policy(**sections: dict[str, Any]) -> Policy:
    """A checked policy; see ``policy_document``."""
    return Policy.model_validate(policy_document(**sections))


def proposing(
    ticket_id: str = "4101",
    *,
    subject: str = "Ticket closed",
    message: str = "All is well.",
    held: bool = False,
) -> FakeModel:
    """A model that reads one ticket, proposes to close it with these words, and ends.

    A ``held`` one says nothing before it is released.
    """
    return FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": ticket_id})),
            says(
                "",
                calls(
                    "propose_closing",
                    {
                        "ticket_id": ticket_id,
                        "language": "en",
                        "subject": subject,
                        "message": message,
                    },
                ),
            ),
            says("That is all."),
        ],
        held=held,
    )


@dataclass
class ShiftedClock(SystemClock):
    """This host's clock, off by ``offset``."""

    offset: timedelta = timedelta()

    def wall(self) -> datetime:
        return datetime.now(UTC) + self.offset


@dataclass
class RunningBot:
    """One bot that answers at ``url``."""

    bot: Bot
    engine: Engine
    url: str
    listener: Listener
    stack: AsyncExitStack
    loops: asyncio.Task[None]
    stopped: bool = False

    async def stop(self) -> None:
        """End it as SIGTERM would."""
        if not self.stopped:
            self.stopped = True
            await self.stack.aclose()

    async def stop_loops(self) -> None:
        """End its loops, so that it only answers requests."""
        self.loops.cancel()
        await asyncio.wait({self.loops})


@dataclass
class RunningWorker:
    """One executor at work."""

    worker: Worker
    engine: Engine
    stack: AsyncExitStack
    stopped: bool = False

    async def stop(self) -> None:
        """Let it come to an end."""
        if not self.stopped:
            self.stopped = True
            await self.stack.aclose()


@dataclass
class Harness:
    """Everything that one tenant needs, running; see the module docstring.

    ``worker`` and ``bot`` say whether one of each is started on entry.
    """

    database_url: str
    policy: Policy = field(default_factory=make_policy)
    workspace: Workspace = field(default_factory=Workspace.seeded)
    durations: Durations = field(
        default_factory=lambda: Durations(
            retry_seconds=0.2, identity_retry_seconds=0.2, sweep_seconds=0.5
        )
    )
    model: ModelPort = field(default_factory=ScriptedModel)
    mail: MailPort | None = None
    painter: CardPainter = field(default_factory=lambda: CardPainter(card_environment()))
    worker: bool = True
    bot: bool = True
    call_seconds: float = 2.0
    look_for: timedelta = timedelta(seconds=1.5)
    paces: Paces = UNPACED
    webhooks: Sequence[Webhook] = ()
    step_up: StepUp | None = None
    secrets: Secrets = LOOKS_ALONE
    mailbox: Mailbox = field(default_factory=Mailbox)
    bots: list[RunningBot] = field(default_factory=list)
    workers: list[RunningWorker] = field(default_factory=list)

    async def __aenter__(self) -> Harness:
        self._stack = AsyncExitStack()
        try:
            self.slack = await self._stack.enter_async_context(SlackServer(self.workspace))
            await self._stack.enter_async_context(self.mailbox)
            self.database = await self._connect(self._stack, self.database_url, "harness")
            self.engine = Engine(self.database, SystemClock(), mint_id, self.durations)
            await activate_policy(self.engine, self.policy)
            await desk.import_tickets(
                self.database, self.policy.tenant_id, sandbox_tickets(datetime.now(UTC))
            )
            if self.bot:
                await self.start_bot()
            if self.worker:
                await self.start_worker()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Whatever hangs in the fakes is let go first, or nothing could end.
        self.slack.faults.clear()
        self.mailbox.release()
        await self._stack.aclose()

    # Parts

    async def start_bot(
        self,
        *,
        database_url: str | None = None,
        clock: SystemClock | None = None,
        failpoints: Failpoints | None = None,
    ) -> RunningBot:
        """Start a bot with a database connection of its own; Slack sends to it from now on."""
        stack = AsyncExitStack()
        engine, listener = await self._process(stack, database_url, clock, failpoints)
        client = AsyncWebClient(
            token=self.workspace.bot_token,
            base_url=self.slack.api_url,
            timeout=10,
            retry_handlers=[],
        )
        bot = Bot(
            engine=engine,
            policy=self.policy,
            client=client,
            token=self.workspace.bot_token,
            installation=await installation_of(client, self.policy),
            signing_secrets=[self.workspace.signing_secret.encode()],
            painter=self.painter,
            news=News(
                cards=partial(listener.wait, Kind.CARDS),
                notices=partial(listener.wait, Kind.CARDS),
                identities=partial(listener.wait, Kind.IDENTITIES),
                inbox=partial(listener.wait, Kind.INBOX),
                is_listening=lambda: listener.is_listening,
            ),
            delivery=CardDelivery(
                engine,
                client,
                self.painter,
                delivery_of(self.policy, self.paces),
                call_seconds=self.call_seconds,
                look_for=self.look_for,
            ),
            webhooks=self.webhooks,
            providers=Providers(self._mail()),
            step_up=self.step_up,
        )
        loops = asyncio.create_task(bot.run(), name="bot")
        stack.push_async_callback(_ended, loops)
        runner = web.AppRunner(bot.web_application(), access_log=None, shutdown_timeout=2.0)
        stack.push_async_callback(bot.close)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        running = RunningBot(bot, engine, url, listener, stack, loops)
        self.bots.append(running)
        self._stack.push_async_callback(running.stop)
        self.workspace.connect(url)
        return running

    async def start_worker(
        self,
        *,
        database_url: str | None = None,
        failpoints: Failpoints | None = None,
        owner: str | None = None,
    ) -> RunningWorker:
        """Start an executor with a database connection of its own."""
        stack = AsyncExitStack()
        engine, listener = await self._process(stack, database_url, None, failpoints)
        providers = Providers(self._mail())
        worker = Worker(
            engine,
            Crew(self.model, providers, ClosureEmails()),
            listener,
            owner or f"worker-{len(self.workers) + 1}",
            WorkerTerms(grace_seconds=5.0, poll_seconds=0.3),
        )
        sweeping = asyncio.create_task(sweep_until_cancelled(engine), name="sweeper")
        stack.push_async_callback(_ended, sweeping)
        compensating = asyncio.create_task(
            compensate_until_cancelled(engine, providers), name="compensation"
        )
        stack.push_async_callback(_ended, compensating)
        working = asyncio.create_task(worker.run(), name="worker")
        stack.push_async_callback(_finished, worker, working)
        running = RunningWorker(worker, engine, stack)
        self.workers.append(running)
        self._stack.push_async_callback(running.stop)
        return running

    def _mail(self) -> MailPort:
        return self.mail or SmtpMail(
            parse_smtp_url(f"{self.mailbox.url}?tls=none"), longest_request_seconds=10.0
        )

    async def _process(
        self,
        stack: AsyncExitStack,
        database_url: str | None,
        clock: SystemClock | None,
        failpoints: Failpoints | None,
    ) -> tuple[Engine, Listener]:
        database = await self._connect(stack, database_url or self.database_url, "process")
        bell = Bell(database)
        engine = Engine(
            database,
            clock or SystemClock(),
            mint_id,
            self.durations,
            failpoints or Inert(),
            bell,
            self.secrets,
        )
        listener = await stack.enter_async_context(listening(database))
        stack.push_async_callback(_ended, asyncio.create_task(bell.run(), name="bell"))
        return engine, listener

    async def _connect(self, stack: AsyncExitStack, url: str, name: str) -> Database:
        database = Database.connect(url, pool_size=8, application_name=name)
        stack.push_async_callback(database.dispose)
        return database

    # People

    def person(self, user_id: str) -> Person:
        """The hands of one user of the workspace."""
        return self.workspace.person(user_id)

    async def start_run(
        self, goal: str = "close 4101", *, by: str = REQUESTER, channel: str = APPROVALS
    ) -> int:
        """Type ``/signoff run …`` and return the number of the run that this started."""
        before = await self.numbers()
        delivery = await self.person(by).slash(channel, "/signoff", f"run {goal}")
        assert delivery.status == 200, delivery
        started = await self.numbers() - before
        assert len(started) == 1, f"no run was started: {delivery.said}"
        return started.pop()

    async def start_told_run(self, bot: Callable[[], Awaitable[RunningBot]]) -> RunningBot:
        """Start a run, and once it tells of itself let ``bot`` take the place of the first bot.

        The model is held until then: all that the other bot has to post is of operations.
        """
        assert isinstance(self.model, FakeModel)
        await self.start_run("close 4101")
        await self.word("Thinks about what to do next")
        await self.until(self._nothing_is_due, bool)
        await self.bots[0].stop()
        other = await bot()
        self.model.release(9)
        return other

    # What can be seen

    def cards(self, channel: str = APPROVALS) -> list[Message]:
        """The bot's messages in a channel, oldest first, but for what runs say of themselves."""
        return [m for m in self._said(channel) if not m.text.startswith("run_")]

    def words(self, channel: str = APPROVALS) -> list[Message]:
        """What runs say of themselves in a channel, oldest first: one message each."""
        return [m for m in self._said(channel) if m.text.startswith("run_")]

    def _said(self, channel: str) -> list[Message]:
        bot = self.workspace.app.bot_id
        return [m for m in self.workspace.visible(channel) if m.bot_id == bot]

    async def card(
        self,
        predicate: Callable[[Message], bool] | None = None,
        *,
        channel: str = APPROVALS,
        timeout: float = PATIENCE_SECONDS,
    ) -> Message:
        """Wait for a card that fits, by default one that can be approved, and return it."""
        fits = predicate or (lambda m: "approve" in action_ids(m.blocks))

        def found() -> list[Message]:
            return [m for m in self.cards(channel) if fits(m)]

        await self.workspace.wait_for(lambda _: found(), timeout)
        return found()[-1]

    async def word(
        self, words: str, *, channel: str = APPROVALS, timeout: float = PATIENCE_SECONDS
    ) -> Message:
        """Wait until a run says of itself what contains ``words``, and return its message."""

        def found() -> list[Message]:
            return [m for m in self.words(channel) if words in rendered(m)]

        await self.workspace.wait_for(lambda _: found(), timeout)
        return found()[-1]

    async def settled_card(self, **given: Any) -> Message:
        """Wait for a card that is placed and shows its record as it stands."""
        card = await self.card(**given)
        await self.until(self._nothing_is_due, bool)
        return card

    async def shown(self, *words: str, timeout: float = PATIENCE_SECONDS) -> None:
        """Wait until all of these words stand somewhere in the workspace."""
        await self.workspace.wait_for(lambda w: all(word in w.shown() for word in words), timeout)

    async def whispered(
        self, user_id: str, words: str, *, timeout: float = PATIENCE_SECONDS
    ) -> str:
        """Wait until somebody was told something that contains ``words``, and return all of it."""

        def found() -> list[str]:
            return [e.text for e in self.person(user_id).ephemerals() if words in e.text]

        await self.workspace.wait_for(lambda _: found(), timeout)
        return found()[-1]

    # What is recorded

    async def rows(self, statement: str, **binds: Any) -> list[Any]:
        """Read the database directly."""
        async with self.database.transaction() as conn:
            return list((await conn.execute(text(statement), binds)).all())

    async def value(self, statement: str, **binds: Any) -> Any:
        """Read one value of the database."""
        [[value]] = await self.rows(statement, **binds)
        return value

    async def numbers(self) -> set[int]:
        """The numbers of all runs."""
        return {row.number for row in await self.rows("SELECT number FROM runs")}

    async def operations(self) -> list[OperationStatus]:
        """The statuses of all operations, oldest first."""
        rows = await self.rows("SELECT status FROM operations ORDER BY number")
        return [OperationStatus(row.status) for row in rows]

    async def decisions(self) -> list[tuple[str, str]]:
        """Every recorded vote: who, and what."""
        rows = await self.rows("SELECT principal, vote FROM decisions ORDER BY principal")
        return [(row.principal, row.vote) for row in rows]

    async def notes(self, event: str) -> list[dict[str, Any]]:
        """The details of the journal's entries of one kind."""
        rows = await self.rows(
            "SELECT actor, detail FROM journal WHERE event = :event ORDER BY recorded_at",
            event=event,
        )
        return [{"actor": row.actor, **row.detail} for row in rows]

    async def until(
        self,
        read: Callable[[], Awaitable[T]],
        fits: Callable[[T], object],
        timeout: float = PATIENCE_SECONDS,
    ) -> T:
        """Read again and again until what is read fits; fails with what it was last."""
        last: T | None = None
        try:
            async with asyncio.timeout(timeout):
                while True:
                    last = await read()
                    if fits(last):
                        return last
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise TimeoutError(f"it stayed {last!r}; shown:\n{self.workspace.shown()}") from None

    async def until_operation(
        self, *statuses: OperationStatus, timeout: float = PATIENCE_SECONDS
    ) -> None:
        """Wait until the operations stand so, oldest first."""
        await self.until(self.operations, lambda found: found == list(statuses), timeout)

    async def until_run(
        self, number: int, status: RunStatus, timeout: float = PATIENCE_SECONDS
    ) -> None:
        """Wait until a run stands so."""

        async def read() -> object:
            return await self.value("SELECT status FROM runs WHERE number = :n", n=number)

        await self.until(read, lambda found: found == status.value, timeout)

    async def move_time(self, by: timedelta) -> None:
        """Move the database's clock on."""
        async with self.database.transaction() as conn:
            await move_clock(conn, by)

    async def _nothing_is_due(self) -> bool:
        due = await self.value(
            "SELECT count(*) FROM cards WHERE shown_revision < wanted_revision OR ts IS NULL"
        )
        return bool(due == 0)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def _finished(worker: Worker, task: asyncio.Task[None]) -> None:
    worker.stop()
    await asyncio.wait({task})
    task.result()

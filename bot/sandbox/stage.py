"""The whole of Signoff on one machine: database, Slack, mailbox, desk, and our two programs.

Everything lives in one home folder and is found there again by the next start: the database, the
mails, the messages, the policy file. Ports are free ones, and the same as last time where they
still are free, because a mail provider's address is part of what was approved.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import aiohttp
from aiohttp import web

from bot.sandbox import keeping, seed
from bot.sandbox.demo_desk import BuiltInDesk, DemoDesk
from bot.sandbox.demo_faults import NAMES, TOLD, DemoFault, DeskKind, FaultAt, Outside
from bot.sandbox.demo_policy import demo_policy
from bot.sandbox.faults import Faults
from bot.sandbox.outside_desk import outside_desk
from bot.sandbox.outside_mail import OutsideMail, outside_mail
from bot.sandbox.outside_model import outside_model
from bot.sandbox.page import PageWords, add_page, suggestions
from bot.sandbox.ports import Ports, reserved
from bot.sandbox.slack_server import MAX_BODY_BYTES, routes
from bot.sandbox.tickets import sandbox_tickets
from bot.sandbox.workspace import Workspace
from bot.sandbox.world import SandboxWorld
from bot.supervisor import Child, Launch, leashed
from executor.adapters.host_clock import SystemClock, mint_id
from executor.config import load_policy
from executor.domain.ids import TenantId
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.transition import BORN, Machine
from executor.engine.engine import Engine
from executor.engine.opening_plan import DESK_SILENT
from executor.engine.setup import activate_policy
from executor.engine.status import history, newest_runs
from executor.store.installation import installed_database
from executor.store.wakeups import Kind, Listener, listening

T = TypeVar("T")

READY_POLL_SECONDS = 0.1
RECORD_POLL_SECONDS = 0.5
"""How long a wait for the record goes without looking again, should a notification be lost."""

# An answer that was lost is to be called unknown within seconds here, not within minutes.
SHORT_DURATIONS: dict[str, str] = {
    "SIGNOFF_SMTP_LONGEST_REQUEST_SECONDS": "3",
    "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS": "3",
    "SIGNOFF_FIRST_BYTE_SECONDS": "3",
    "SIGNOFF_CLOCK_ALLOWANCE_SECONDS": "0.5",
    "SIGNOFF_LEASE_TTL_SECONDS": "6",
    "SIGNOFF_LEASE_MARGIN_SECONDS": "1",
    "SIGNOFF_HEARTBEAT_SECONDS": "2",
    "SIGNOFF_RETRY_SECONDS": "1",
    "SIGNOFF_SWEEP_SECONDS": "0.5",
    "SIGNOFF_GRACE_SECONDS": "5",
    "SIGNOFF_OUTBOX_LEASE_SECONDS": "4",
    # The sandbox's Slack takes what comes.
    "SIGNOFF_SLACK_PACE": "50",
}

# A newcomer's own settings and proxies are for a real installation; the demo touches none of it.
_NOT_HANDED_ON = (
    "DATABASE_URL", "SIGNOFF_", "SLACK_", "SMTP_", "RESEND_", "POSTMARK_", "ZENDESK_", "GITHUB_",
    "OPENAI_", "ANTHROPIC_", "PG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
)  # fmt: skip


class StageFailed(Exception):
    """Something did not come about; the message says what was waited for and what is known."""


@dataclass
class Stage:
    """Everything that runs, and ways to wait for what happens on it."""

    home: Path
    policy_file: Path
    url: str
    workspace: Workspace
    mail: OutsideMail
    desk: DemoDesk
    engine: Engine
    tenant: TenantId
    bot: Child
    executor: Child
    _listener: Listener
    _bot_url: str
    waits_for: list[str] = field(default_factory=list)

    async def wait(self, what: str, event: Awaitable[T]) -> T:
        """Wait for ``event``, as long as both programs live; ``what`` is for the error message."""
        self.waits_for.append(what)
        wanted = asyncio.ensure_future(event)
        losses = [asyncio.ensure_future(self._loss(child)) for child in (self.bot, self.executor)]
        try:
            await asyncio.wait([wanted, *losses], return_when=asyncio.FIRST_COMPLETED)
            if not wanted.done():
                for loss in losses:
                    if loss.done():
                        loss.result()
            return await wanted
        finally:
            for task in (wanted, *losses):
                task.cancel()
            await asyncio.wait([wanted, *losses])

    async def bot_is_ready(self) -> None:
        """Wait until the bot says that it is ready."""
        timeout = aiohttp.ClientTimeout(total=5)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                try:
                    async with session.get(f"{self._bot_url}/readyz") as answer:
                        if answer.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError):
                    pass
                # It listens on nothing that would tell us when it begins to listen.
                await asyncio.sleep(READY_POLL_SECONDS)

    async def record_may_have_changed(self, kind: Kind = Kind.CARDS) -> None:
        """Wait until something was recorded, or a short while."""
        await self._listener.wait(kind, RECORD_POLL_SECONDS)

    async def fail(self, fault: DemoFault, at: FaultAt) -> None:
        """Let the next mail, or the next change at the desk, meet a fault."""
        if at is FaultAt.MAIL:
            self.mail.fail(fault, self._something_was_tried)
            return
        before = await self._recorded(_is_an_approval)

        async def is_approved() -> bool:
            return await self._recorded(_is_an_approval) > before

        await self.desk.fail(fault, is_approved, self._something_was_tried)

    async def until_the_fault_is_over(self) -> None:
        """Wait until what was planned to fail last does nothing any more."""
        await self.mail.until_it_is_over()
        await self.desk.until_it_is_over()

    async def _something_was_tried(self) -> None:
        """Wait until it was recorded that an attempt told, or that the desk said nothing."""
        before = await self._recorded(_tells_of_a_try)
        while await self._recorded(_tells_of_a_try) == before:
            await self.record_may_have_changed()

    async def _recorded(self, is_meant: Callable[[JournalEntry], bool]) -> int:
        found = 0
        for run in await newest_runs(self.engine, self.tenant):
            record = await history(self.engine, self.tenant, run.id)
            found += sum(map(is_meant, record.journal))
        return found

    async def stop_programs(self) -> None:
        """Stop both programs where they run; they can be started again."""
        await asyncio.gather(self.bot.stop(), self.executor.stop())

    def account(self) -> str:
        """Say what is known when a wait failed: Slack as it is, and the programs' last words."""
        parts = [f"Slack shows:\n{self.workspace.shown()}"]
        for child in (self.bot, self.executor):
            parts.append(f"The {child.name} said last:\n{child.last_words() or '(nothing)'}")
        return "\n\n".join(parts)

    async def _loss(self, child: Child) -> None:
        await child.wait_for(lambda c: c.given_up is not None)
        assert child.given_up is not None
        raise child.given_up


def _words(outside: Outside, desk: DemoDesk) -> PageWords:
    told = "" if outside.fault is None else TOLD[outside.at][outside.fault]
    return PageWords(
        suggestions(desk.goal),
        NAMES.get(outside.mail, ""),
        NAMES.get(outside.desk, ""),
        told if outside.at is FaultAt.MAIL else "",
        told if outside.at is FaultAt.DESK else "",
    )


def _tells_of_a_try(entry: JournalEntry) -> bool:
    if entry.machine is Machine.ATTEMPT:
        return entry.source not in (None, BORN)
    return entry.event == DESK_SILENT


def _is_an_approval(entry: JournalEntry) -> bool:
    return entry.machine is Machine.OPERATION and entry.target == OperationStatus.APPROVED


@asynccontextmanager
async def staged(
    home: Path,
    *,
    decide_within_seconds: int = 86_400,
    outside: Outside = Outside(),  # noqa: B008 - it is frozen
    launch: Launch = leashed,
) -> AsyncIterator[Stage]:
    """Set the stage in ``home``, the two programs not started; stop everything at its end.

    ``outside`` says who sends the mail and where the tickets are, ``launch`` how the programs are
    started. Nothing fails by itself; see ``Stage.fail``.

    Raises ``StageFailed`` where another demo runs in this home, or where its policy does not allow
    what the desk does; ``EmbeddedDatabaseFailed``, ``PolicyInvalid``, ``OSError``.
    """
    policy_file = _furnished(home, decide_within_seconds)
    policy = load_policy(policy_file)
    if outside.desk is DeskKind.GITHUB and not policy.tickets.allow_desk_notification:
        raise StageFailed(
            f"GitHub mails the authors of issues itself, which {policy_file} does not allow: write "
            "allow_desk_notification = true there below [tickets], or choose another --home"
        )
    workspace = Workspace.seeded()
    async with AsyncExitStack() as stack:
        stack.enter_context(_alone_in(home))
        keeping.load(workspace, home / "slack.json")
        database = await stack.enter_async_context(
            installed_database(None, home, application_name="signoff demo", pool_size=4)
        )
        engine = Engine(database, SystemClock(), mint_id)
        await activate_policy(engine, policy)
        listener = await stack.enter_async_context(listening(database))
        ports = Ports(home / "ports.json")
        at_mail, at_desk = f"mail {outside.mail.value}", f"desk {outside.desk.value}"
        sender = await stack.enter_async_context(
            outside_mail(outside.mail, home, ports.of(at_mail))
        )
        desk = await stack.enter_async_context(
            BuiltInDesk(database, policy.tenant_id)
            if outside.desk is DeskKind.BUILTIN
            else outside_desk(outside.desk, home, ports.of(at_desk))
        )
        at_model = f"model {outside.model.value}"
        thinking = await stack.enter_async_context(outside_model(outside.model, ports.of(at_model)))
        await desk.put(sandbox_tickets(datetime.now(UTC)))
        world = SandboxWorld(
            engine,
            policy.tenant_id,
            desk,
            sender.page,
            {user.id: user.real_name for user in workspace.users.values()},
        )
        url = await stack.enter_async_context(
            _served(workspace, world, _words(outside, desk), ports.of("page"))
        )
        bot_port = ports.of("bot")
        stack.enter_context(reserved(bot_port))
        bot_url = f"http://127.0.0.1:{bot_port}"
        workspace.connect(bot_url)
        ports.remember(
            {
                at_mail: sender.port,
                at_desk: desk.port,
                at_model: thinking.port,
                "page": int(url.rpartition(":")[2]),
                "bot": bot_port,
            }
        )
        settings = {**sender.settings, **desk.settings, **thinking.settings}
        bot, executor = _programs(home, policy_file, url, settings, bot_port, launch)
        await stack.enter_async_context(_kept(workspace, home / "slack.json"))
        stage = Stage(
            home,
            policy_file,
            url,
            workspace,
            sender,
            desk,
            engine,
            policy.tenant_id,
            bot,
            executor,
            listener,
            bot_url,
        )
        stack.push_async_callback(stage.stop_programs)
        yield stage


def _furnished(home: Path, decide_within_seconds: int) -> Path:
    """Make the home where it is new; return its policy file, which its owner may change."""
    (home / "logs").mkdir(parents=True, exist_ok=True)
    policy_file = home / "policy.toml"
    if not policy_file.exists():
        policy_file.write_text(
            demo_policy(decide_within_seconds=decide_within_seconds), encoding="utf-8"
        )
    return policy_file


def _programs(
    home: Path,
    policy_file: Path,
    url: str,
    outside: Mapping[str, str],
    bot_port: int,
    launch: Launch,
) -> tuple[Child, Child]:
    """Make our two programs, pointed at everything here and at nothing else.

    They find the database by the home, as in an installation of one machine: so each of them holds
    it, and the last one to leave stops it, even when this process was killed.
    """
    shared = {
        **{k: v for k, v in os.environ.items() if not k.upper().startswith(_NOT_HANDED_ON)},
        "SIGNOFF_HOME": str(home),
        "SIGNOFF_POLICY": str(policy_file),
        **SHORT_DURATIONS,
        **outside,
    }
    for_bot = {
        "SLACK_BOT_TOKEN": seed.BOT_TOKEN,
        "SLACK_SIGNING_SECRET": seed.SIGNING_SECRET,
        "SLACK_API_URL": f"{url}/api/",
        "SIGNOFF_HOST": "127.0.0.1",
        "SIGNOFF_PORT": str(bot_port),
    }
    return (
        Child("bot", "bot", shared | for_bot, _fresh_log(home / "logs" / "bot.log"), launch=launch),
        Child(
            "executor",
            "executor",
            shared,
            _fresh_log(home / "logs" / "executor.log"),
            launch=launch,
        ),
    )


def _fresh_log(file: Path) -> Path:
    """Begin a log of its own for each start, and keep the one before."""
    if file.exists():
        file.replace(file.with_suffix(".before.log"))
    return file


@asynccontextmanager
async def _served(
    workspace: Workspace, world: SandboxWorld, words: PageWords, port: int
) -> AsyncIterator[str]:
    """Serve page and Slack on one port of this machine; yields the address."""
    faults = Faults()
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    add_page(app, world, words)
    app.add_routes(routes(workspace, faults))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        workspace.public_url = url
        yield url
    finally:
        faults.clear()
        workspace.close()
        await workspace.event_retries.stop()
        await runner.cleanup()


@asynccontextmanager
async def _kept(workspace: Workspace, file: Path) -> AsyncIterator[None]:
    keeper = asyncio.create_task(keeping.keep(workspace, file), name="keep the messages")
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.wait({keeper})
        if not keeper.cancelled():
            keeper.result()


@contextmanager
def _alone_in(home: Path) -> Iterator[None]:
    """Hold the home; the kernel lets go of it however this process ends."""
    with (home / "demo.lock").open("w", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StageFailed(
                f"another demo runs in {home}: stop it, or choose another folder with --home"
            ) from None
        yield

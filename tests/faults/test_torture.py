"""Two bots and three executors are killed at random while runs are approved by scripted clicks.

How many runs is said by ``--torture-runs``: a few for every day, 200 and more for a long evening.

Everything is real but Slack and the mail server, which are the strict sandbox. What must be true at
the end is read from the database, the mailbox and the cards, not from what the processes say.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.sandbox.interaction import Sending
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.model import Message
from bot.sandbox.seed import BOT_TOKEN, SIGNING_SECRET
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.text_view import render_message
from executor.domain.ids import TenantId
from executor.domain.new_ticket import NewTicket
from executor.store import clock, desk
from executor.store.database import Database
from tests.support.nursery import Nursery
from tests.support.processes import Child, Kill, free_port

FEWEST_SUCCEEDED = 0.9
FEWEST_KILLS = 0.05
SEED = 20_261_201
SECONDS_BETWEEN_KILLS = 0.5
LONGEST_SECONDS = 540.0
TENANT = TenantId("TSIGNOFF")
CHANNEL = "C0APPROVALS"

POLICY = """
[slack]
team = "TSIGNOFF"
channel = "C0APPROVALS"

[people]
requesters = ["U0REQUESTER"]
approvers = ["U0REVIEWER"]

[email]
from = "Acme Support <support@acme.example>"
"""

DURATIONS = {
    "SIGNOFF_LEASE_TTL_SECONDS": "12",
    "SIGNOFF_LEASE_MARGIN_SECONDS": "1",
    "SIGNOFF_HEARTBEAT_SECONDS": "2",
    "SIGNOFF_FIRST_BYTE_SECONDS": "10",
    "SIGNOFF_SMTP_LONGEST_REQUEST_SECONDS": "15",
    "SIGNOFF_CLOCK_ALLOWANCE_SECONDS": "1",
    "SIGNOFF_RETRY_SECONDS": "0.5",
    "SIGNOFF_SWEEP_SECONDS": "1",
    "SIGNOFF_OUTBOX_LEASE_SECONDS": "6",
    "SIGNOFF_SLACK_PACE": "50",
}


@dataclass
class _Installation:
    """Five processes, the world around them, and a record of every kill."""

    slack: SlackServer
    mailbox: Mailbox
    database: Database
    children: list[Child]
    bot_urls: list[str]
    runs: int
    random: random.Random = field(default_factory=lambda: random.Random(SEED))
    refused: int = 0

    @property
    def kills(self) -> list[Kill]:
        return [kill for child in self.children for kill in child.kills]

    def somewhere(self) -> Sending:
        """Send to either bot, as a load balancer would."""
        return Sending(to=self.random.choice(self.bot_urls))


@asynccontextmanager
async def _installed(
    url: str, database: Database, folder: Path, nursery: Nursery, runs: int
) -> AsyncIterator[_Installation]:
    policy = folder / "policy.toml"
    policy.write_text(POLICY)
    async with SlackServer() as slack, Mailbox() as mailbox:
        settings = {
            "DATABASE_URL": url,
            "SIGNOFF_HOME": str(folder),
            "SIGNOFF_POLICY": str(policy),
            "SLACK_API_URL": slack.api_url,
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SMTP_URL": mailbox.url,
            "SIGNOFF_POOL_SIZE": "4",
            **DURATIONS,
        }
        ports = [free_port(), free_port()]
        children = [
            Child(
                nursery, "bot", {**settings, "SIGNOFF_PORT": str(port)}, folder / f"bot-{port}.log"
            )
            for port in ports
        ] + [Child(nursery, "executor", settings, folder / f"executor-{n}.log") for n in range(3)]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        slack.workspace.connect(urls[0])
        installation = _Installation(slack, mailbox, database, children, urls, runs)
        try:
            for child in children:
                await child.start()
            for child in children:
                await child.until_ready()
            yield installation
        finally:
            for child in children:
                if child.process is not None and child.process.returncode is None:
                    child.process.kill()
                    await child.process.wait()


@pytest.mark.torture
@pytest.mark.timeout(600)
async def test_many_runs_survive_random_kills(
    database_url: str,
    database: Database,
    tmp_path: Path,
    nursery: Nursery,
    pytestconfig: pytest.Config,
) -> None:
    runs = pytestconfig.getoption("torture_runs")
    async with _installed(database_url, database, tmp_path, nursery, runs) as at:
        await _import_tickets(database, runs)
        over = asyncio.Event()
        killing = asyncio.create_task(_kill_at_random(at, over))
        clicking = asyncio.create_task(_click_approve(at))
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                await asyncio.gather(_type_commands(at), _until_settled(at))
                over.set()
                await killing
                await _until_cards_are_true(at)
        except TimeoutError:
            raise AssertionError(f"it did not end: {await _progress(at)}") from None
        finally:
            for task in (killing, clicking):
                task.cancel()
            await asyncio.wait({killing, clicking})
        await _check(at)


async def _import_tickets(database: Database, runs: int) -> None:
    async with database.transaction() as conn:
        now = await clock.now(conn)
        for number in range(5001, 5001 + runs):
            ticket = NewTicket.model_validate(
                {
                    "id": str(number),
                    "subject": f"Invoice {number}",
                    "language": "en",
                    "customer": {"name": f"Pat {number}", "email": f"pat{number}@cust.example"},
                    "messages": [
                        {"kind": "customer", "author": "Pat", "body": "The invoice is wrong."},
                        {
                            "kind": "agent",
                            "author": "Ann",
                            "body": "The invoice is corrected and attached to your account.",
                        },
                    ],
                }
            )
            await desk.import_ticket(conn, TENANT, ticket, now)


async def _kill_at_random(at: _Installation, over: asyncio.Event) -> None:
    """Kill one process after another, at a random moment after the last one works again.

    So that the pressure is the same on a slow machine, where starting takes most of the time.
    """
    while not over.is_set():
        try:
            async with asyncio.timeout(at.random.uniform(0.0, 2 * SECONDS_BETWEEN_KILLS)):
                await over.wait()
        except TimeoutError:
            child = at.random.choice(at.children)
            await child.kill()
            await child.start()
            await child.until_ready()


async def _type_commands(at: _Installation) -> None:
    """Start every run by a signed command; a command that failed is typed again."""
    riko = at.slack.workspace.person("U0REQUESTER")
    for number in range(5001, 5001 + at.runs):
        while True:
            delivery = await riko.slash(
                "C0SUPPORT", "/signoff", f"run close {number}", sending=at.somewhere()
            )
            # "Not confirmed" and "who are you" are answers too, and say: type it again.
            if delivery.acknowledged and "run_" in (delivery.said or ""):
                break
            at.refused += 1
            await asyncio.sleep(0.1)


async def _click_approve(at: _Installation) -> None:
    """Approve every card that can be approved; one that still can be after a while, once more.

    As a person would: a click may be lost with the process that got it, or be answered with "click
    again".
    """
    rene = at.slack.workspace.person("U0REVIEWER")
    patience: dict[str, float] = {}
    loop = asyncio.get_running_loop()
    seen = 0
    while True:
        for message in at.slack.workspace.visible(CHANNEL):
            subject = _subject(message)
            if loop.time() < patience.get(subject, 0.0) or not _approvable(message):
                continue
            delivery = await rene.click(CHANNEL, message.ts, "approve", sending=at.somewhere())
            patience[subject] = loop.time() + (5.0 if delivery.acknowledged else 0.1)
            at.refused += not delivery.acknowledged
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                seen = await at.slack.workspace.next_change(seen)


def _subject(message: Message) -> str:
    first = message.blocks[0] if message.blocks else {}
    return str(first.get("block_id", "")).split(".")[0]


def _approvable(message: Message) -> bool:
    return any(
        element.get("action_id") == "approve"
        for block in message.blocks
        for element in block.get("elements", [])
        if isinstance(element, dict)
    )


async def _until_settled(at: _Installation) -> None:
    """Wait until every run has ended; the database of other processes has no event to await."""
    while True:
        async with at.database.transaction() as conn:
            ended = (
                await conn.execute(text("SELECT count(*) FROM runs WHERE ended_at IS NOT NULL"))
            ).scalar_one()
            doubtful = (
                await conn.execute(text("SELECT count(*) FROM operations WHERE status = 'unknown'"))
            ).scalar_one()
        # A run whose operation is in doubt waits for a person, and nobody comes in this test.
        if ended + doubtful >= at.runs:
            return
        await asyncio.sleep(0.5)


async def _until_cards_are_true(at: _Installation) -> None:
    while True:
        async with at.database.transaction() as conn:
            behind = (
                await conn.execute(
                    text("SELECT count(*) FROM cards WHERE shown_revision < wanted_revision")
                )
            ).scalar_one()
        if behind == 0:
            return
        await asyncio.sleep(0.2)


async def _progress(at: _Installation) -> str:
    """Say how far everything is, for a test that did not end."""
    async with at.database.transaction() as conn:
        counted = {
            table: Counter(
                (await conn.execute(text(f"SELECT status FROM {table}"))).scalars().all()  # noqa: S608
            )
            for table in ("runs", "operations", "approvals", "attempts")
        }
    return f"{counted}, {len(at.kills)} kills, {at.refused} requests sent again"


async def _check(at: _Installation) -> None:
    async with at.database.transaction() as conn:
        operations = (
            await conn.execute(
                text(
                    "SELECT o.id, o.number, o.status, o.ticket_id, t.status AS ticket, c.channel, "
                    "c.ts, a.opened_at, j.actor FROM operations o "
                    "JOIN desk_tickets t ON t.tenant_id = o.tenant_id AND t.id = o.ticket_id "
                    "LEFT JOIN cards c ON c.subject_id = o.id "
                    "LEFT JOIN LATERAL (SELECT id, opened_at FROM attempts WHERE operation_id = "
                    "o.id ORDER BY number DESC LIMIT 1) a ON true "
                    "LEFT JOIN journal j ON j.entity_id = a.id AND j.seq = 1"
                )
            )
        ).all()
    counts = Counter(row.status for row in operations)
    mails = Counter(to for mail in at.mailbox.mails for to in mail.envelope_to)
    told = f"{counts}, {len(at.kills)} kills, {at.refused} requests sent again"
    assert set(counts) <= {"succeeded", "unknown"}, told
    assert counts["succeeded"] >= FEWEST_SUCCEEDED * at.runs, told
    assert sum(counts.values()) == at.runs, told
    assert {row.ticket for row in operations} == {"closed"}, told
    assert max(mails.values()) == 1, f"two mails to one customer: {mails.most_common(3)}; {told}"
    assert len(at.kills) >= FEWEST_KILLS * at.runs, f"the test was idle: {told}"
    for row in operations:
        address = f"pat{row.ticket_id}@cust.example"
        if row.status == "succeeded":
            assert mails[address] == 1, f"op_{row.number} says sent, nothing arrived; {told}"
        else:
            assert _was_killed_in_between(at.kills, row.actor, row.opened_at), (
                f"op_{row.number} is unknown although its worker was not killed; {told}"
            )
        message = at.slack.workspace.message(row.channel, row.ts)
        assert message is not None
        shown = render_message(message.text, message.blocks)
        assert ("may have been sent" in shown) == (row.status == "unknown"), shown
        assert not _approvable(message), shown
    print(told)


def _was_killed_in_between(kills: list[Kill], owner: str, opened_at: datetime) -> bool:
    """Say whether the process that opened an attempt was killed after it; owners name their pid."""
    pid = int(owner.split(":")[1])
    return any(kill.pid == pid and kill.at >= opened_at for kill in kills)

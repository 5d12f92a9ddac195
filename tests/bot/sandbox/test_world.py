"""The page's world over the database and the mailbox: what it tells, and the customer's hands."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.sandbox.demo_desk import BuiltInDesk
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_spool import ReceivedMail
from bot.sandbox.outside_mail import MailServer
from bot.sandbox.world import SandboxWorld, mail_json
from executor.store.database import Database
from tests.support.office import RENE, TENANT, Office

PEOPLE = {"U0REQUESTER": "Riko", "U0REVIEWER": "Rene"}


def _world(office: Office, mailbox: Mailbox) -> SandboxWorld:
    desk = BuiltInDesk(office.engine.database, TENANT)
    return SandboxWorld(office.engine, TENANT, desk, MailServer(mailbox).page, PEOPLE)


async def test_a_run_is_told_from_the_question_to_the_decision(database: Database) -> None:
    office = await Office.open(database)
    operation = await office.proposed()
    await office.show()
    await office.click(operation, RENE)
    async with Mailbox() as mailbox:
        world = _world(office, mailbox)
        [run] = await world.runs()
        timeline = await world.timeline(run["number"])
        assert await world.timeline(run["number"] + 1) is None
    assert timeline is not None
    assert [entry["at"] for entry in timeline] == sorted(entry["at"] for entry in timeline)
    assert timeline[0]["title"].startswith("Riko asked: ")
    assert "Voted by Rene" in [entry["title"] for entry in timeline]
    assert {"move", "decision"} <= {entry["kind"] for entry in timeline}
    assert any(entry["title"] == "Operation: awaiting → approved" for entry in timeline)


async def test_the_customer_writes_and_reopens(database: Database) -> None:
    office = await Office.open(database)
    async with Mailbox() as mailbox:
        world = _world(office, mailbox)
        before = next(t for t in await world.tickets() if t["id"] == "4101")
        written = await world.reply_as_customer("4101", "Still broken!")
        assert written == {**before, "version": before["version"] + 1}
        assert await world.reopen("4101") == written
        assert await world.reply_as_customer("9", "Hello") is None
        assert await world.reopen("9") is None


def test_a_mail_that_is_hardly_one_is_shown_all_the_same() -> None:
    raw = b"\xff\xfe: no header\r\n\r\nbody \xff"
    mail = ReceivedMail(1, "a@b.example", ("c@d.example",), raw, datetime.now(UTC), False)
    told = mail_json(mail)
    assert told["from"] == "a@b.example"
    assert told["to"] == ["c@d.example"]

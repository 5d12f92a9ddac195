"""K15: secrets and what is none of somebody's business stay where they are.

Requests that Slack would not send (B198) are in ``tests/bot/test_request_abuse.py``, what a model
is told of tools that it may not use (B199) in ``tests/engine/test_access.py``, and the bot as a
process at its loudest (B195) in ``tests/bot/test_main.py``.
"""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiohttp import web

from bot.sandbox.faults import Fault
from bot.sandbox.mailbox import Mailbox
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.domain.closing_draft import ClosingDraft, problems_of
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.secret_text import HIDDEN, Secrets, secrets_among
from executor.engine.redaction import RedactingFormatter
from tests.support.bot_harness import (
    APPROVALS,
    REVIEWER,
    Harness,
    about_an_operation,
    make_policy,
    proposing,
)
from tests.support.fake_model import FakeModel, calls, says
from tests.support.policy_file import SANDBOX as POLICY

OWN_SETTING = "correct-horse-battery-staple"
SECRETS = ("xapp-1-FAKE0000", "Bearer FAKE0123456789abcdef")


def closing(**changes: object) -> dict[str, Any]:
    return {
        "ticket_id": "4101",
        "language": "en",
        "subject": "Ticket closed",
        "message": "All is well.",
        **changes,
    }


async def everything_stored(h: Harness) -> str:
    """Spell every row of every table, octets as hex."""
    tables = await h.rows(
        "SELECT quote_ident(table_name) AS name FROM information_schema.tables "
        "WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    )
    rows = [
        str(row[0])
        for table in tables
        for row in await h.rows(f"SELECT t::text FROM {table.name} AS t")  # noqa: S608 - quoted
    ]
    return "\n".join(rows)


@pytest.mark.parametrize("secret", [SECRETS[0], OWN_SETTING])
async def test_b193_a_secret_is_in_no_card_no_log_no_thread_and_no_record(
    database_url: str, caplog: pytest.LogCaptureFixture, secret: str
) -> None:
    """It is refused: a preview that hides it would not be the email that is sent."""
    caplog.set_level(logging.DEBUG)
    model = FakeModel(
        [
            says(f"Reading. {secret}", calls("read_ticket", {"ticket_id": "4101"})),
            says(
                f"I send {secret}.",
                calls("propose_closing", closing(message=f"Your key is {secret}.")),
                calls("propose_closing", closing(subject=f"Key {secret}")),
                calls("search_tickets", {"query": secret}),
                calls(secret, {secret: secret}),
            ),
            says("", calls("propose_closing", closing(message=f"It was {HIDDEN}."))),
            says(f"I could not send {secret}."),
        ]
    )
    async with Harness(database_url, model=model, secrets=Secrets([OWN_SETTING])) as h:
        number = await h.start_run("close 4101")
        await h.until_run(number, RunStatus.SUCCEEDED)
        await h.word("I could not send")
        assert await h.operations() == []
        refused = [result.result for result in model.requests[2].turns[1].results[:2]]
        assert [result["error"] for result in refused] == ["content_invalid"] * 2
        assert str(refused[0]["message"]).startswith("message: it holds what looks like a secret")
        assert str(refused[1]["message"]).startswith("subject: it holds what looks like a secret")
        copied = model.requests[3].turns[2].results[0].result
        assert copied["error"] == "content_invalid", "the trace of a secret is no content either"
        shown = h.workspace.shown()
        stored = await everything_stored(h)
        sent = str([call.data for call in h.slack.record.calls()])
        assert "FAKE" not in repr(model.requests[2:])
    assert f"I could not send {HIDDEN}" in shown
    for place in (shown, stored, sent, caplog.text):
        assert secret not in place
        assert secret.encode().hex() not in place


async def test_b193_a_secret_that_people_write_is_neither_kept_nor_read_to_the_model(
    database_url: str,
) -> None:
    """In a ticket it stays where its customer wrote it, and goes no further."""
    model = FakeModel(
        [
            says("", calls("read_ticket", {"ticket_id": "4101"})),
            says("", calls("propose_closing", closing())),
            says("It is settled."),
            says("Then I stop."),
        ]
    )
    typed = "sk-proj-FAKE0123456789abcdef"
    async with Harness(database_url, model=model) as h:
        await h.rows(
            "UPDATE desk_tickets SET subject = 'My key xapp-1-FAKE0000' WHERE id = '4101' "
            "RETURNING id"
        )
        number = await h.start_run(f"close 4101, the key is {typed}")
        card = await h.settled_card()
        person = h.person(REVIEWER)
        for action, field, words in (
            ("ask", "question", f"Why not {typed}?"),
            ("reject", "reason", f"It has no {typed}"),
        ):
            await person.click(card.channel, card.ts, action)
            form = person.view()
            assert form is not None
            await person.submit_view(form.id, {field: {"text": words}})
            if action == "ask":
                await h.shown("Answered by the agent, in the thread.")
        await h.until_run(number, RunStatus.SUCCEEDED)
        stored, shown = await everything_stored(h), h.workspace.shown()
    assert "FAKE0" not in repr(model.requests)
    assert HIDDEN in model.requests[0].goal
    for told in (stored, shown):
        assert typed not in told
        for words in ("the key is", "Why not", "It has no"):
            assert f"{words} {HIDDEN}" in told


async def test_b193_nobody_edits_a_secret_into_an_email() -> None:
    draft = ClosingDraft(("pat@cust.example",), (), f"Key {SECRETS[0]}", f"Use {SECRETS[1]}.\n")
    problems = problems_of(make_policy(), draft)
    assert [problem.field for problem in problems] == ["subject", "text"]
    assert all("looks like a secret" in problem.problem for problem in problems)
    assert not any("FAKE" in str(problem) for problem in problems)


SETTINGS = {
    "SLACK_BOT_TOKEN": "",
    "SLACK_SIGNING_SECRET": "",
    "SMTP_PASSWORD": "pass-by-smtp-1",
    "RESEND_API_KEY": "opaque-resend-0001",
    "OPENAI_API_KEY": "opaque-openai-0001",
    "ANTHROPIC_API_KEY": "opaque-anthropic-0001",
    "SIGNOFF_MCP_REFUNDS_TOKEN": "opaque-server-0001",
}


@pytest.fixture
def log() -> Iterator[tuple[io.StringIO, logging.StreamHandler[io.StringIO]]]:
    """Everything that any library logs at its loudest, as a process of ours writes it."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written, handler
    root.setLevel(level)
    root.removeHandler(handler)


@asynccontextmanager
async def unfriendly_provider() -> AsyncIterator[str]:
    """Answer every request with an error that quotes what it was sent."""

    async def quote(request: web.Request) -> web.Response:
        quoted = {"error": {"message": str(dict(request.headers)), "type": "server_error"}}
        return web.json_response(quoted, status=400)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", quote)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def ask_everybody(url: str) -> None:
    """Call every provider whose library logs, with its key, and log what it answers."""
    import anthropic
    import openai

    log = logging.getLogger("executor.test")
    asked: Any = {"role": "user", "content": "Dear Pat"}
    key = SETTINGS["OPENAI_API_KEY"]
    async with openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0) as chat:
        try:
            await chat.chat.completions.create(model="m", messages=[asked])
        except openai.APIError as error:
            log.warning("a model call failed: %s", error)
    key = SETTINGS["ANTHROPIC_API_KEY"]
    async with anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0) as claude:
        try:
            await claude.messages.create(model="m", max_tokens=9, messages=[asked])
        except anthropic.APIError:
            log.exception("a model call failed")
    async with httpx2.AsyncClient() as client:
        bearer = {"Authorization": f"Bearer {SETTINGS['RESEND_API_KEY']}"}
        answer = await client.post(f"{url}/emails", headers=bearer, json={"text": "Dear Pat"})
        log.debug("it answered %s with %s", answer.text, answer.request.headers)
    log.debug("the server starts with %s", {"TOKEN": SETTINGS["SIGNOFF_MCP_REFUNDS_TOKEN"]})


async def test_b195_no_line_of_any_library_holds_a_secret(
    database_url: str, log: tuple[io.StringIO, logging.StreamHandler[io.StringIO]]
) -> None:
    written, handler = log
    mailbox = Mailbox(credentials=("signoff", SETTINGS["SMTP_PASSWORD"]))
    async with (
        Harness(database_url, mailbox=mailbox, worker=False) as h,
        unfriendly_provider() as url,
    ):
        secrets = {
            **SETTINGS,
            "SLACK_BOT_TOKEN": h.workspace.bot_token,
            "SLACK_SIGNING_SECRET": h.workspace.signing_secret,
        }
        handler.setFormatter(
            RedactingFormatter(logging.Formatter("%(name)s: %(message)s"), secrets_among(secrets))
        )
        door = h.mailbox.url.replace("//", f"//signoff:{SETTINGS['SMTP_PASSWORD']}@")
        h.mail = SmtpMail(parse_smtp_url(f"{door}?tls=none"), longest_request_seconds=10.0)
        await h.start_worker()
        h.slack.faults.add("chat.postMessage", fault=Fault.ERROR_500_BEFORE_COMMIT)
        h.slack.faults.add("chat.update", fault=Fault.LOST_AFTER_COMMIT)
        await h.start_run("close 4101")
        card = await h.settled_card()
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        await h.until_operation(OperationStatus.SUCCEEDED)
        assert h.mailbox.logins > 0
        await ask_everybody(url)
    said = written.getvalue()
    for library in ("slack_sdk", "openai", "anthropic", "httpcore2", "bot.", "executor."):
        assert library in said, f"{library} is not heard at all"
    for secret in secrets.values():
        assert secret not in said
    for word in ("xoxb-", "xapp-", "Dear Pat"):
        assert word not in said
    for line in said.splitlines():
        assert "uthorization" not in line or "opaque" not in line


async def test_b195_the_executor_as_a_process_writes_no_password_at_its_loudest(
    database_url: str, tmp_path: Path
) -> None:
    password = SETTINGS["SMTP_PASSWORD"]
    mailbox = Mailbox(credentials=("signoff", password))
    async with Harness(database_url, mailbox=mailbox, worker=False) as h:
        policy = tmp_path / "policy.toml"
        policy.write_text(POLICY)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "executor"),
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(Path.cwd()),
                "DATABASE_URL": h.database_url,
                "SIGNOFF_HOME": str(tmp_path),
                "SIGNOFF_POLICY": str(policy),
                "SIGNOFF_LOG_LEVEL": "DEBUG",
                "SMTP_URL": f"{h.mailbox.url.replace('//', f'//signoff:{password}@')}?tls=none",
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        reading = asyncio.create_task(process.communicate())
        try:
            await h.start_run("close 4101")
            card = await h.settled_card(timeout=40)
            await h.person(REVIEWER).click(card.channel, card.ts, "approve")
            await h.until_operation(OperationStatus.SUCCEEDED, timeout=40)
            process.terminate()
            output, _ = await asyncio.wait_for(reading, 20)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert h.mailbox.logins > 0
    assert process.returncode == 0
    assert b" DEBUG " in output
    encoded = base64.b64encode(f"\0signoff\0{password}".encode())
    for secret in (password.encode(), encoded, b"Dear Pat", b"pat@cust.example"):
        assert secret not in output


async def test_b196_an_error_report_holds_codes_and_ids_and_no_content(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    model = proposing(subject="Your divorce papers", message="The refund is 900 EUR.")
    async with Harness(database_url, model=model) as h:
        h.slack.faults.add(
            "chat.postMessage",
            fault=Fault.REFUSED,
            error="invalid_blocks",
            when=about_an_operation,
        )
        await h.start_run("close 4101")
        await h.settled_card()
        [[operation]] = await h.rows("SELECT id FROM operations")
    reports = [r.getMessage() for r in caplog.records if "was not delivered" in r.getMessage()]
    assert any(
        all(word in report for word in ("invalid_blocks", APPROVALS, str(operation)))
        for report in reports
    ), reports
    for word in ("divorce", "900 EUR", "pat@cust.example"):
        assert word not in caplog.text

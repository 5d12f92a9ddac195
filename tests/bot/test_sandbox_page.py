"""The sandbox's page in a real browser, against a real workspace and a scripted bot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from bot.sandbox.model import Json
from bot.sandbox.page import MAIL_POLICY, PAGE_POLICY
from bot.sandbox.workspace import Workspace
from tests.support.browser import browsing, running_browser
from tests.support.page_bot import HOSTILE, PageBot
from tests.support.page_world import PageWorld, believable, fill, serving

STATIC = Path(__file__).parents[2] / "templates" / "pages" / "static"

# One loop for all, because the browser belongs to it.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Sandbox:
    """A page in a browser and everything behind it. `complaints` are its console errors."""

    url: str
    page: Page
    workspace: Workspace
    bot: PageBot
    world: PageWorld
    complaints: list[str]

    async def become(self, name: str) -> None:
        await self.page.locator("label.person", has_text=name).click()
        await expect(self.page.locator("#viewer-name")).to_contain_text(name)

    def waiting(self, action: str) -> Any:
        """Return a button of the one waiting card."""
        card = self.page.locator(".message", has_text="Waiting for one reviewer")
        return card.locator(f"[data-action={action}]")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with running_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def served() -> AsyncIterator[tuple[str, Workspace, PageBot, PageWorld]]:
    workspace, world = Workspace.seeded(), believable()
    bot = PageBot(workspace)
    fill(workspace, bot)
    async with serving(world, workspace, bot) as url:
        yield url, workspace, bot, world


@pytest_asyncio.fixture(loop_scope="module")
async def sandbox(
    browser: Browser,
    served: tuple[str, Workspace, PageBot, PageWorld],
) -> AsyncIterator[Sandbox]:
    url, workspace, bot, world = served
    size = {"width": 1440, "height": 900}
    async with browsing(browser, url, viewport=size) as (page, complaints):
        await page.locator(".mail-item").first.wait_for(state="attached")
        yield Sandbox(url, page, workspace, bot, world, complaints)


@pytest.mark.browser
async def test_the_page_shows_channel_mail_run_and_tickets_without_a_console_error(
    sandbox: Sandbox,
) -> None:
    page = sandbox.page
    await expect(page.locator("#team")).to_have_text("Acme Support")
    await expect(page.locator(".message .header")).to_have_count(3)
    await expect(page.locator(".thread summary")).to_have_text("2 replies")
    await expect(page.locator(".edited")).to_have_text("(edited)")
    await expect(page.locator(".mail-item")).to_have_count(3)
    await expect(page.locator(".ticket")).to_have_count(4)
    await expect(page.locator(".event")).to_have_count(5)
    assert sandbox.complaints == []


@pytest.mark.browser
async def test_an_approval_asks_first_and_then_changes_the_card(sandbox: Sandbox) -> None:
    page = sandbox.page
    await sandbox.become("Rene")
    await sandbox.waiting("approve").click()
    dialog = page.locator("dialog.ask")
    await expect(dialog).to_contain_text("Ticket 4101 is closed and one email is sent.")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    assert sandbox.workspace.record.deliveries("block_actions") == []

    await sandbox.waiting("approve").click()
    await dialog.get_by_role("button", name="Approve").click()
    card = page.locator(".message", has_text="Close ticket 4101")
    await expect(card).to_contain_text("Approved by @Rene Reviewer")
    await expect(card.locator(".button")).to_have_count(0)
    assert len(sandbox.workspace.record.deliveries("block_actions")) == 1


@pytest.mark.browser
async def test_only_the_person_who_was_told_sees_the_private_answer(sandbox: Sandbox) -> None:
    page = sandbox.page
    await sandbox.become("Otto")
    await sandbox.waiting("approve").click()
    await page.locator("dialog.ask").get_by_role("button", name="Approve").click()
    answer = page.locator(".ephemeral", has_text="You may not decide this")
    await expect(answer).to_contain_text("Only visible to you")
    await sandbox.become("Rene")
    await expect(answer).to_have_count(0)
    await sandbox.become("Otto")
    await answer.get_by_role("button", name="Dismiss").click()
    await expect(answer).to_have_count(0)


@pytest.mark.browser
async def test_a_modal_shows_field_errors_keeps_what_was_typed_and_submits(
    sandbox: Sandbox,
) -> None:
    page = sandbox.page
    await sandbox.become("Rene")
    await sandbox.waiting("reject").click()
    view = page.locator("dialog.view")
    await expect(view).to_contain_text("Reject the closure")
    submit = view.get_by_role("button", name="Reject")
    await submit.click()
    await expect(view.locator(".field-error:visible")).to_have_count(2)
    assert sandbox.bot.heard == []

    await view.get_by_label("The tone is wrong").check()
    await view.get_by_label("Reason").fill("no")
    await submit.click()
    await expect(view.locator(".field-error:visible")).to_have_text(
        "A reason has at least ten characters."
    )
    await expect(view.get_by_label("Reason")).to_have_value("no")
    await view.get_by_label("Reason").fill("The customer did not agree yet.")
    await view.get_by_label("Also tell").select_option("U0SECOND")
    await submit.click()
    await expect(view).to_be_hidden()
    values = sandbox.bot.heard[-1]
    assert values["kind"]["kind"]["selected_option"]["value"] == "tone"
    assert values["reason"]["reason"]["value"] == "The customer did not agree yet."
    assert values["tell"]["tell"]["selected_user"] == "U0SECOND"


@pytest.mark.browser
async def test_what_was_filled_in_survives_an_update_of_the_modal(sandbox: Sandbox) -> None:
    page = sandbox.page
    await sandbox.become("Rene")
    await sandbox.waiting("reject").click()
    view = page.locator("dialog.view")
    await view.get_by_label("The facts are wrong").check()
    await view.get_by_label("Reason").fill("Half a sentence")
    opened = sandbox.workspace.view_of("U0REVIEWER")
    assert opened is not None
    changed = opened.view | {"title": {"type": "plain_text", "text": "Reject, then"}}
    sandbox.workspace.update_view(opened, changed)
    await expect(view.locator("h2")).to_have_text("Reject, then")
    await expect(view.get_by_label("Reason")).to_have_value("Half a sentence")
    await expect(view.get_by_label("The facts are wrong")).to_be_checked()


@pytest.mark.browser
async def test_escape_closes_the_modal_in_the_workspace_too(sandbox: Sandbox) -> None:
    await sandbox.become("Rene")
    await sandbox.waiting("reject").click()
    await expect(sandbox.page.locator("dialog.view")).to_be_visible()
    await sandbox.page.keyboard.press("Escape")
    await expect(sandbox.page.locator("dialog.view")).to_be_hidden()
    assert sandbox.workspace.view_of("U0REVIEWER") is None


@pytest.mark.browser
async def test_a_refused_click_shows_what_slack_would_show(sandbox: Sandbox) -> None:
    await sandbox.waiting("why").click()
    await expect(sandbox.page.locator(".toast")).to_contain_text("warning sign")
    await expect(sandbox.waiting("why").locator("xpath=following-sibling::*")).to_have_count(1)


@pytest.mark.browser
async def test_commands_and_mentions_are_sent_from_the_message_box(sandbox: Sandbox) -> None:
    page = sandbox.page
    await page.get_by_role("button", name="/signoff run 4101").click()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message .header")).to_have_count(4)
    await page.get_by_role("button", name="@Signoff close 4102").click()
    await page.keyboard.press("Enter")
    await expect(page.locator(".message", has_text="@Signoff close 4102")).to_have_count(1)
    await expect(page.locator(".thread").last).to_contain_text("ticket 4102 is being worked")
    assert sandbox.complaints == []


@pytest.mark.browser
async def test_hostile_text_stays_literal_wherever_it_is_shown(sandbox: Sandbox) -> None:
    page = sandbox.page
    card = page.locator(".message", has_text="Close ticket 4100")
    assert await card.locator("pre").inner_text() == HOSTILE
    # The same text where mrkdwn is read: markup of Slack's counts there, markup of HTML never.
    await sandbox.workspace.person("U0REQUESTER").say("C0APPROVALS", f"{HOSTILE} javascript")
    message = page.locator(".message", has_text="javascript").last
    await expect(message).to_contain_text("<img src=x onerror=\"document.title='broken'\">")
    links = message.locator("a")
    assert await links.evaluate_all("all => all.map(a => a.href)") == ["https://evil.example/"]
    sandbox.workspace.post(
        "C0APPROVALS", "U0REQUESTER", "&lt;!channel&gt; <javascript:alert(1)|safe> end-of-text"
    )
    escaped = page.locator(".message", has_text="end-of-text")
    await expect(escaped).to_contain_text("<!channel> <javascript:alert(1)|safe>")
    assert await escaped.locator("a, .mention").count() == 0

    await page.locator("#run").select_option("11")
    await expect(page.locator(".event-title").last).to_have_text(f"Customer wrote {HOSTILE}")
    assert await page.locator("main img, aside img").count() == 0
    assert await page.title() == "Signoff sandbox"
    assert sandbox.complaints == []


@pytest.mark.browser
async def test_a_mails_html_part_can_run_and_load_nothing(sandbox: Sandbox) -> None:
    page = sandbox.page
    answered: list[str] = []
    page.on("response", lambda response: answered.append(response.url))
    await page.locator(".mail-item").first.click()
    async with page.expect_event("requestfailed") as refused:
        await page.get_by_role("tab", name="HTML").click()
    request = await refused.value
    assert (request.url, request.failure) == ("https://tracker.example/pixel.gif", "csp")
    frame = page.frame_locator(".mail-part iframe")
    await expect(frame.locator("b")).to_have_text("24.90 EUR")
    assert await frame.locator("html").evaluate("() => document.title") == ""
    assert [url for url in answered if not url.startswith(sandbox.url)] == []

    await page.get_by_role("tab", name="HTML").press("ArrowRight")
    await expect(page.locator(".mail-part")).to_contain_text("Message-ID: <op-3@acme.example>")
    await expect(page.locator(".digest code")).to_have_text(sandbox.world.letters[2]["sha256"])


@pytest.mark.browser
async def test_a_customers_reply_moves_the_ticket_on(sandbox: Sandbox) -> None:
    page = sandbox.page
    await page.get_by_role("button", name="Customer replies, ticket 4101").click()
    await page.locator("dialog.ask").get_by_role("button", name="Send as customer").click()
    await expect(page.locator(".ticket", has_text="4101").locator(".version")).to_have_text("v8")
    await page.get_by_role("button", name="Reopen, ticket 4100").click()
    await expect(page.locator(".ticket", has_text="4100").locator(".state")).to_have_text("open")


@pytest.mark.browser
async def test_a_phone_shows_one_part_at_a_time_and_never_scrolls_sideways(
    browser: Browser,
    served: tuple[str, Workspace, PageBot, PageWorld],
) -> None:
    async with browsing(browser, served[0], viewport={"width": 390, "height": 844}) as (page, _):
        await expect(page.locator("#say")).to_be_visible()
        await expect(page.locator("#mail")).to_be_hidden()
        await page.get_by_role("tab", name="Mail").click()
        await expect(page.locator("#mail")).to_be_visible()
        await expect(page.locator("#say")).to_be_hidden()
        wider = "document.documentElement.scrollWidth - window.innerWidth"
        assert await page.evaluate(wider) <= 0


@pytest.mark.parametrize("path", ["/", "/sandbox/mail", "/sandbox/runs", "/sandbox/tickets"])
async def test_a_foreign_name_or_page_is_refused(
    served: tuple[str, Workspace, PageBot, PageWorld], path: str
) -> None:
    async with aiohttp.ClientSession(served[0]) as session:
        for headers in ({"Host": "rebound.example"}, {"Origin": "https://evil.example"}):
            async with session.get(path, headers=headers) as response:
                assert response.status == 403


async def test_answers_carry_the_policies(
    served: tuple[str, Workspace, PageBot, PageWorld],
) -> None:
    async with aiohttp.ClientSession(served[0]) as session:
        for path, policy in (("/", PAGE_POLICY), ("/static/sandbox.js", PAGE_POLICY),
                             ("/sandbox/mail/m3/html", MAIL_POLICY)):  # fmt: skip
            async with session.get(path) as response:
                assert response.status == 200
                assert response.headers["Content-Security-Policy"] == policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Referrer-Policy"] == "no-referrer"
    assert "unsafe" not in PAGE_POLICY


async def test_a_form_cannot_change_the_desk_and_a_bad_reply_is_told(
    served: tuple[str, Workspace, PageBot, PageWorld],
) -> None:
    url, world = served[0], served[3]
    async with aiohttp.ClientSession(url) as session:
        async with session.post("/sandbox/tickets/4101/reply", data={"body": "x"}) as response:
            assert response.status == 415
        async with session.post("/sandbox/tickets/4101/reply", json={"body": ""}) as response:
            assert response.status == 400
        async with session.post("/sandbox/tickets/9/reply", json={"body": "x"}) as response:
            assert (response.status, await response.json()) == (
                404,
                {"error": "There is no ticket 9."},
            )
        async with session.get("/sandbox/runs/99/timeline") as response:
            assert response.status == 404
    assert world.desk["4101"]["version"] == 7


async def test_no_script_makes_markup_from_text() -> None:
    scripts = list(STATIC.glob("*.js"))
    assert len(scripts) > 10
    for script in scripts:
        source = script.read_text()
        assert source.startswith('"use strict";'), script.name
        assert source.count("\n") < 400, script.name
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert way not in source, f"{script.name} uses {way}"


@pytest.mark.browser
async def test_each_person_has_a_home_tab_of_the_app(sandbox: Sandbox) -> None:
    page = sandbox.page
    await page.locator("#apps").get_by_role("button").click()
    home = page.locator("#home")
    await expect(home).to_contain_text("Riko Requester: Nothing was reviewed.")
    await home.get_by_role("button", name="Review").click()
    await expect(home).to_contain_text("It was reviewed.")
    await expect(page.locator("#composer")).to_be_hidden()
    await sandbox.become("Rene")
    await expect(home).to_contain_text("Rene")
    await expect(home).to_contain_text("Nothing was reviewed.")
    await page.locator("#channels").get_by_role("button", name="approvals").click()
    await expect(home).to_be_hidden()
    assert sandbox.complaints == []


@pytest.mark.browser
async def test_a_plan_is_drawn_with_how_each_of_its_tasks_stands(sandbox: Sandbox) -> None:
    said = {"type": "text", "text": "<b>asked by you</b>"}
    more = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [said]}]}
    tasks: list[Json] = [
        {"type": "task_card", "task_id": state, "title": f"It is {state}", "status": state}
        for state in ("pending", "in_progress", "complete", "error")
    ]
    plan: Json = {
        "type": "plan",
        "title": "Steps",
        "tasks": [*tasks[:3], {**tasks[3], "details": more}],
    }
    workspace = sandbox.workspace
    workspace.post("C0APPROVALS", workspace.app.user_id, "run_9", [plan], app=workspace.app)
    drawn = sandbox.page.locator(".plan")
    await expect(drawn.locator(".task")).to_have_count(4)
    await expect(drawn.locator(".task-sign")).to_have_text(["○", "…", "✓", "✗"])
    await expect(drawn.get_by_role("img", name="came to nothing")).to_be_visible()
    await expect(drawn.locator(".task-error")).to_contain_text("<b>asked by you</b>")
    assert sandbox.complaints == []

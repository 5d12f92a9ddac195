"""The real demo, all of it, worked as a newcomer would: by clicking on its page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.support.browser import browsing, running_browser
from tests.support.demo import open_demo

A_WHILE = 30_000
"""Milliseconds that two processes and a database may take for one thing to appear."""


@pytest.mark.browser
@pytest.mark.timeout(180)
async def test_a_newcomer_closes_a_ticket_and_sees_a_moved_one_refused(folder: Path) -> None:
    async with (
        running_browser() as browser,
        open_demo(folder, seconds=150) as demo,
        browsing(browser, demo.url, viewport={"width": 1440, "height": 1000}) as (page, complaints),
    ):
        await _ask_for(page, "/signoff run 4101")
        card = page.locator(".message", has_text="Close ticket 4101 and send").first
        # The card is drawn once more when its time to decide has begun; a newcomer reads it first.
        await expect(card).to_contain_text("Decide by", timeout=A_WHILE)
        await _become(page, "Otto")
        await _approve_until(page, card, page.locator(".ephemeral"))
        await expect(page.locator(".mail-item")).to_have_count(0)
        await _become(page, "Rene")
        await card.get_by_role("button", name="Edit").click(timeout=A_WHILE)
        form = page.get_by_role("dialog")
        await expect(form).to_contain_text("Your edit takes the place of op_1", timeout=A_WHILE)
        await form.get_by_role("button", name="Go back").click()
        await _approve_until(page, card, page.locator(".mail-item"))
        await expect(page.locator(".mail-item")).to_have_count(1)
        await expect(card).to_contain_text("Done", timeout=A_WHILE)
        await expect(card.locator("[data-action=approve]")).to_have_count(0)
        await expect(page.locator(".ticket", has_text="Charged twice")).to_contain_text("closed")
        await page.screenshot(path=folder / "closed.png")

        await _become(page, "Riko")
        await _ask_for(page, "/signoff run 4103")
        stale = page.locator(".message", has_text="Close ticket 4103 and send").first
        await expect(stale.locator("[data-action=approve]")).to_be_visible(timeout=A_WHILE)
        await demo.act("tickets/4103/reply", body="It is still broken!")
        await _become(page, "Rene")
        approve = stale.locator("[data-action=approve]")
        if await approve.count():
            await _approve(page, stale)
        await expect(stale).to_contain_text("still broken", timeout=A_WHILE)
        await expect(page.locator(".mail-item")).to_have_count(1)
        assert complaints == []


async def _become(page: Page, name: str) -> None:
    await page.locator("label.person", has_text=name).click()
    await expect(page.locator("#viewer-name")).to_contain_text(name)


async def _ask_for(page: Page, command: str) -> None:
    box = page.get_by_role("textbox").first
    await box.fill(command)
    await box.press("Enter")


async def _approve_until(page: Page, card: Locator, seen: Locator) -> None:
    """Do as a person does: a click beside which a warning stands was not taken; click again."""
    await _approve(page, card)
    warning = card.locator(".failed")
    await expect(seen.or_(warning).first).to_be_visible(timeout=A_WHILE)
    if await warning.count():
        await _approve(page, card)
        await expect(seen.first).to_be_visible(timeout=A_WHILE)


async def _approve(page: Page, card: Locator) -> None:
    button = card.locator("[data-action=approve]")
    await button.click(timeout=A_WHILE)
    await page.get_by_role("dialog").get_by_role("button", name="Approve").click()

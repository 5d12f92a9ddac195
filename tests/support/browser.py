"""A real browser for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@asynccontextmanager
async def running_browser() -> AsyncIterator[Browser]:
    """Start a browser, which belongs to the running loop and takes a second to start."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.fail("this test drives a real browser: apt-get install chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        await browser.close()


@asynccontextmanager
async def browsing(
    browser: Browser, url: str, **profile: Any
) -> AsyncIterator[tuple[Page, list[str]]]:
    """Open the sandbox's page in a new profile, which shares nothing with any other one.

    Yields the page with everything that its console complains of.
    """
    complaints: list[str] = []
    async with await browser.new_context(**profile) as context:
        page = await context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        await page.goto(url)
        await page.locator("body[data-ready]").wait_for()
        yield page, complaints

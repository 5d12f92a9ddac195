"""A decision that needs a second factor is made on a page, under a link, once, by its owner."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import aiohttp
import pyotp
import pytest

from bot.step_up import StepUp
from executor.adapters.sealing import FernetSealer, new_key
from executor.domain.ids import TenantId, operator_principal, slack_principal
from executor.domain.operation import OperationStatus
from executor.engine.second_factor import Enrolled, enrol
from executor.store import clock
from tests.support.bot_harness import REVIEWER, Harness, make_policy, proposing
from tests.support.card_reading import action_ids
from tests.support.words import press

TENANT = TenantId("TSIGNOFF")
SEALER = FernetSealer([new_key()])
PUBLIC = "https://signoff.acme.example"
HOSTILE = "<script>alert(1)</script> </pre><b>&lt; \u202egnp.exe {{ 7*7 }}"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(
        database_url,
        policy=make_policy(approval={"step_up": True}),
        step_up=StepUp(PUBLIC, SEALER),
        model=proposing(message=HOSTILE),
    ) as harness:
        yield harness


async def _code(h: Harness) -> str:
    given = await enrol(
        h.engine, SEALER, TENANT, slack_principal(TENANT, REVIEWER), operator_principal("ada")
    )
    assert isinstance(given, Enrolled)
    async with h.database.transaction() as conn:
        return pyotp.TOTP(given.secret).at(await clock.now(conn))


async def _link(h: Harness) -> str:
    """Click Approve and read the link that comes for it, as the address of this test's bot."""
    await h.start_run()
    await press(h, REVIEWER, await h.settled_card(), "approve")
    return await _sent_link(h)


async def _sent_link(h: Harness) -> str:
    direct = h.workspace.direct(REVIEWER)
    assert direct is not None
    await h.workspace.wait_for(lambda w: w.visible(direct.id))
    [message] = h.workspace.visible(direct.id)
    found = re.search(rf"{PUBLIC}(/decide/\S+)", message.text)
    assert found is not None, message.text
    return h.bots[0].url + found[1]


async def test_a_click_alone_decides_nothing_and_the_page_with_a_code_does(h: Harness) -> None:
    url = await _link(h)
    await h.whispered(REVIEWER, "needs a second factor")
    assert await h.operations() == [OperationStatus.AWAITING]
    code = await _code(h)
    async with aiohttp.ClientSession() as browser:
        for method in ("HEAD", "GET", "GET"):
            async with browser.request(method, url) as answer:
                page = await answer.text()
                assert answer.status == 200
                assert answer.headers["Cache-Control"] == "no-store"
                assert "script-src" not in answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert await h.decisions() == []
        assert "pat" in page.casefold() or "@" in page
        assert "<script" not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "{{ 7*7 }}" in page
        assert "\u202e" not in page
        async with browser.post(url, data={"vote": "approve", "code": "000000"}) as answer:
            assert answer.status == 403
            assert "This code is wrong" in await answer.text()
        assert await h.decisions() == []
        async with browser.post(url, data={"vote": "approve", "code": code}) as answer:
            assert answer.status == 200
            assert "Recorded: you approved op_1." in await answer.text()
        await h.until_operation(OperationStatus.SUCCEEDED)
        async with browser.post(url, data={"vote": "reject"}) as answer:
            assert "already" in await answer.text()
        async with browser.get(url) as answer:
            assert "cannot be decided here any more" in await answer.text()
    assert await h.decisions() == [(f"slack:{TENANT}:{REVIEWER}", "approve")]
    [[factored]] = await h.rows("SELECT second_factor FROM decisions")
    assert factored is True
    assert h.mailbox.accepted == 1


async def test_a_rejection_needs_no_code_and_its_reason_is_kept(h: Harness) -> None:
    url = await _link(h)
    async with (
        aiohttp.ClientSession() as browser,
        browser.post(url, data={"vote": "reject", "note": "too rude"}) as answer,
    ):
        assert "Recorded: you rejected op_1." in await answer.text()
    await h.until_operation(OperationStatus.REJECTED)
    [told] = [note for note in await h.notes("voted") if note["vote"] == "reject"]
    assert told["note"] == "too rude"


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"vote": "perhaps"}, 400),
        ({}, 400),
        ({"vote": "approve", "note": "x" * 20_000}, 400),
        ({"vote": "approve"}, 403),
        ({"vote": "approve", "code": "\u0661" * 64}, 403),
    ],
)
async def test_what_is_no_decision_records_none(
    h: Harness, form: dict[str, str], status: int
) -> None:
    url = await _link(h)
    await _code(h)
    async with aiohttp.ClientSession() as browser:
        async with browser.post(url, data=form) as answer:
            assert answer.status == status
        async with browser.get(url.rpartition("/")[0] + "/forged") as answer:
            assert answer.status == 410
        async with browser.post(url + "x", data={"vote": "reject"}) as answer:
            assert answer.status == 410
    assert await h.decisions() == []
    assert await h.operations() == [OperationStatus.AWAITING]


async def test_what_no_modal_can_show_is_read_and_decided_on_the_page(database_url: str) -> None:
    long = "ありがとうございました。" * 5_000
    async with Harness(
        database_url,
        policy=make_policy(email={"max_text_characters": 100_000}),
        step_up=StepUp(PUBLIC, SEALER),
        model=proposing(message=f"{long}\n\n900 EUR"),
    ) as h:
        await h.start_run()
        card = await h.card(lambda m: "review" in action_ids(m.blocks))
        assert "approve" not in action_ids(card.blocks)
        await press(h, REVIEWER, card, "review")
        url = await _sent_link(h)
        async with aiohttp.ClientSession() as browser:
            async with browser.get(url) as answer:
                page = await answer.text()
                assert long in page
                assert "900 EUR" in page
            async with browser.post(url, data={"vote": "approve"}) as answer:
                assert "Recorded: you approved op_1." in await answer.text()
        await h.until_operation(OperationStatus.SUCCEEDED)

"""K5 in Slack: one card's decision is nobody else's, and what was settled stays settled."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pyotp
import pytest

from bot.sandbox.interaction import Sending
from bot.sandbox.model import Json, Message
from bot.step_up import StepUp
from executor.adapters.sealing import FernetSealer, new_key
from executor.domain.ids import TenantId, operator_principal, slack_principal
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.second_factor import Enrolled, enrol
from executor.store import clock
from tests.support.bot_harness import REVIEWER, Harness, ShiftedClock, make_policy, proposing
from tests.support.card_reading import action_ids, nodes
from tests.support.fake_model import FakeModel, calls, says
from tests.support.words import press

TENANT = TenantId("TSIGNOFF")
PUBLIC = "https://signoff.acme.example"
SEALER = FernetSealer([new_key()])
TICKETS = ("4101", "4102", "4103")
AWAITING, SUCCEEDED = OperationStatus.AWAITING, OperationStatus.SUCCEEDED


def together(*tickets: str, call_id: str = "call_9") -> FakeModel:
    """A model that proposes to close all of these in one reply, under one call id."""
    proposals = [
        calls(
            "propose_closing",
            {"ticket_id": t, "language": "en", "subject": f"Ticket {t} closed", "message": "Bye."},
            call_id,
        )
        for t in tickets
    ]
    reading = [calls("read_ticket", {"ticket_id": t}) for t in tickets]
    return FakeModel([says("", *reading), says("", *proposals), says("All of them.")])


async def cards_of(h: Harness, count: int) -> list[Message]:
    """Wait for the cards of so many operations, and return them in the order of their tickets."""

    def live() -> list[Message]:
        return [m for m in h.cards() if "approve" in action_ids(m.blocks)]

    await h.workspace.wait_for(lambda _: len(live()) == count)
    await h.settled_card()
    return sorted(live(), key=lambda m: str(m.blocks[0]))


async def test_b056_and_b059_each_card_of_one_reply_is_decided_and_done_by_itself(
    database_url: str,
) -> None:
    model = together(*TICKETS)
    async with Harness(database_url, model=model) as h:
        number = await h.start_run("close three")
        first, second, third = await cards_of(h, 3)
        await press(h, REVIEWER, second, "approve")
        await h.until_operation(AWAITING, SUCCEEDED, AWAITING)
        await h.workspace.wait_for(lambda _: "Done." in str(second.blocks))
        assert [m for m in (first, second, third) if "approve" in action_ids(m.blocks)] == [
            first,
            third,
        ]
        assert model.called == 2, "the run goes on when all of them are known"
        for card in (third, first):
            await press(h, REVIEWER, card, "approve")
        await h.until_run(number, RunStatus.SUCCEEDED)
        assert await h.operations() == [SUCCEEDED] * 3
        assert sorted(m.parsed["Subject"] for m in h.mailbox.mails) == [
            f"Ticket {t} closed" for t in TICKETS
        ]
        results = [r.result for r in model.requests[-1].turns[-1].results]
        assert [r["operation"] for r in results] == ["op_1", "op_2", "op_3"]


def _button(blocks: list[Json]) -> Json:
    [button] = [node for node in nodes(blocks) if node.get("action_id") == "approve"]
    return button


def _content_of(other: str, mine: str) -> str:
    return json.dumps(json.loads(mine) | {"d": json.loads(other)["d"]}, separators=(",", ":"))


async def test_b055_what_is_no_decision_about_this_is_not_taken_for_a_yes(
    database_url: str,
) -> None:
    """A button that carries nothing, nothing readable, or the decision of another operation."""
    async with Harness(database_url, model=together("4101", "4102")) as h:
        await h.start_run("close two")
        card, other = await cards_of(h, 2)
        pristine = copy.deepcopy(card.blocks)
        mine, theirs = (_button(c.blocks)["value"] for c in (card, other))
        for value in (None, "", "null", "true", _content_of(theirs, mine), theirs):
            blocks = copy.deepcopy(pristine)
            _button(blocks)["value"] = value
            h.workspace.revise(card, card.text, blocks, card.metadata)
            await h.person(REVIEWER).click(card.channel, card.ts, "approve")
            assert await h.decisions() == []
        del _button(blocks)["value"]
        h.workspace.revise(card, card.text, blocks, card.metadata)
        await h.person(REVIEWER).click(card.channel, card.ts, "approve")
        assert await h.decisions() == []
        assert await h.operations() == [AWAITING, AWAITING]
        h.workspace.revise(card, card.text, pristine, card.metadata)
        await press(h, REVIEWER, card, "approve")
        await h.until_operation(SUCCEEDED, AWAITING)


@pytest.fixture
async def guarded(database_url: str) -> AsyncIterator[Harness]:
    """A second factor is asked for, so that there also is a page to decide on."""
    async with Harness(
        database_url,
        policy=make_policy(approval={"step_up": True}),
        step_up=StepUp(PUBLIC, SEALER),
        model=proposing(),
    ) as harness:
        yield harness


async def test_b062_what_was_rejected_is_approved_neither_by_replay_nor_page_nor_old_card(
    guarded: Harness,
) -> None:
    h, rene = guarded, guarded.person(REVIEWER)
    number = await h.start_run()
    card = await h.settled_card()
    shown = len(card.revisions) - 1
    away = await h.start_bot(clock=ShiftedClock(timedelta(hours=1)))
    captured = await rene.click(card.channel, card.ts, "approve", sending=Sending(to=away.url))
    assert captured.status == 401
    await away.stop()
    h.workspace.connect(h.bots[0].url)
    url = await _link(h, card)
    await rene.click(card.channel, card.ts, "reject", revision=shown)
    form = rene.view()
    assert form is not None
    await rene.submit_view(form.id, {"reason": {"text": "Not yet."}})
    await h.until_run(number, RunStatus.SUCCEEDED)
    before = await _history(h)

    assert (await rene.replay(captured, to=h.bots[0].url)).status == 200
    await h.whispered(REVIEWER, "op_1 was already rejected by")
    async with aiohttp.ClientSession() as browser:
        form_data = {"vote": "approve", "code": await _code(h)}
        async with browser.post(url, data=form_data) as answer:
            assert "already rejected" in await answer.text()
    told = len(rene.ephemerals())
    await rene.click(card.channel, card.ts, "approve", revision=shown)
    await h.workspace.wait_for(lambda _: len(rene.ephemerals()) > told)
    assert "op_1 was already rejected by" in rene.ephemerals()[-1].text

    reasons = [note["reason"] for note in await h.notes("decision_refused")]
    assert reasons == ["second_factor_needed", *["already_denied"] * 3]
    assert await h.decisions() == [(f"slack:{TENANT}:{REVIEWER}", "reject")]
    assert await h.operations() == [OperationStatus.REJECTED]
    assert await _history(h) == before
    assert h.mailbox.accepted == 0


async def _history(h: Harness) -> list[tuple[object, ...]]:
    """What the run has recorded, and what there is of runs and operations."""
    steps = await h.rows("SELECT run_id, number, kind FROM steps ORDER BY 1, 2")
    return [tuple(row) for row in (*steps, *await h.rows("SELECT id, status FROM runs"))]


async def _link(h: Harness, card: Message) -> str:
    """Press Approve, which decides nothing here, and return the page that it leads to."""
    await press(h, REVIEWER, card, "approve")
    direct = h.workspace.direct(REVIEWER)
    assert direct is not None
    await h.workspace.wait_for(lambda w: w.visible(direct.id))
    found = re.search(rf"{PUBLIC}(/decide/\S+)", h.workspace.visible(direct.id)[-1].text)
    assert found is not None
    return h.bots[0].url + found[1]


async def _code(h: Harness) -> str:
    who = slack_principal(TENANT, REVIEWER)
    given = await enrol(h.engine, SEALER, TENANT, who, operator_principal("ada"))
    assert isinstance(given, Enrolled)
    async with h.database.transaction() as conn:
        return pyotp.TOTP(given.secret).at(await clock.now(conn))

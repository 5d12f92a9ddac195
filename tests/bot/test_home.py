"""The Home tab: what waits for one person, what they have running, and what nobody knows yet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.home_delivery import opened_by
from bot.sandbox.mailbox_faults import Close, Fault, Point
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from tests.support.bot_harness import (
    GUEST,
    OUTSIDER,
    REQUESTER,
    REVIEWER,
    SECOND,
    Harness,
)
from tests.support.card_reading import action_ids, literals, nodes

HOSTILE = "<!channel> *bold* `code`\u202e https://evil.example|x"


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    async with Harness(database_url) as harness:
        yield harness


async def open_home(h: Harness, who: str, *words: str) -> list[dict[str, Any]]:
    """Open somebody's Home tab, wait until it says these words, and return its blocks."""
    delivery = await h.person(who).open_home()
    assert delivery.status == 200
    return await shown(h, who, *words)


async def shown(h: Harness, who: str, *words: str) -> list[dict[str, Any]]:
    def says(_: object) -> bool:
        home = h.person(who).home()
        text = "" if home is None else json.dumps(home.view, ensure_ascii=False)
        return home is not None and all(word in text for word in words)

    await h.workspace.wait_for(says, 15.0)
    home = h.person(who).home()
    assert home is not None
    blocks: list[dict[str, Any]] = home.view["blocks"]
    return blocks


async def press(h: Harness, who: str, action: str) -> None:
    home = h.person(who).home()
    assert home is not None
    assert (await h.person(who).click_in_view(home.id, action)).status == 200


async def test_it_shows_what_waits_and_a_decision_there_is_seen_there(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    blocks = await open_home(h, REVIEWER, "1 decision waits for you")
    assert action_ids(blocks) == ["review"]
    await press(h, REVIEWER, "review")
    person = h.person(REVIEWER)
    full = person.view()
    assert full is not None
    await person.submit_view(full.id)
    await h.until_operation(OperationStatus.SUCCEEDED)
    await shown(h, REVIEWER, "Nothing waits for your decision.")
    [(shown_at,)] = await h.rows("SELECT shown_at FROM decisions")
    assert (shown_at["channel"], shown_at["ts"]) == (card.channel, card.ts)
    assert shown_at["modal"]


async def test_ones_own_run_is_cancelled_there_and_what_came_of_it_is_seen(h: Harness) -> None:
    await h.start_run(f"close 4101 {HOSTILE}")
    await h.settled_card()
    blocks = await open_home(h, REQUESTER, "run_1: waiting", "Waits for a decision on op_1.")
    assert [text for text in literals(blocks) if "evil.example" in text]
    [cancel] = [node for node in nodes(blocks) if node.get("action_id") == "cancel_run"]
    assert cancel["confirm"]["title"]["text"] == "Cancel run_1?"
    await press(h, REQUESTER, "cancel_run")
    await h.until_run(1, RunStatus.CANCELLED)
    await shown(h, REQUESTER, "Cancelled run_1. What was not sent yet", "You have no run")
    await h.until_operation(OperationStatus.WITHDRAWN)


async def test_a_run_of_somebody_else_is_not_cancelled_by_a_value_that_was_made_up(
    h: Harness,
) -> None:
    await h.start_run("close 4101", by=REVIEWER)
    await h.settled_card()
    await open_home(h, REQUESTER, "You have no run that goes on.")
    home = h.person(REQUESTER).home()
    assert home is not None
    button = {
        "type": "actions",
        "block_id": "forged",
        "elements": [
            {
                "type": "button",
                "action_id": "cancel_run",
                "text": {"type": "plain_text", "text": "x"},
                "value": "1",
            }
        ],
    }
    home.view["blocks"].append(button)
    await press(h, REQUESTER, "cancel_run")
    await shown(h, REQUESTER, "You may not cancel runs here")
    assert await h.value("SELECT status FROM runs") == "waiting"


async def test_what_is_in_doubt_names_who_has_to_act(h: Harness) -> None:
    await h.start_run("close 4101")
    card = await h.settled_card()
    h.mailbox.fail(Fault(Point.FINAL, Close(after_accepting=True), conversation=1))
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until_operation(OperationStatus.UNKNOWN)
    await open_home(h, REVIEWER, "op_1, ticket 4101", "You can say on its card what became of it.")
    await open_home(h, REQUESTER, "Somebody has to say on its card", "the approvers")
    await press(h, REVIEWER, "review")
    full = h.person(REVIEWER).view()
    assert full is not None
    assert "submit" not in full.view
    assert "Not known: it may have been sent" in json.dumps(full.view)


async def test_who_is_no_member_sees_why_there_is_nothing(h: Harness) -> None:
    await h.start_run("close 4101")
    await h.settled_card()
    for who, words in ((GUEST, "guests may not act here"), (OUTSIDER, "another workspace")):
        blocks = await open_home(h, who, words)
        assert action_ids(blocks) == []
        assert "4101" not in json.dumps(blocks)


async def test_a_workspace_without_the_tab_costs_nothing_but_a_line_in_the_log(
    h: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    h.workspace.has_home_tab = False
    await h.person(REVIEWER).open_home()

    async def handled() -> int:
        return int(await h.value("SELECT count(*) FROM inbox WHERE handled_at IS NOT NULL"))

    await h.until(handled, lambda count: count == 1)
    assert "a Home tab was not shown: not_enabled" in caplog.text
    assert h.person(REVIEWER).home() is None


def test_only_the_home_tab_of_the_event_is_shown() -> None:
    event: dict[str, Any] = {"type": "app_home_opened", "user": SECOND, "tab": "home"}
    assert opened_by({"event": event}) == SECOND
    for other in ({**event, "tab": "messages"}, {**event, "type": "message"}, {**event, "user": 7}):
        assert opened_by({"event": other}) is None
    assert opened_by({}) is None

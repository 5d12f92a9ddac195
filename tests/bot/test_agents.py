"""Another bot in the workspace asks: its request waits for people, and its thread tells the end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from io import BytesIO
from typing import Any

import aiohttp
import pytest

from bot.agent_mentions import (
    AgentMention,
    OurApp,
    agent_mention_of,
    request_in_metadata,
    request_in_text,
    words_of,
)
from bot.agent_requests import MOST_TRIES
from bot.sandbox.agent import Agent
from bot.sandbox.faults import Fault
from bot.sandbox.model import Json, Message
from bot.sandbox.seed import SIGNING_SECRET
from bot.sandbox.signing import signature_headers
from executor.domain.agent_request import (
    AgentRequest,
    ClosingArguments,
    RunArguments,
    Unreadable,
)
from executor.domain.ids import TenantId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.engine.setup import activate_policy
from tests.support.bot_harness import (
    APPROVALS,
    REQUESTER,
    REVIEWER,
    SUPPORT,
    Harness,
    make_policy,
    proposing,
)
from tests.support.card_reading import nodes

AGENT = "U0AGENT"
US = OurApp("U0SIGNOFF", "B0SIGNOFF", "A0SIGNOFF")
PEOPLE = {"requesters": [REQUESTER, AGENT], "approvers": [REVIEWER], "agents": [AGENT]}


def closing(ticket: str = "4101", key: str = "k-1", **arguments: Any) -> Json:
    fields = {
        "ticket_id": ticket,
        "language": "en",
        "subject": "Ticket closed",
        "message": "All is well & good.",
        **arguments,
    }
    return {"kind": "close_ticket", "request_key": key, "arguments": fields}


def with_argument(name: str) -> Json:
    """The request with one more argument, of any name."""
    asked = closing()
    return {**asked, "arguments": {**asked["arguments"], name: 1}}


def run(goal: str = "close 4101", key: str = "k-1") -> Json:
    return {"kind": "run", "request_key": key, "arguments": {"goal": goal}}


# Reading


def event(**changes: Any) -> Json:
    fields = {
        "type": "app_mention",
        "user": AGENT,
        "bot_id": "B0AGENT",
        "app_id": "A0AGENT",
        "bot_profile": {"id": "B0AGENT", "app_id": "A0AGENT", "team_id": "T1"},
        "text": "<@U0SIGNOFF> close 4101",
        "ts": "1700000000.000100",
        "channel": "C1",
        "team": "T1",
    }
    return {"event": {k: v for k, v in {**fields, **changes}.items() if v is not None}}


def mention(**changes: Any) -> AgentMention | None:
    return agent_mention_of(event(**changes), TenantId("T1"), US)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"bot_profile": None},
        {"bot_id": None},
        {"type": "message", "subtype": "bot_message"},
        {"subtype": "bot_message"},
        {"thread_ts": "1600000000.000100"},
        {"thread_ts": "<!channel>"},
    ],
)
def test_a_mention_by_another_bot_is_read(changes: Json) -> None:
    found = mention(**changes)
    assert found is not None
    assert (found.user, found.team, found.channel) == (AGENT, "T1", "C1")
    threaded = changes.get("thread_ts") == "1600000000.000100"
    assert found.thread_ts == ("1600000000.000100" if threaded else found.ts)


@pytest.mark.parametrize(
    "changes",
    [
        {"bot_id": None, "bot_profile": None},
        {"user": "U0SIGNOFF"},
        {"bot_id": "B0SIGNOFF"},
        {"app_id": "A0SIGNOFF"},
        {"bot_profile": {"id": "B0SIGNOFF"}},
        {"bot_profile": {"app_id": "A0SIGNOFF"}},
        {"subtype": "message_changed"},
        {"type": "message"},
        {"type": "message", "subtype": "message_deleted"},
        {"type": "message", "subtype": "bot_message", "text": "nobody is named"},
        {"type": "message", "subtype": "bot_message", "text": "<@U0SIGNOFFX> other"},
        {"channel": "<@U1>"},
        {"ts": "now"},
        {"ts": None},
    ],
)
def test_ourselves_people_and_everything_else_ask_for_nothing(changes: Json) -> None:
    assert mention(**changes) is None
    assert agent_mention_of({"event": []}, TenantId("T1"), US) is None


def test_a_bot_of_another_workspace_is_named_by_its_own() -> None:
    for changes in ({"user_team": "T2"}, {"bot_profile": {"id": "B", "team_id": "T2"}}):
        found = mention(**changes)
        assert found is not None
        assert found.principal == f"slack:T2:{AGENT}"


def test_a_bot_without_a_user_is_nobody() -> None:
    found = mention(user=None)
    assert found is not None
    assert found.user == ""


def text(document: Any, around: str = "<@U0SIGNOFF> {}") -> AgentRequest | Unreadable | None:
    written = document if isinstance(document, str) else json.dumps(document)
    return request_in_text(around.replace("{}", written), "U0SIGNOFF")


@pytest.mark.parametrize(
    "around",
    [
        "<@U0SIGNOFF> {}",
        "{} <@U0SIGNOFF>",
        "<@U0SIGNOFF|signoff>\n```\n{}\n```",
        "<@U0SIGNOFF> ```json\n{}```",
        "<@U0SIGNOFF> `{}`",
    ],
)
def test_a_request_stands_in_a_text_with_or_without_a_fence(around: str) -> None:
    found = text(closing(), around)
    assert isinstance(found, AgentRequest)
    assert isinstance(found.arguments, ClosingArguments)
    assert (found.request_key, found.arguments.ticket_id) == ("k-1", "4101")


def test_what_slack_makes_of_a_text_is_undone_once_and_no_more() -> None:
    told = json.dumps(closing(message="a &lt;b&gt; &amp;amp; <https://acme.example/x>"))
    told = told.replace('"language"', '"to": ["<mailto:pat@c.example|pat@c.example>"], "language"')
    found = text(told)
    assert isinstance(found, AgentRequest)
    assert isinstance(found.arguments, ClosingArguments)
    assert found.arguments.message == "a <b> &amp; https://acme.example/x"
    assert found.arguments.to == ("pat@c.example",)
    kept = text(closing(message="<https://evil.example|good.example>"))
    assert isinstance(kept, AgentRequest)
    assert isinstance(kept.arguments, ClosingArguments)
    assert kept.arguments.message == "<https://evil.example|good.example>"


def test_a_request_in_text_and_one_in_metadata_are_the_same_request() -> None:
    held = request_in_metadata({"event_type": "signoff_request", "event_payload": closing()})
    assert isinstance(held, AgentRequest)
    assert text(closing()) == held


def test_metadata_of_another_type_holds_no_request() -> None:
    for metadata in (None, {}, {"event_type": "other", "event_payload": closing()}):
        assert request_in_metadata(metadata) is None


def test_other_words_are_a_goal() -> None:
    said = "<@U0SIGNOFF> close 4101,\n see <https://acme.example/4101> &amp; tell"
    assert request_in_text(said, "U0SIGNOFF") is None
    asked = words_of(said, "U0SIGNOFF")
    assert isinstance(asked, AgentRequest)
    assert asked.arguments == RunArguments(goal="close 4101, see https://acme.example/4101 & tell")
    assert isinstance(words_of("<@U0SIGNOFF>", "U0SIGNOFF"), Unreadable)
    assert isinstance(words_of("x" * 5_000, "U0SIGNOFF"), Unreadable)


DEEP = "[" * 100_000
HOSTILE: list[str] = [
    "{",
    "{}",
    "[]",
    '{"kind": "run"}',
    '{"kind": "run", "kind": "close_ticket", "request_key": "k", "arguments": {}}',
    '{"kind": "rm", "request_key": "k", "arguments": {}}',
    '{"kind": "run", "request_key": "<!channel>", "arguments": {"goal": "x"}}',
    '{"kind": "run", "request_key": "k", "arguments": {"goal": "x"}, "approve": true}',
    '{"kind": "run", "request_key": "k", "arguments": {"goal": 7}}',
    '{"kind": "run", "request_key": "k", "arguments": {"goal": NaN}}',
    '{"kind": "run", "request_key": "k", "arguments": []}',
    '{"kind": "close_ticket", "request_key": "k", "arguments": {"goal": "x"}}',
    json.dumps(closing(version=1.5)),
    json.dumps(closing(version=True)),
    json.dumps(closing(version=10**30)),
    json.dumps(closing(bcc=["x@y.example"])),
    json.dumps(with_argument("<!channel>" * 20)),
    json.dumps(closing(message="\ud800")),
    "{" + '"a": ' * 3,
    '{"a": ' + DEEP,
    '{"a": ' + "9" * 9_000 + "}",
    "```{}``` and more",
]


@pytest.mark.parametrize("written", HOSTILE)
def test_what_is_no_request_says_what_to_write_and_repeats_little(written: str) -> None:
    found = text(written[:39_000])
    assert isinstance(found, Unreadable), found
    assert found.problem.endswith(".")
    assert len(found.problem) < 700
    assert found.problem.replace("…", "").isascii()


def test_a_text_beyond_slacks_own_limit_is_not_even_looked_at() -> None:
    found = text(closing(message="x" * 9_000_000))
    assert isinstance(found, Unreadable)
    assert "too long" in found.problem


# Through the whole bot


@pytest.fixture
async def h(database_url: str) -> AsyncIterator[Harness]:
    policy = make_policy(people=PEOPLE)
    async with Harness(database_url, policy=policy, model=proposing()) as harness:
        yield harness


def agent(h: Harness) -> Agent:
    return h.workspace.agent(AGENT)


def answers(h: Harness, channel: str = SUPPORT) -> list[Message]:
    """What the bot has said in threads of a channel, oldest first."""
    us = h.workspace.app.bot_id
    return [m for m in h.workspace.visible(channel) if m.bot_id == us and m.is_reply]


async def told(h: Harness, *words: str, channel: str = SUPPORT, count: int = 1) -> Message:
    """Wait for so many answers, the last of which says these words, and return that one."""

    def said() -> bool:
        found = answers(h, channel)
        return len(found) >= count and all(word in shown(found[count - 1]) for word in words)

    await h.workspace.wait_for(lambda _: said(), 15.0)
    return answers(h, channel)[count - 1]


def shown(message: Message) -> str:
    found = [n["text"] for n in nodes(message.blocks) if isinstance(n.get("text"), str)]
    return " ".join(found)


def result(message: Message) -> Json:
    """What programs read of an answer."""
    assert message.metadata is not None
    assert message.metadata["event_type"] == "signoff_result"
    payload: Json = dict(message.metadata["event_payload"])
    assert set(payload) <= {
        *("request_key", "operation", "run", "status", "reason", "version", "updated_at"),
        *("subject", "nonce", "revision"),
    }
    return {k: v for k, v in payload.items() if k not in ("subject", "nonce", "revision")}


async def handled(h: Harness) -> None:
    """Wait until no stored event is left."""
    count = "SELECT count(*) FROM inbox WHERE handled_at IS NULL"
    await h.until(lambda: h.value(count), lambda left: left == 0)


@pytest.mark.parametrize("way", ["in the event", "looked up", "in a thread", "in the text"])
async def test_a_closing_is_asked_for_approved_and_told(h: Harness, way: str) -> None:
    robot = agent(h)
    if way == "in the text":
        asked = await robot.ask_in_text(SUPPORT, closing(to=["pat@cust.example"]))
    elif way == "in a thread":
        parent = await h.person(REQUESTER).say(SUPPORT, "4101 seems to be done")
        asked = await robot.ask(SUPPORT, closing(), thread_ts=parent.ts)
    else:
        asked = await robot.ask(SUPPORT, closing(), in_event=way == "in the event")
    assert asked.status == 200
    first = await told(h, "op_1 waits for approval")
    assert result(first) == {
        "request_key": "k-1",
        "operation": "op_1",
        "run": "run_1",
        "status": "awaiting",
    }
    card = await h.settled_card()
    assert "(an agent)" in shown(card)
    assert card.channel == APPROVALS
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    last = await told(h, "op_1 is done", count=2)
    assert result(last) == {
        "request_key": "k-1",
        "operation": "op_1",
        "run": "run_1",
        "status": "succeeded",
    }
    assert first.thread_ts == last.thread_ts == h.workspace.visible(SUPPORT)[0].ts
    assert len(h.mailbox.mails) == 1
    assert len(answers(h)) == 2


async def test_nobody_is_called_in_the_thread_of_a_request(h: Harness) -> None:
    await agent(h).ask(SUPPORT, closing("4102"))
    # Two messages at once are taken in any order, and what is begun first is numbered first.
    await told(h, "op_1")
    await agent(h).ask(SUPPORT, run(key="k-2"))
    card = await h.card(lambda m: "Close ticket 4101" in shown(m))
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await told(h, "run_2", "Finished", count=3)
    for message in answers(h):
        assert "<@" not in json.dumps(message.now.sent)
        assert '"user_id"' not in json.dumps(message.blocks)


async def test_a_rejection_is_told_with_its_reason(h: Harness) -> None:
    await agent(h).ask(SUPPORT, closing())
    card = await h.settled_card()
    rene = h.person(REVIEWER)
    await rene.click(card.channel, card.ts, "reject")
    view = rene.view()
    assert view is not None
    typed = {
        b["block_id"]: b["element"]["action_id"] for b in view.view["blocks"] if "element" in b
    }
    note = "Say <!channel> sorry *first*."
    await rene.submit_view(view.id, {block: {action: note} for block, action in typed.items()})
    last = await told(h, "op_1 is rejected", note, count=2)
    assert result(last)["status"] == "rejected"
    assert note not in json.dumps(last.metadata)
    assert note not in last.text


async def test_a_run_is_started_worked_and_its_end_told_where_it_was_asked(h: Harness) -> None:
    await agent(h).ask(SUPPORT, run())
    first = await told(h, "run_1 is")
    assert result(first)["run"] == "run_1"
    card = await h.settled_card()
    assert "(an agent)" in shown(card)
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    last = await told(h, "run_1", "Finished", count=2)
    assert result(last) == {
        "request_key": "k-1",
        "run": "run_1",
        "status": "succeeded",
        "reason": "completed",
    }


async def test_plain_words_are_a_goal_and_have_no_key(h: Harness) -> None:
    await agent(h).mention(SUPPORT, "please close 4101")
    first = await told(h, "run_1 is")
    assert "request_key" not in result(first)
    goals = await h.value("SELECT goal || ' for ' || requester FROM runs")
    assert goals == f"please close 4101 for slack:TSIGNOFF:{AGENT}"


async def test_a_redelivery_and_the_same_key_ask_for_nothing_more(h: Harness) -> None:
    robot = agent(h)
    delivery = await robot.ask(SUPPORT, closing())
    await told(h, "op_1 waits for approval")
    await robot.redeliver(delivery)
    envelope = json.loads(delivery.request.body)
    for id_, changes in (("Ev9a", {}), ("Ev9b", {"type": "message", "subtype": "bot_message"})):
        again = {**envelope, "event_id": id_, "event": {**envelope["event"], **changes}}
        assert await post(h, json.dumps(again).encode()) == 200
    await handled(h)
    await robot.ask_in_text(SUPPORT, closing())
    again_told = await told(h, "was asked for before: op_1 waits", count=2)
    assert result(again_told)["operation"] == "op_1"
    await robot.ask(SUPPORT, closing(message="Otherwise."))
    other = await told(h, "Refused. run_1 was asked for under this key", count=3)
    assert result(other) == {
        "request_key": "k-1",
        "status": "refused",
        "reason": "already_started",
    }
    assert len(answers(h)) == 3
    assert await h.value("SELECT count(*) FROM operations") == 1


async def post(h: Harness, body: bytes) -> int:
    headers = signature_headers(SIGNING_SECRET, int(h.workspace.now()), body)
    url = f"{h.workspace.bot_url}/slack/events"
    sent = {**headers, "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=BytesIO(body), headers=sent) as response,
    ):
        return response.status


@pytest.mark.parametrize(
    ("asked", "words", "reason", "more"),
    [
        (closing("9999"), ["There is no such ticket"], "ticket_unknown", {}),
        (closing(version=3), ["Read it again", "7"], "version_changed", {"version": 7}),
        (closing(to=["x y"]), ["Correct it", "to[0]: "], "content_invalid", {}),
        ({"kind": "run"}, ["Correct it", "request_key is missing"], "arguments_invalid", {}),
    ],
)
async def test_what_is_wrong_is_answered_with_what_to_do(
    h: Harness, asked: Json, words: list[str], reason: str, more: Json
) -> None:
    await agent(h).ask(SUPPORT, asked)
    said = await told(h, "Refused. ", *words)
    key = {"request_key": "k-1"} if "request_key" in asked else {}
    assert result(said) == {**key, **more, "status": "refused", "reason": reason}
    assert await h.numbers() == set()


async def test_hostile_words_are_shown_literally_and_call_nobody(h: Harness) -> None:
    await agent(h).ask(SUPPORT, with_argument("<!channel> <@U0REVIEWER>"))
    said = await told(h, "Refused. ", "<!channel>")
    assert "<!channel>" not in said.text
    [literal] = [
        part
        for block in said.blocks
        for part in block["elements"]
        if "<!channel>" in json.dumps(part)
    ]
    assert literal["type"] == "rich_text_preformatted"


async def test_an_agent_without_a_right_is_told_so_once_a_message(h: Harness) -> None:
    await activate_policy(h.engine, make_policy(people={**PEOPLE, "requesters": "everyone"}))
    await agent(h).ask(SUPPORT, closing())
    said = await told(h, "Refused. ", "Ask whoever keeps the policy")
    assert result(said)["reason"] == "not_permitted"
    assert await h.numbers() == set()


async def test_a_bot_that_the_policy_does_not_name_gets_silence(h: Harness) -> None:
    await activate_policy(h.engine, make_policy(people={**PEOPLE, "agents": []}))
    looks = len(h.slack.record.calls("users.info"))
    for way in (closing(), run(), {"kind": "nonsense"}):
        await agent(h).ask(SUPPORT, way)
    await agent(h).mention(SUPPORT, "hello?")
    await handled(h)
    assert h.bots[0].bot.counts.unnamed_bots == 4
    assert answers(h) == []
    assert h.workspace.ephemerals == {}
    assert len(h.slack.record.calls("users.info")) == looks
    assert await h.value("SELECT count(*) FROM agent_requests") == 0


async def test_a_bot_of_another_workspace_is_refused(h: Harness) -> None:
    h.workspace.users[AGENT].team_id = "TOUTSIDE"
    await agent(h).ask(SUPPORT, closing())
    said = await told(h, "Refused. You belong to another workspace.")
    assert result(said)["reason"] == "other_workspace"
    assert await h.numbers() == set()


async def test_an_agent_that_clicks_decides_nothing(h: Harness) -> None:
    await activate_policy(h.engine, make_policy(people={**PEOPLE, "approvers": [REVIEWER, AGENT]}))
    await h.start_run("close 4101")
    card = await h.settled_card()
    await agent(h).click(card.channel, card.ts, "approve")
    await h.whispered(AGENT, "may")
    assert await h.decisions() == []


async def test_a_right_that_was_taken_sends_nothing_and_the_agent_hears_it(h: Harness) -> None:
    for worker in h.workers:
        await worker.stop()
    await agent(h).ask(SUPPORT, closing())
    card = await h.settled_card()
    await h.person(REVIEWER).click(card.channel, card.ts, "approve")
    await h.until(h.decisions, bool)
    await activate_policy(h.engine, make_policy(people={**PEOPLE, "requesters": [REQUESTER]}))
    await h.start_worker()
    last = await told(h, "op_1 is out of date, nothing was done", count=2)
    assert (result(last)["status"], result(last)["reason"]) == ("stale", "not_permitted")
    assert h.mailbox.mails == []


async def test_a_mention_waits_for_slack_to_show_its_metadata_but_not_for_ever(
    h: Harness,
) -> None:
    h.slack.faults.add("conversations.history", fault=Fault.ERROR_500_BEFORE_COMMIT, times=1_000)
    await agent(h).ask(SUPPORT, closing())
    for tries in range(1, MOST_TRIES + 1):
        await h.until(
            lambda: h.value("SELECT max(tries) FROM inbox"),
            lambda n, t=tries: n >= t,  # type: ignore[misc]
        )
        await h.move_time(timedelta(seconds=31))
    said = await told(h, "Refused. ", "Write the request as JSON in its text")
    assert result(said)["reason"] == "arguments_invalid"
    assert await h.numbers() == set()


async def test_our_own_messages_ask_for_nothing(h: Harness) -> None:
    before = h.bots[0].bot.counts.unnamed_bots
    for changes in (
        {"user": "U0SIGNOFF", "bot_id": "B0SIGNOFF"},
        {"bot_profile": {"id": "B0SIGNOFF"}},
        {"app_id": "A0SIGNOFF"},
    ):
        await h.person(REQUESTER).cause(event(channel=SUPPORT, team="TSIGNOFF", **changes)["event"])
    await handled(h)
    assert answers(h) == []
    assert await h.numbers() == set()
    assert h.bots[0].bot.counts.unnamed_bots == before


async def test_a_text_of_nine_megabytes_is_turned_away_at_the_door(h: Harness) -> None:
    huge = event(channel=SUPPORT, text="<@U0SIGNOFF> " + "x" * 9_000_000)["event"]
    body = {"type": "event_callback", "team_id": "TSIGNOFF", "event_id": "Ev1", "event": huge}
    assert await post(h, json.dumps(body).encode()) == 413
    assert await h.value("SELECT count(*) FROM inbox") == 0


async def test_people_start_runs_by_naming_the_bot_as_ever(h: Harness) -> None:
    await h.person(REQUESTER).mention(SUPPORT, "close 4101")
    await h.until(h.numbers, bool)
    assert await h.value("SELECT count(*) FROM agent_requests") == 0
    card = await h.settled_card()
    assert "(an agent)" not in shown(card)


async def test_a_cancelled_request_is_told_as_well(h: Harness) -> None:
    await agent(h).ask(SUPPORT, closing())
    await h.settled_card()
    await h.person(REVIEWER).slash(APPROVALS, "/signoff", "cancel run_1")
    last = await told(h, "op_1 is withdrawn", count=2)
    assert result(last)["status"] == "withdrawn"
    assert await h.value("SELECT status FROM runs") == RunStatus.CANCELLED
    assert await h.value("SELECT status FROM operations") == OperationStatus.WITHDRAWN

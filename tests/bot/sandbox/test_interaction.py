"""Clicks and commands: built from what is stored, signed over the bytes, judged as Slack does."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.delivery import Sees
from bot.sandbox.interaction import Sending
from bot.sandbox.payloads import NothingToClick
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble, Received, running_bot
from tests.bot.sandbox.conftest import CHANNEL, make_card, plain

pytestmark = pytest.mark.usefixtures("slack")


@pytest.fixture
async def ts(client: AsyncWebClient) -> str:
    answer = await client.chat_postMessage(channel=CHANNEL, text="card", blocks=make_card())
    return str(answer["ts"])


async def test_a_click_carries_what_slack_sends(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    delivery = await workspace.person("U0REVIEWER").click(CHANNEL, ts, "approve")
    [received] = bot.received
    payload = received.payload
    assert payload["type"] == "block_actions"
    assert payload["user"] == {
        "id": "U0REVIEWER",
        "username": "rene",
        "name": "rene",
        "team_id": "TSIGNOFF",
    }
    assert payload["team"] == {"id": "TSIGNOFF", "domain": "acme-support"}
    assert payload["container"]["message_ts"] == ts
    assert payload["channel"] == {"id": CHANNEL, "name": "approvals"}
    [action] = payload["actions"]
    assert (action["action_id"], action["block_id"], action["value"]) == (
        "approve",
        "decide.1",
        "op:1",
    )
    assert payload["message"]["ts"] == ts
    assert payload["trigger_id"]
    assert payload["response_url"].startswith(workspace.public_url)
    assert (delivery.status, delivery.sees) == (200, Sees.NOTHING)


async def test_opening_the_home_tab_tells_what_it_shows(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    person = workspace.person("U0REVIEWER")
    await person.open_home()
    opened = bot.received[0].payload["event"]
    assert (opened["type"], opened["tab"], opened["user"]) == (
        "app_home_opened",
        "home",
        "U0REVIEWER",
    )
    assert "view" not in opened
    view = {"type": "home", "blocks": [{"type": "divider"}]}
    published = (await client.views_publish(user_id="U0REVIEWER", view=view))["view"]
    await person.open_home()
    assert bot.received[1].payload["event"]["view"]["hash"] == published["hash"]


async def test_the_message_in_a_click_is_encoded_but_its_value_is_not(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    blocks = [{"type": "header", "text": plain("Q&A <draft>")}, *make_card()]
    blocks[3]["elements"][0]["value"] = "a&b"
    answer = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=blocks)
    await workspace.person("U0REVIEWER").click(CHANNEL, answer["ts"], "approve")
    payload = bot.received[0].payload
    assert payload["message"]["blocks"][0]["text"]["text"] == "Q&amp;A &lt;draft&gt;"
    assert payload["actions"][0]["value"] == "a&b"


async def test_requests_are_signed_over_their_bytes(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    person = workspace.person("U0REVIEWER")
    await person.click(CHANNEL, ts, "approve")
    await person.slash(CHANNEL, "/signoff", "run 4101 ü%2F &")
    await person.mention(CHANNEL, "hello ü")
    assert len(bot.received) == 3
    for received in bot.received:
        assert received.is_signed_with(workspace.signing_secret)
        assert not received.is_signed_with("another secret")
        changed = Received(received.body + b" ", received.headers)
        assert not changed.is_signed_with(workspace.signing_secret)


async def test_another_secret_and_a_skewed_clock_do_not_verify(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    person = workspace.person("U0REVIEWER")
    await person.click(CHANNEL, ts, "approve", sending=Sending(secret="second"))
    await person.click(CHANNEL, ts, "approve", sending=Sending(skew_seconds=-310))
    await person.click(CHANNEL, ts, "approve", sending=Sending(skew_seconds=-290))
    other, late, timely = bot.received
    assert not other.is_signed_with(workspace.signing_secret)
    assert other.is_signed_with("second")
    assert not late.is_signed_with(workspace.signing_secret)
    assert timely.is_signed_with(workspace.signing_secret)


async def test_a_replay_is_the_same_request(
    workspace: Workspace, bot: BotDouble, clock: VirtualClock, ts: str
) -> None:
    person = workspace.person("U0REVIEWER")
    first = await person.click(CHANNEL, ts, "approve")
    clock.advance(30)
    await person.replay(first)
    one, two = bot.received
    assert one.body == two.body
    assert one.headers["X-Slack-Signature"] == two.headers["X-Slack-Signature"]
    await person.click(CHANNEL, ts, "approve")
    assert bot.received[2].headers["X-Slack-Signature"] != one.headers["X-Slack-Signature"]


async def test_copies_are_under_way_together(workspace: Workspace, bot: BotDouble, ts: str) -> None:
    both = asyncio.Barrier(2)

    async def answer(received: Received) -> web.StreamResponse:
        await both.wait()
        return web.Response()

    bot.answer = answer
    first = await workspace.person("U0REVIEWER").click(
        CHANNEL, ts, "approve", sending=Sending(copies=2)
    )
    assert [first.status, *(copy.status for copy in first.copies)] == [200, 200]
    assert (
        bot.received[0].headers["X-Slack-Signature"]
        == (bot.received[1].headers["X-Slack-Signature"])
    )


async def test_a_request_can_go_to_another_of_the_bot_s_processes(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    async with running_bot() as other:
        await workspace.person("U0REVIEWER").click(
            CHANNEL, ts, "approve", sending=Sending(to=other.url)
        )
        assert len(other.received) == 1
    assert bot.received == []


async def test_nobody_clicks_what_is_not_there(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    person = workspace.person("U0REVIEWER")
    for wrong in ({"ts": "1.000001"}, {"action_id": "reject"}, {"block_id": "decide.2"}):
        args = {"channel": CHANNEL, "ts": ts, "action_id": "approve"} | wrong
        with pytest.raises(NothingToClick):
            await person.click(**args)  # type: ignore[arg-type]
    await client.chat_update(channel=CHANNEL, ts=ts, text="done", blocks=make_card()[:2])
    with pytest.raises(NothingToClick):
        await person.click(CHANNEL, ts, "approve")
    workspace.channels[CHANNEL].members.discard("U0REVIEWER")
    with pytest.raises(NothingToClick):
        await person.click(CHANNEL, ts, "approve", revision=0)
    assert bot.received == []


async def test_a_stale_client_clicks_the_revision_it_still_shows(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    await client.chat_update(channel=CHANNEL, ts=ts, text="2", blocks=make_card(2))
    person = workspace.person("U0REVIEWER")
    await person.click(CHANNEL, ts, "approve", revision=0)
    await person.click(CHANNEL, ts, "approve")
    old, new = (r.payload for r in bot.received)
    assert (old["actions"][0]["value"], new["actions"][0]["value"]) == ("op:1", "op:2")
    assert old["message"]["blocks"][1]["block_id"] == "body.1"


async def test_an_outsider_clicks_with_their_own_team(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    await workspace.person("U0OUTSIDER").click(CHANNEL, ts, "approve")
    payload = bot.received[0].payload
    assert (payload["team"]["id"], payload["user"]["team_id"]) == ("TSIGNOFF", "TOUTSIDE")


async def test_an_org_wide_install_sends_no_team(
    workspace: Workspace, bot: BotDouble, ts: str
) -> None:
    workspace.org_wide = True
    workspace.team.enterprise_id = "E0ACME"
    await workspace.person("U0REVIEWER").click(CHANNEL, ts, "approve")
    payload = bot.received[0].payload
    assert payload["team"] is None
    assert payload["enterprise"]["id"] == "E0ACME"
    assert payload["is_enterprise_install"] is True


async def test_a_click_on_an_ephemeral_carries_no_message(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    answer = await client.chat_postEphemeral(
        channel=CHANNEL, user="U0REVIEWER", text="t", blocks=make_card()
    )
    await workspace.person("U0REVIEWER").click(CHANNEL, answer["message_ts"], "approve")
    payload = bot.received[0].payload
    assert payload["container"]["is_ephemeral"] is True
    assert "message" not in payload
    with pytest.raises(NothingToClick):
        await workspace.person("U0SECOND").click(CHANNEL, answer["message_ts"], "approve")


async def test_an_option_is_chosen_from_those_that_are_there(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    choice = {"text": plain("Later"), "value": "later"}
    menu = {"type": "overflow", "action_id": "more", "options": [choice]}
    answer = await client.chat_postMessage(
        channel=CHANNEL, text="t", blocks=[{"type": "actions", "elements": [menu]}]
    )
    person = workspace.person("U0REVIEWER")
    await person.click(CHANNEL, answer["ts"], "more", option="later")
    assert bot.received[0].payload["actions"][0]["selected_option"]["value"] == "later"
    with pytest.raises(NothingToClick):
        await person.click(CHANNEL, answer["ts"], "more", option="never")


async def hang(received: Received) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_click_without_a_200_in_time_shows_the_warning_sign(
    slack: SlackServer, bot: BotDouble, ts: str
) -> None:
    person = slack.workspace.person("U0REVIEWER")
    bot.answers(404)
    assert (await person.click(CHANNEL, ts, "approve")).sees is Sees.WARNING_SIGN
    bot.answers(201)
    assert (await person.click(CHANNEL, ts, "approve")).sees is Sees.WARNING_SIGN
    bot.answer = hang
    late = await person.click(CHANNEL, ts, "approve")
    assert (late.sees, late.timed_out, late.status) == (Sees.WARNING_SIGN, True, None)
    assert late.seconds >= slack.workspace.answer_seconds
    acks = slack.record.acks("block_actions")
    assert [a.data["status"] for a in acks] == [404, 201, None]


async def test_a_bot_that_is_away_shows_too(workspace: Workspace, ts: str) -> None:
    person = workspace.person("U0REVIEWER")
    workspace.connect("http://127.0.0.1:1")
    assert (await person.click(CHANNEL, ts, "approve")).sees is Sees.WARNING_SIGN
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.DISPATCH_FAILED


async def test_a_command_carries_the_form_that_slack_sends(
    slack: SlackServer, bot: BotDouble
) -> None:
    await slack.workspace.person("U0REQUESTER").slash("C0SUPPORT", "/signoff", "run 4101")
    fields = bot.received[0].fields
    assert (fields["command"], fields["text"]) == ("/signoff", "run 4101")
    assert (fields["channel_id"], fields["channel_name"]) == ("C0SUPPORT", "support")
    assert (fields["team_id"], fields["user_id"]) == ("TSIGNOFF", "U0REQUESTER")
    assert fields["is_enterprise_install"] == "false"
    assert fields["response_url"].startswith(slack.url)


async def test_a_command_s_answer_reaches_the_one_who_typed_it(
    workspace: Workspace, bot: BotDouble
) -> None:
    person = workspace.person("U0REQUESTER")
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.NOTHING
    bot.answers(text="plain words")
    assert (await person.slash(CHANNEL, "/signoff")).said == "plain words"
    bot.answers(body={"text": "only you"})
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.EPHEMERAL
    bot.answers(body={"response_type": "in_channel", "text": "everyone"})
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.IN_CHANNEL
    assert [e.text for e in person.ephemerals(CHANNEL)] == ["plain words", "only you"]
    assert [m.text for m in workspace.visible(CHANNEL)] == ["everyone"]


async def test_a_command_that_fails_says_how(workspace: Workspace, bot: BotDouble) -> None:
    person = workspace.person("U0REQUESTER")
    bot.answers(500)
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.DISPATCH_FAILED
    bot.answers(body={"text": "t", "blocks": [{"type": "header", "text": plain("x" * 151)}]})
    refused = await person.slash(CHANNEL, "/signoff")
    assert (refused.sees, refused.said) == (Sees.DISPATCH_FAILED, "invalid_blocks")
    bot.answer = hang
    assert (await person.slash(CHANNEL, "/signoff")).sees is Sees.OPERATION_TIMEOUT
    assert person.ephemerals() == []


async def test_the_record_holds_no_response_url(
    slack: SlackServer, bot: BotDouble, ts: str
) -> None:
    person = slack.workspace.person("U0REVIEWER")
    await person.click(CHANNEL, ts, "approve")
    await person.slash(CHANNEL, "/signoff")
    assert "/response/" not in str(slack.record.to_json())
    assert [d.data["user"] for d in slack.record.deliveries()] == ["U0REVIEWER", "U0REVIEWER"]

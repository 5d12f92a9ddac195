"""Modals: trigger ids, hashes, the stack of three, and what a submission's answer does."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.delivery import Sees
from bot.sandbox.model import Json
from bot.sandbox.payloads import NothingToClick
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.bot_double import BotDouble, Received
from tests.bot.sandbox.conftest import CHANNEL, modal, plain


async def trigger(workspace: Workspace, bot: BotDouble) -> str:
    await workspace.person("U0REVIEWER").slash(CHANNEL, "/signoff")
    return bot.received[-1].fields["trigger_id"]


async def error_of(client: AsyncWebClient, method: str, **args: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=args)
    return str(caught.value.response["error"])


@pytest.fixture
async def view_id(client: AsyncWebClient, workspace: Workspace, bot: BotDouble) -> str:
    opened = await client.views_open(
        trigger_id=await trigger(workspace, bot), view=modal(private_metadata="op_1")
    )
    return str(opened["view"]["id"])


async def test_a_trigger_opens_one_modal_for_the_one_who_clicked(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    trigger_id = await trigger(workspace, bot)
    opened = await client.views_open(trigger_id=trigger_id, view=modal())
    assert workspace.person("U0REVIEWER").view() is workspace.view(opened["view"]["id"])
    assert workspace.person("U0SECOND").view() is None
    again = await error_of(client, "views.open", trigger_id=trigger_id, view=modal())
    assert again == "exchanged_trigger_id"


async def test_a_trigger_lives_three_seconds(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble, clock: VirtualClock
) -> None:
    early, late = await trigger(workspace, bot), await trigger(workspace, bot)
    clock.advance(3)
    await client.views_open(trigger_id=early, view=modal())
    clock.advance(0.001)
    error = await error_of(client, "views.open", trigger_id=late, view=modal())
    assert error == "expired_trigger_id"
    invented = await error_of(client, "views.open", trigger_id="1.2.x", view=modal())
    assert invented == "invalid_trigger_id"


async def test_a_bad_view_is_refused_with_pointers(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    trigger_id = await trigger(workspace, bot)
    with pytest.raises(SlackApiError) as caught:
        await client.views_open(trigger_id=trigger_id, view=modal(title=plain("x" * 25)))
    assert caught.value.response["error"] == "invalid_arguments"
    assert caught.value.response["errors"][0]["pointer"] == "/view/title/text"
    await client.views_open(trigger_id=trigger_id, view=modal(title=plain("x" * 24)))


async def test_a_view_holds_a_quarter_of_a_megabyte(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    part = {"type": "section", "text": plain("x" * 2_900)}
    small, large = modal(blocks=[part] * 80), modal(blocks=[part] * 90)
    trigger_id = await trigger(workspace, bot)
    assert await error_of(client, "views.open", trigger_id=trigger_id, view=large) == (
        "view_too_large"
    )
    await client.views_open(trigger_id=trigger_id, view=small)


async def test_an_update_with_an_old_hash_conflicts(
    client: AsyncWebClient, workspace: Workspace, view_id: str
) -> None:
    opened = workspace.view(view_id)
    assert opened is not None
    old = opened.hash
    await client.views_update(view_id=view_id, hash=old, view=modal(title=plain("Filled")))
    args: Json = {"view_id": view_id, "hash": old, "view": modal()}
    assert await error_of(client, "views.update", **args) == "hash_conflict"
    assert opened.view["title"]["text"] == "Filled"
    assert await error_of(client, "views.update", view_id="V0", view=modal()) == "not_found"


async def test_three_views_are_a_full_stack(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    for _ in range(2):
        await client.views_push(trigger_id=await trigger(workspace, bot), view=modal())
    args = {"trigger_id": await trigger(workspace, bot), "view": modal()}
    assert await error_of(client, "views.push", **args) == "push_limit_reached"
    assert [v.root_view_id for v in workspace.views["U0REVIEWER"]] == [view_id] * 3


async def test_a_home_tab_belongs_to_its_user(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble
) -> None:
    button = {"type": "button", "action_id": "open", "text": plain("Open"), "value": "op_1"}
    home = {"type": "home", "blocks": [{"type": "actions", "elements": [button]}]}
    shown = await client.views_publish(user_id="U0REVIEWER", view=home)
    await workspace.person("U0REVIEWER").click_in_view(shown["view"]["id"], "open")
    payload = bot.received[0].payload
    assert payload["container"] == {"type": "view", "view_id": shown["view"]["id"]}
    assert "message" not in payload
    assert await error_of(client, "views.publish", user_id="U0NONE", view=home) == "user_not_found"


async def test_a_home_tab_is_replaced_only_as_it_stands_and_holds_a_hundred_blocks(
    client: AsyncWebClient,
) -> None:
    home = {"type": "home", "blocks": [{"type": "divider"}] * 100}
    first = (await client.views_publish(user_id="U0REVIEWER", view=home))["view"]
    args: Json = {"user_id": "U0REVIEWER", "view": home}
    second = (await client.views_publish(**args, hash=first["hash"]))["view"]
    assert (second["id"], second["hash"] == first["hash"]) == (first["id"], False)
    assert await error_of(client, "views.publish", **args, hash=first["hash"]) == "hash_conflict"
    too_many = {**home, "blocks": [{"type": "divider"}] * 101}
    refused = await error_of(client, "views.publish", user_id="U0REVIEWER", view=too_many)
    assert refused == "invalid_arguments"


async def test_an_app_without_a_home_tab_publishes_none(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    workspace.has_home_tab = False
    home = {"type": "home", "blocks": [{"type": "divider"}]}
    args = {"user_id": "U0REVIEWER", "view": home}
    assert await error_of(client, "views.publish", **args) == "not_enabled"


async def test_a_submission_carries_state_and_metadata_and_closes(
    workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    person = workspace.person("U0REVIEWER")
    done = await person.submit_view(view_id, {"reason": {"text": "because"}})
    view = bot.received[-1].payload["view"]
    assert view["state"]["values"]["reason"]["text"] == {
        "type": "plain_text_input",
        "value": "because",
    }
    assert view["private_metadata"] == "op_1"
    assert done.sees is Sees.NOTHING
    assert person.view() is None


async def test_errors_stay_beside_their_inputs(
    workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    person = workspace.person("U0REVIEWER")
    bot.answers(body={"response_action": "errors", "errors": {"reason": "say more"}})
    answer = await person.submit_view(view_id)
    assert (answer.sees, answer.view_errors) == (Sees.VIEW_ERRORS, {"reason": "say more"})
    assert person.view() is not None
    bot.answers(body={"response_action": "errors", "errors": {"nowhere": "lost"}})
    assert (await person.submit_view(view_id)).sees is Sees.TROUBLE_CONNECTING


async def test_an_answer_can_update_push_and_clear(
    workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    person = workspace.person("U0REVIEWER")
    bot.answers(body={"response_action": "update", "view": modal(title=plain("Second"))})
    assert (await person.submit_view(view_id)).sees is Sees.VIEW_CHANGED
    bot.answers(body={"response_action": "push", "view": modal(title=plain("Third"))})
    await person.submit_view(view_id)
    assert [v.view["title"]["text"] for v in workspace.views["U0REVIEWER"]] == ["Second", "Third"]
    bot.answers(body={"response_action": "clear"})
    await person.submit_view(view_id)
    assert workspace.views["U0REVIEWER"] == []


async def test_a_failed_submission_keeps_the_modal(
    workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    person = workspace.person("U0REVIEWER")

    async def hang(received: Received) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    bot.answers(500)
    assert (await person.submit_view(view_id)).sees is Sees.TROUBLE_CONNECTING
    bot.answers(body={"response_action": "update", "view": {"type": "modal"}})
    assert (await person.submit_view(view_id)).said == "invalid_arguments"
    bot.answer = hang
    assert (await person.submit_view(view_id)).timed_out
    assert person.view() is not None


async def test_closing_is_told_only_when_asked_for(
    client: AsyncWebClient, workspace: Workspace, bot: BotDouble, view_id: str
) -> None:
    person = workspace.person("U0REVIEWER")
    before = len(bot.received)
    assert await person.close_view(view_id) is None
    assert len(bot.received) == before
    opened = await client.views_open(
        trigger_id=await trigger(workspace, bot), view=modal(notify_on_close=True)
    )
    told = await person.close_view(opened["view"]["id"])
    assert told is not None
    assert bot.received[-1].payload["type"] == "view_closed"


async def test_nobody_submits_what_is_not_theirs_or_not_there(
    workspace: Workspace, view_id: str
) -> None:
    with pytest.raises(NothingToClick):
        await workspace.person("U0SECOND").submit_view(view_id)
    with pytest.raises(NothingToClick):
        await workspace.person("U0REVIEWER").submit_view(view_id, {"other": {"text": "x"}})
    with pytest.raises(NothingToClick):
        await workspace.person("U0REVIEWER").submit_view(view_id, {"reason": {"other": "x"}})

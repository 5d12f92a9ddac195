"""The Web API as slack_sdk speaks it: encodings, tokens, scopes, and each error by its name."""

from __future__ import annotations

import json

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.clock import VirtualClock
from bot.sandbox.model import Installation, Json
from bot.sandbox.slack_server import SlackServer
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.conftest import CHANNEL, client_of, make_card, plain


async def error_of(client: AsyncWebClient, method: str, **args: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=args)
    assert caught.value.response.status_code == 200
    return str(caught.value.response["error"])


async def posted(client: AsyncWebClient, **more: object) -> str:
    answer = await client.chat_postMessage(
        channel=CHANNEL,
        text="card",
        blocks=make_card(),
        **more,  # type: ignore[arg-type]
    )
    return str(answer["ts"])


async def test_form_json_get_and_post_are_all_understood(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    url = slack.api_url + "chat.postMessage"
    token = slack.workspace.bot_token
    form = {"token": token, "channel": CHANNEL, "text": "t", "blocks": json.dumps(make_card())}
    async with http.post(url, data=form) as response:
        as_form = await response.json()
    header = {"Authorization": f"Bearer {token}"}
    async with http.post(url, data=aiohttp.FormData(form, default_to_multipart=True)) as response:
        assert (await response.json())["ok"]
    async with http.post(
        url, json={"channel": CHANNEL, "text": "t", "blocks": make_card(2)}, headers=header
    ) as response:
        as_json = await response.json()
    query = {"channel": CHANNEL, "include_all_metadata": "1"}
    async with http.get(
        slack.api_url + "conversations.history", params=query, headers=header
    ) as response:
        read = await response.json()
    assert as_form["ok"]
    assert as_json["ok"]
    assert len(read["messages"]) == 3
    assert [read["messages"][i]["ts"] for i in (0, 2)] == [as_json["ts"], as_form["ts"]]


async def test_bodies_that_are_neither_form_nor_json_are_named(
    slack: SlackServer, http: aiohttp.ClientSession
) -> None:
    url = slack.api_url + "auth.test"
    answers = []
    form = "application/x-www-form-urlencoded"
    for body, kind in (
        (b"{", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"[]", "application/json"),
        (b"x", "text/x"),
        (b"a=\xff", form),
        (b"a=b", f"{form}; charset=none"),
    ):
        async with http.post(url, data=body, headers={"Content-Type": kind}) as response:
            answers.append((await response.json())["error"])
    bad_json, bad_form = ["invalid_json"] * 2, ["invalid_form_data"] * 3
    assert answers == [*bad_json, "json_not_object", *bad_form]


async def test_a_bot_message_has_ids_and_a_string_ts(client: AsyncWebClient) -> None:
    answer = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card())
    message = answer["message"]
    assert isinstance(answer["ts"], str)
    assert (message["user"], message["bot_id"], message["app_id"]) == (
        "U0SIGNOFF",
        "B0SIGNOFF",
        "A0SIGNOFF",
    )
    assert all(block["block_id"] for block in message["blocks"])


async def test_the_echo_encodes_plain_text_once_and_leaves_rich_text(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    blocks = [{"type": "header", "text": plain("Q&A <draft> &lt;")}, *make_card(body="a<b>&")]
    answer = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=blocks)
    echo = answer["message"]["blocks"]
    assert echo[0]["text"]["text"] == "Q&amp;A &lt;draft&gt; &amp;lt;"
    assert echo[2]["elements"][0]["elements"][0]["text"] == "a<b>&"
    stored = workspace.visible(CHANNEL)[0].blocks
    assert stored[0]["text"]["text"] == "Q&A <draft> &lt;"


async def test_every_ts_of_a_channel_is_different_though_the_clock_stands(
    client: AsyncWebClient,
) -> None:
    stamps = [await posted(client) for _ in range(5)]
    assert sorted(set(stamps)) == stamps


async def test_tokens_are_told_apart(slack: SlackServer) -> None:
    assert await error_of(client_of(slack, "xoxb-wrong"), "auth.test") == "invalid_auth"
    client = client_of(slack)
    client.token = None
    assert await error_of(client, "auth.test") == "not_authed"
    slack.workspace.revoke()
    assert await error_of(client_of(slack), "auth.test") == "token_revoked"


async def test_a_missing_scope_says_what_is_needed_and_what_is_there(slack: SlackServer) -> None:
    weak = Installation("TSIGNOFF", "U0SIGNOFF", "B0SIGNOFF", "A0SIGNOFF", frozenset({"commands"}))
    slack.workspace.add_token("xoxb-weak", weak)
    client = client_of(slack, "xoxb-weak")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=CHANNEL, text="t")
    answer = caught.value.response
    assert answer["error"] == "missing_scope"
    assert (answer["needed"], answer["provided"]) == ("chat:write", "commands")
    assert answer.headers["x-oauth-scopes"] == "commands"


async def test_scopes_are_in_the_header(client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


async def test_private_channels_need_the_groups_scope(slack: SlackServer) -> None:
    slack.workspace.channels[CHANNEL].is_private = True
    scopes = frozenset({"channels:history", "channels:read"})
    slack.workspace.add_token(
        "xoxb-public", Installation("TSIGNOFF", "U0SIGNOFF", "B0SIGNOFF", "A0SIGNOFF", scopes)
    )
    client = client_of(slack, "xoxb-public")
    with pytest.raises(SlackApiError) as caught:
        await client.conversations_history(channel=CHANNEL)
    assert caught.value.response["needed"] == "groups:history"


async def test_an_unknown_method_is_named(client: AsyncWebClient) -> None:
    assert await error_of(client, "chat.shout") == "unknown_method"


async def test_posting_where_one_may_not_is_named(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    post = "chat.postMessage"
    assert await error_of(client, post, channel="C0NONE", text="t") == "channel_not_found"
    workspace.channels[CHANNEL].members.discard("U0SIGNOFF")
    assert await error_of(client, post, channel=CHANNEL, text="t") == "not_in_channel"
    workspace.channels[CHANNEL].is_private = True
    assert await error_of(client, post, channel=CHANNEL, text="t") == "channel_not_found"
    workspace.channels["C0SUPPORT"].is_archived = True
    assert await error_of(client, post, channel="C0SUPPORT", text="t") == "is_archived"


async def test_a_message_needs_something_in_it(client: AsyncWebClient) -> None:
    post = "chat.postMessage"
    assert await error_of(client, post, channel=CHANNEL) == "no_text"
    assert await error_of(client, post, channel=CHANNEL, text=" ", blocks=[]) == "no_text"
    assert await error_of(client, "chat.update", channel=CHANNEL, ts=await posted(client)) == (
        "no_text"
    )


async def test_posted_text_is_truncated_at_forty_thousand(client: AsyncWebClient) -> None:
    whole = await client.chat_postMessage(channel=CHANNEL, text="x" * 40_000)
    assert "warning" not in whole.data
    cut = await client.chat_postMessage(channel=CHANNEL, text="x" * 40_001)
    assert cut["warning"] == "message_truncated"
    assert len(cut["message"]["text"]) == 40_000


async def test_updated_text_is_refused_past_four_thousand(client: AsyncWebClient) -> None:
    ts = await posted(client)
    await client.chat_update(channel=CHANNEL, ts=ts, text="x" * 4_000, blocks=make_card())
    args = {"channel": CHANNEL, "ts": ts, "text": "x" * 4_001, "blocks": make_card()}
    assert await error_of(client, "chat.update", **args) == "msg_too_long"


async def test_markdown_text_excludes_text_and_blocks(client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel=CHANNEL, markdown_text="x" * 12_000)
    args: Json = {"channel": CHANNEL, "markdown_text": "x"}
    post = "chat.postMessage"
    assert await error_of(client, post, **args, text="t") == "markdown_text_conflict"
    args["markdown_text"] = "x" * 12_001
    assert await error_of(client, post, **args) == "msg_too_long"


async def test_attachments_are_counted(client: AsyncWebClient) -> None:
    one = [{"text": "a", "color": "#fff"}]
    await client.chat_postMessage(channel=CHANNEL, text="t", attachments=one * 100)
    assert await error_of(
        client, "chat.postMessage", channel=CHANNEL, text="t", attachments=one * 101
    ) == ("too_many_attachments")


async def test_an_update_replaces_blocks_and_keeps_metadata_unless_sent(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    metadata = {"event_type": "card", "event_payload": {"operation": "op_1"}}
    ts = await posted(client, metadata=metadata)
    await client.chat_update(channel=CHANNEL, ts=ts, text="new", blocks=make_card(2))
    message = workspace.visible(CHANNEL)[0]
    assert message.metadata == metadata
    assert message.blocks[1]["block_id"] == "body.2"
    assert len(message.revisions) == 2
    await client.chat_update(channel=CHANNEL, ts=ts, text="bare")
    assert message.blocks == []


async def test_rich_text_is_not_replaced_by_other_blocks(client: AsyncWebClient) -> None:
    ts = await posted(client)
    args = {"channel": CHANNEL, "ts": ts, "text": "t", "blocks": [{"type": "divider"}]}
    assert await error_of(client, "chat.update", **args) == "block_mismatch"


async def test_what_cannot_be_updated_is_named(
    client: AsyncWebClient, workspace: Workspace, clock: VirtualClock
) -> None:
    update: Json = {"channel": CHANNEL, "text": "t", "blocks": make_card()}
    theirs = workspace.post(CHANNEL, "U0REVIEWER", "hello")
    assert await error_of(client, "chat.update", **update, ts=theirs.ts) == "cant_update_message"
    assert await error_of(client, "chat.update", **update, ts="1.000001") == "message_not_found"
    ts = await posted(client)
    await client.chat_delete(channel=CHANNEL, ts=ts)
    assert await error_of(client, "chat.update", **update, ts=ts) == "message_not_found"
    assert await error_of(client, "chat.delete", channel=CHANNEL, ts=ts) == "message_not_found"
    ts = await posted(client)
    workspace.edit_window_seconds = 60
    clock.advance(61)
    assert await error_of(client, "chat.update", **update, ts=ts) == "edit_window_closed"
    workspace.channels[CHANNEL].is_archived = True
    assert await error_of(client, "chat.update", **update, ts=ts) == "is_inactive"


async def test_ephemerals_reach_one_member_and_no_history(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    await client.chat_postEphemeral(channel=CHANNEL, user="U0REVIEWER", text="only you")
    assert [e.text for e in workspace.person("U0REVIEWER").ephemerals()] == ["only you"]
    assert workspace.person("U0SECOND").ephemerals() == []
    assert (await client.conversations_history(channel=CHANNEL))["messages"] == []
    workspace.channels[CHANNEL].members.discard("U0SECOND")
    args = {"channel": CHANNEL, "user": "U0SECOND", "text": "t"}
    assert await error_of(client, "chat.postEphemeral", **args) == "user_not_in_channel"


async def test_the_directory_shows_what_a_person_is(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    guest = (await client.users_info(user="U0GUEST"))["user"]
    outsider = (await client.users_info(user="U0OUTSIDER"))["user"]
    assert guest["is_restricted"]
    assert (outsider["team_id"], outsider["is_stranger"]) == ("TOUTSIDE", False)
    assert await error_of(client, "users.info", user="U0NONE") == "user_not_found"
    members = await client.usergroups_users_list(usergroup="S0REVIEWERS")
    assert members["users"] == ["U0REVIEWER", "U0SECOND"]
    assert await error_of(client, "usergroups.users.list", usergroup="S0") == "no_such_subteam"
    workspace.paid_plan = False
    assert await error_of(client, "usergroups.users.list", usergroup="S0REVIEWERS") == (
        "plan_upgrade_required"
    )
    assert (await client.team_info())["team"]["name"] == "Acme Support"


async def test_a_channel_shows_its_flags_and_members(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    workspace.channels[CHANNEL].is_ext_shared = True
    shown = (await client.conversations_info(channel=CHANNEL))["channel"]
    assert shown["is_ext_shared"]
    assert shown["is_member"]
    first = await client.conversations_members(channel=CHANNEL, limit=4)
    rest = await client.conversations_members(
        channel=CHANNEL, limit=4, cursor=first["response_metadata"]["next_cursor"]
    )
    assert set(first["members"]) | set(rest["members"]) == workspace.channels[CHANNEL].members
    assert rest["response_metadata"]["next_cursor"] == ""


async def test_a_permalink_names_the_message(client: AsyncWebClient) -> None:
    ts = await posted(client)
    link = await client.chat_getPermalink(channel=CHANNEL, message_ts=ts)
    assert link["permalink"].endswith(f"/archives/{CHANNEL}/p{ts.replace('.', '')}")


async def test_a_channel_takes_its_burst_and_then_one_message_a_second(
    clock: VirtualClock,
) -> None:
    workspace = Workspace.seeded(clock=clock, post_burst=2)
    async with SlackServer(workspace) as slack:
        client = client_of(slack)
        await posted(client)
        await posted(client)
        with pytest.raises(SlackApiError) as caught:
            await posted(client)
        assert caught.value.response.status_code == 429
        assert caught.value.response.headers["Retry-After"] == "1"
        assert caught.value.response["error"] == "ratelimited"
        await client.chat_postMessage(channel="C0SUPPORT", text="another channel is free")
        clock.advance(1)
        await posted(client)
        assert len(workspace.visible(CHANNEL)) == 3


async def test_the_record_keeps_calls_and_cards_without_the_token(
    client: AsyncWebClient, slack: SlackServer
) -> None:
    ts = await posted(client)
    [call] = slack.record.calls("chat.postMessage")
    assert call.data["response"]["ts"] == ts
    [shown] = slack.record.cards(CHANNEL, ts)
    assert "Dear Pat" in shown.data["shown"]
    assert slack.workspace.bot_token not in json.dumps(slack.record.to_json())

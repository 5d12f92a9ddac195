"""What a reviewer reads, whom a message pings, and where it leads."""

from __future__ import annotations

from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.model import Json
from bot.sandbox.references import Link, links, pings
from bot.sandbox.text_view import literal_text, render, render_view
from bot.sandbox.workspace import Workspace
from tests.bot.sandbox.conftest import CHANNEL, make_card, modal, plain

HOSTILE = "<!channel> <@U0BOSS> <https://evil.example|View ticket> `*x*` &lt;b&gt; &amp;amp;\n\t x "


def test_a_card_reads_top_to_bottom() -> None:
    card = make_card(body="Dear Pat,\n\nclosed.\n")
    card[2]["elements"][0]["confirm"] = {
        "title": plain("Send?"),
        "text": plain("To pat@cust.example"),
        "confirm": plain("Yes"),
        "deny": plain("No"),
    }
    assert render(card) == (
        "# Close ticket 4101\n"
        "```\n"
        "Dear Pat,\n\nclosed.\n\n"
        "```\n"
        "[Approve](asks: Send? To pat@cust.example)"
    )


def test_every_kind_of_block_is_shown() -> None:
    blocks: list[Json] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": "a &amp; b"},
         "fields": [plain("field")], "accessory": {"type": "image", "alt_text": "cat"}},
        {"type": "context", "elements": [plain("small"), {"type": "image", "alt_text": "dog"}]},
        {"type": "divider"},
        {"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [
                {"type": "user", "user_id": "U1"}, {"type": "text", "text": " on "},
                {"type": "date", "timestamp": 0, "format": "{date}", "fallback": "1970"},
                {"type": "link", "url": "https://x.example", "text": "here"}]},
            {"type": "rich_text_list", "style": "bullet", "elements": [
                {"type": "rich_text_section", "elements": [{"type": "text", "text": "one"}]}]},
            {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said"}]}]},
        {"type": "table", "rows": [[{"type": "raw_text", "text": "old"},
                                    {"type": "raw_text", "text": "new"}]]},
        {"type": "plan", "title": "Steps", "tasks": [
            {"type": "task_card", "task_id": "1", "title": "Read", "status": "complete",
             "details": {"type": "rich_text", "elements": [{"type": "rich_text_section",
                 "elements": [{"type": "text", "text": "twice"}]}]}}]},
    ]  # fmt: skip
    assert render(blocks).splitlines() == [
        "a & b",
        "  field",
        "(image: cat)",
        "· small (image: dog)",
        "---",
        "@U1 on 1970here <https://x.example>",
        "- one",
        "> said",
        "| old | new |",
        "Steps",
        "(complete) Read — twice",
    ]


def test_a_view_reads_with_its_buttons() -> None:
    assert render_view(modal()) == ("═ Review ═\nReason: <plain_text_input>\n[Back] [Approve]")


def test_literal_text_is_exactly_what_was_put_in() -> None:
    assert literal_text(make_card(body=HOSTILE)) == HOSTILE
    assert literal_text([{"type": "section", "text": plain(HOSTILE)}]) == HOSTILE
    two = [*make_card(1, "a"), *make_card(2, "b")]
    assert literal_text(two) == "ab"
    assert literal_text(two, block_id="body.2") == "b"


async def test_preformatted_and_plain_text_ping_nobody_and_link_nowhere(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    blocks = [{"type": "section", "text": plain(HOSTILE)}, *make_card(body=HOSTILE)]
    await client.chat_postMessage(channel=CHANNEL, text="card", blocks=blocks)
    [message] = workspace.visible(CHANNEL)
    assert pings(message) == []
    assert links(message) == []


async def test_text_and_mrkdwn_ping_and_link(client: AsyncWebClient, workspace: Workspace) -> None:
    section = {"type": "section", "text": {"type": "mrkdwn", "text": HOSTILE}}
    await client.chat_postMessage(channel=CHANNEL, text=HOSTILE, blocks=[section])
    [message] = workspace.visible(CHANNEL)
    assert pings(message) == ["!channel", "@U0BOSS"] * 2
    assert links(message) == [Link("https://evil.example", "View ticket")] * 2


async def test_bare_urls_and_names_depend_on_how_the_message_was_sent(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    text = "see https://x.example @here"
    await client.chat_postMessage(channel=CHANNEL, text=text)
    await client.chat_postMessage(channel=CHANNEL, text=text, link_names=True)
    await client.chat_postMessage(channel=CHANNEL, text=text, parse="none")
    usual, named, unparsed = workspace.visible(CHANNEL)
    assert (pings(usual), links(usual)) == ([], [Link("https://x.example")])
    assert pings(named) == ["!here"]
    assert (pings(unparsed), links(unparsed)) == ([], [])


async def test_rich_elements_ping_and_link_by_what_they_are(
    client: AsyncWebClient, workspace: Workspace
) -> None:
    parts = [
        {"type": "user", "user_id": "U0REVIEWER"},
        {"type": "broadcast", "range": "here"},
        {"type": "link", "url": "https://x.example/t?id=1&tab=2", "text": "#4101"},
    ]
    rich = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": parts}]}
    await client.chat_postMessage(channel=CHANNEL, text="t", blocks=[rich])
    [message] = workspace.visible(CHANNEL)
    assert pings(message) == ["@U0REVIEWER", "!here"]
    assert links(message) == [Link("https://x.example/t?id=1&tab=2", "#4101")]

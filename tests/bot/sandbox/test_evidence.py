"""The record answers: who approved, and what exactly stood above the button."""

from __future__ import annotations

from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.evidence import clicks
from bot.sandbox.slack_server import SlackServer
from tests.bot.sandbox.bot_double import BotDouble
from tests.bot.sandbox.conftest import CHANNEL, make_card

BODY = "Dear Pat,\n\t<b>&amp; 900 EUR</b> \n"


async def test_a_click_is_evidence_of_the_bytes_it_stood_under(
    slack: SlackServer, client: AsyncWebClient, bot: BotDouble
) -> None:
    card = await client.chat_postMessage(channel=CHANNEL, text="t", blocks=make_card(1, BODY))
    ts = card["ts"]
    await client.chat_update(channel=CHANNEL, ts=ts, text="t", blocks=make_card(2, "Other"))
    await slack.workspace.person("U0REVIEWER").click(CHANNEL, ts, "approve", revision=0)
    bot.answers(500)
    await slack.workspace.person("U0SECOND").click(CHANNEL, ts, "approve")
    stale, refused = clicks(slack.record, "approve")
    assert (stale.user, stale.value, stale.literal) == ("U0REVIEWER", "op:1", BODY)
    assert (stale.status, stale.sees) == (200, "nothing")
    assert (refused.user, refused.literal) == ("U0SECOND", "Other")
    assert (refused.status, refused.sees) == (500, "warning sign")
    assert clicks(slack.record, "reject") == []

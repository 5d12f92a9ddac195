"""Slack is asked no faster than it documents, unless an operator says that it may be."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.config import bot_settings
from bot.slack_pace import SLACK_PACES, slack_paces
from executor.config import SettingsInvalid

SETTINGS = {
    "SIGNOFF_POLICY": "/etc/signoff/policy.toml",
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "secret",
}
A_MINUTE = timedelta(minutes=1)


def test_a_channel_gets_at_most_a_message_a_second_and_never_two_at_once() -> None:
    assert SLACK_PACES.post.every >= timedelta(seconds=1)
    assert SLACK_PACES.post.at_once == 1


def test_tier_3_is_fifty_a_minute_for_decided_cards_and_others_together() -> None:
    for pace in (SLACK_PACES.updates, SLACK_PACES.updates_decided, SLACK_PACES.searches):
        assert A_MINUTE / pace.every <= 50
    assert SLACK_PACES.updates_decided.every == SLACK_PACES.updates.every, "they share a row"
    assert SLACK_PACES.updates_decided.ahead > SLACK_PACES.updates.ahead


def test_an_operator_can_say_that_slack_takes_more() -> None:
    assert bot_settings(SETTINGS).slack_pace == 1
    assert slack_paces(1) == SLACK_PACES
    faster = slack_paces(bot_settings({**SETTINGS, "SIGNOFF_SLACK_PACE": "4"}).slack_pace)
    assert faster.post.every == SLACK_PACES.post.every / 4
    assert faster.updates.every == faster.updates_decided.every == SLACK_PACES.updates.every / 4


@pytest.mark.parametrize("pace", ["0", "-1", "1000", "fast"])
def test_a_pace_that_makes_no_sense_is_refused(pace: str) -> None:
    with pytest.raises(SettingsInvalid, match="SIGNOFF_SLACK_PACE"):
        bot_settings({**SETTINGS, "SIGNOFF_SLACK_PACE": pace})

"""What was typed is found again behind Slack's encoding, exactly once."""

from __future__ import annotations

import pytest
from hypothesis import given

from bot.mrkdwn import escape_mrkdwn
from bot.typed_text import as_typed
from tests.support.hostile import texts


@given(texts)
def test_b032_what_slack_encodes_is_decoded_once(typed: str) -> None:
    assert as_typed(escape_mrkdwn(typed)) == typed


@pytest.mark.parametrize(
    ("encoded", "typed"),
    [
        ("tell <@U0REVIEWER|rene> &amp; co", "tell @rene & co"),
        ("tell <@U0REVIEWER>", "tell <@U0REVIEWER>"),
        ("in <#C0APPROVALS|approvals>", "in #approvals"),
        ("<!here> and <!subteam^S0|@leads>", "@here and @leads"),
        ("see <https://a.example/?x=1&amp;y=2>", "see https://a.example/?x=1&y=2"),
        ("see <http://a.example|a.example>", "see a.example"),
        ("see <https://evil.example|a.example>", "see a.example (https://evil.example)"),
        ("<mailto:pat@cust.example|pat@cust.example>", "pat@cust.example"),
        ("&amp;lt;b&amp;gt;", "&lt;b&gt;"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("&quot; &copy; &", "&quot; &copy; &"),
    ],
)
def test_mentions_and_links_become_what_was_typed(encoded: str, typed: str) -> None:
    assert as_typed(encoded) == typed

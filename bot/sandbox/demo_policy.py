"""The policy of the demo: the commented example, with the sandbox's people and places put in."""

from __future__ import annotations

from bot.policy_example import policy_example
from bot.sandbox import seed
from bot.sandbox.outside_model import OUTSIDE_MODEL

CARDS_CHANNEL = "C0APPROVALS"
APPROVERS = ("U0REVIEWER", "U0SECOND")
_EVERYONE = (
    'requesters = "everyone"         # every full member of the workspace; or a list such as '
    '["U0123ABCD"]'
)
_PRICED = (
    '# [prices."my-local-model"]\n# input_usd_per_million = 0.10\n# output_usd_per_million = 0.40'
)
_DECIDE_WITHIN = "decide_within_seconds = 86400"


def demo_policy(*, decide_within_seconds: int = 86_400) -> str:
    """Write the policy file of a demo as TOML."""
    names = ", ".join(f'"{user}"' for user in APPROVERS)
    agent = seed.agent().user_id
    # Everybody but our own bot may try; who is no full member is still told why they may not.
    asking = ", ".join(f'"{u.id}"' for u in seed.users() if u.id == agent or not u.is_bot)
    text = policy_example()
    for written, wanted in (
        ('team = "T0123ABCD"', f'team = "{seed.team().id}"'),
        ('channel = "C0123ABCD"', f'channel = "{CARDS_CHANNEL}"'),
        ('approvers = ["U0123ABCD", "U0456EFGH"]', f"approvers = [{names}]"),
        (_EVERYONE, f"requesters = [{asking}]"),
        ('# agents = ["U0789IJKL"]', f'agents = ["{agent}"]'),
        # Of the demo's desks GitHub mails as well, and there is no way to keep it from that.
        ("allow_desk_notification = false", "allow_desk_notification = true"),
        # What the scripted model costs, also behind a double of a provider.
        (
            _PRICED,
            f'[prices."{OUTSIDE_MODEL}"]\ninput_usd_per_million = 3\noutput_usd_per_million = 15',
        ),
        (_DECIDE_WITHIN, f"decide_within_seconds = {decide_within_seconds}"),
    ):
        assert written in text, f"the example policy no longer says {written}"
        text = text.replace(written, wanted)
    return text

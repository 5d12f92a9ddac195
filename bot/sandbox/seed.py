"""The demo's cast. The names are fixed: documentation, page and tests speak of them."""

from __future__ import annotations

from bot.sandbox.model import Channel, Installation, Team, User

BOT_TOKEN = "xoxb-sandbox-signoff"  # noqa: S105  (opens nothing but this sandbox)
APP_TOKEN = "xapp-sandbox-signoff"  # noqa: S105  (likewise)
SIGNING_SECRET = "sandbox-signing-secret"  # noqa: S105  (signs nothing but this sandbox)
REVIEWERS = "S0REVIEWERS"
SCOPES = frozenset(
    {
        "app_mentions:read",
        "channels:history",
        "channels:read",
        "chat:write",
        "commands",
        "groups:history",
        "groups:read",
        "metadata.message:read",
        "team:read",
        "usergroups:read",
        "users:read",
    }
)

_HOME = "TSIGNOFF"
_OUTSIDE = "TOUTSIDE"


def team() -> Team:
    return Team(_HOME, "Acme Support", "acme-support")


def other_teams() -> list[Team]:
    return [Team(_OUTSIDE, "Otherwhere Ltd", "otherwhere")]


def app() -> Installation:
    return Installation(_HOME, "U0SIGNOFF", "B0SIGNOFF", "A0SIGNOFF", SCOPES)


def agent() -> Installation:
    """Another app in the workspace, whose bot asks ours for things."""
    return Installation(_HOME, "U0AGENT", "B0AGENT", "A0AGENT", frozenset())


def users() -> list[User]:
    """Otto is from a connected workspace, though the channels carry no shared flag."""
    return [
        User("U0REQUESTER", _HOME, "riko", "Riko Requester", "Support agent"),
        User("U0REVIEWER", _HOME, "rene", "Rene Reviewer", "Team lead"),
        User("U0SECOND", _HOME, "sam", "Sam Second reviewer", "Team lead"),
        User("U0OUTSIDER", _OUTSIDE, "otto", "Otto Outsider", "Partner"),
        User("U0GUEST", _HOME, "gus", "Gus Guest", "Contractor", is_restricted=True),
        User("U0SIGNOFF", _HOME, "signoff", "Signoff", "App", is_bot=True),
        User("U0AGENT", _HOME, "desk-agent", "Desk Agent", "AI agent", is_bot=True),
    ]


def channels() -> list[Channel]:
    everyone = {user.id for user in users()}
    return [
        Channel("C0APPROVALS", "approvals", members=set(everyone)),
        Channel("C0SUPPORT", "support", members=set(everyone)),
    ]

"""The events that the app subscribes to beside mentions, by their names (docs.slack.dev, 2026)."""

from __future__ import annotations

HOME_EVENT = "app_home_opened"
PEOPLE_EVENTS = ("user_change", "team_join")
GROUP_EVENTS = ("subteam_updated", "subteam_members_changed")
WORKSPACE_EVENTS = (
    "app_uninstalled",
    "tokens_revoked",
    "channel_archive",
    "group_archive",
    "channel_deleted",
    "group_deleted",
    "channel_shared",
    "member_left_channel",
    "channel_unarchive",
    "channel_unshared",
    "group_unarchive",
    "member_joined_channel",
)
"""Those that close a place for cards, and those that may heal one."""

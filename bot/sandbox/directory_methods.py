"""auth.test, team.info, users.info, usergroups.users.list: who is who."""

from __future__ import annotations

from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.model import Json, User


def auth_test(call: ApiCall) -> Json:
    workspace = call.workspace
    enterprise = workspace.team.enterprise_id
    shown: Json = {
        "url": f"https://{workspace.team.domain}.slack.com/",
        "team": workspace.team.name,
        "user": workspace.users[call.caller.user_id].name,
        "team_id": enterprise if workspace.org_wide else call.caller.team_id,
        "user_id": call.caller.user_id,
        "bot_id": call.caller.bot_id,
        "is_enterprise_install": workspace.org_wide,
    }
    return shown | ({"enterprise_id": enterprise} if enterprise else {})


def bots_info(call: ApiCall) -> Json:
    app = call.caller
    if call.text("bot") != app.bot_id:
        raise ApiError("bot_not_found")
    name = call.workspace.users[app.user_id].name
    return {
        "bot": {
            "id": app.bot_id,
            "deleted": False,
            "name": name,
            "app_id": app.app_id,
            "user_id": app.user_id,
        }
    }


def team_info(call: ApiCall) -> Json:
    team = call.workspace.teams.get(call.text("team") or call.workspace.team.id)
    if team is None:
        raise ApiError("team_not_found")
    return {"team": {"id": team.id, "name": team.name, "domain": team.domain}}


def users_info(call: ApiCall) -> Json:
    user = call.workspace.users.get(call.text("user"))
    if user is None:
        raise ApiError("user_not_found")
    if user.hidden:
        raise ApiError("user_not_visible")
    return {"user": user_json(user)}


def user_json(user: User) -> Json:
    """Return a user as users.info shows it."""
    shown: Json = {
        "id": user.id,
        "team_id": user.team_id,
        "name": user.name,
        "real_name": user.real_name,
        "deleted": user.deleted,
        "tz": user.tz,
        "profile": {
            "real_name": user.real_name,
            "display_name": user.name,
            "title": user.title,
            "team": user.team_id,
        },
        "is_bot": user.is_bot,
        "is_app_user": user.is_app_user,
        "is_stranger": user.is_stranger,
    }
    if user.is_member:
        shown |= {
            "is_restricted": user.is_restricted,
            "is_ultra_restricted": user.is_ultra_restricted,
            "is_admin": user.is_admin,
            "is_owner": False,
        }
    if user.enterprise_id:
        shown["enterprise_user"] = {
            "id": user.id,
            "enterprise_id": user.enterprise_id,
            "enterprise_name": "Acme Holding",
            "is_admin": False,
            "is_owner": False,
            "teams": list(user.teams),
        }
    return shown


def usergroup_users(call: ApiCall) -> Json:
    if not call.workspace.paid_plan:
        raise ApiError("plan_upgrade_required")
    if call.workspace.org_wide and not call.text("team_id"):
        raise ApiError("missing_argument")
    group = call.workspace.usergroups.get(call.text("usergroup"))
    if group is None:
        raise ApiError("no_such_subteam")
    include_disabled = call.flag("include_disabled")
    users = call.workspace.users
    return {"users": [u for u in group if include_disabled or not users[u].deleted]}

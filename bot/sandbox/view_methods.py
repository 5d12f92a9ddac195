"""views.*: modals and Home tabs. `views.update` with an old hash is refused, never merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.sandbox.api_call import ApiCall, ApiError
from bot.sandbox.blocks import validate_view, view_too_large
from bot.sandbox.message_body import refuse_blocks
from bot.sandbox.model import Json, OpenView
from bot.sandbox.payloads import view_json

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace

MAX_STACK = 3


def open_view(call: ApiCall) -> Json:
    view = _view(call)
    opened = call.workspace.open_view(_screen_of(call), view)
    return {"view": view_json(call.workspace, opened)}


def push(call: ApiCall) -> Json:
    view = _view(call)
    user = _screen_of(call)
    if len(call.workspace.views.get(user, [])) >= MAX_STACK:
        raise ApiError("push_limit_reached")
    opened = call.workspace.open_view(user, view, push=True)
    return {"view": view_json(call.workspace, opened)}


def update(call: ApiCall) -> Json:
    view = _view(call)
    opened = _addressed(call)
    given = call.text("hash")
    if given and given != opened.hash:
        raise ApiError("hash_conflict")
    call.workspace.update_view(opened, view)
    return {"view": view_json(call.workspace, opened)}


def publish(call: ApiCall) -> Json:
    """Show a Home tab to one user, in place of the one before."""
    if not call.workspace.has_home_tab:
        raise ApiError("not_enabled")
    view = _view(call, kind="home")
    user = call.text("user_id")
    if user not in call.workspace.users:
        raise ApiError("user_not_found")
    shown, given = call.workspace.homes.get(user), call.text("hash")
    if shown is not None and given and given != shown.hash:
        raise ApiError("hash_conflict")
    return {"view": view_json(call.workspace, show_home(call.workspace, user, view))}


def show_home(workspace: Workspace, user: str, view: Json) -> OpenView:
    """Put a view where the user's Home tab is; the tab keeps its id."""
    home = workspace.homes.get(user)
    if home is None:
        view_id = workspace.new_id("V0HOME")
        home = OpenView(view_id, user, view, "", root_view_id=view_id, kind="home")
        workspace.homes[user] = home
    workspace.update_view(home, view)
    return home


def checked_view(view: object, kind: str = "modal") -> Json:
    """Return the view if Slack would show it, else raise ApiError."""
    if not isinstance(view, dict) or view.get("type") != kind:
        raise ApiError("invalid_arguments")
    errors = validate_view(view)
    if errors:
        refusal = refuse_blocks(errors)
        raise ApiError("invalid_arguments", **refusal.more)
    if view_too_large(view):
        raise ApiError("view_too_large")
    return view


def _view(call: ApiCall, kind: str = "modal") -> Json:
    return checked_view(call.decoded("view", "invalid_arguments"), kind)


def _screen_of(call: ApiCall) -> str:
    """Spend the trigger id; like Slack, only after the view itself was found good."""
    answer = call.workspace.triggers.exchange(call.text("trigger_id"), call.workspace.now())
    if isinstance(answer, tuple):
        raise ApiError(answer[1])
    return answer


def _addressed(call: ApiCall) -> OpenView:
    view_id, external_id = call.text("view_id"), call.text("external_id")
    everywhere = [v for stack in call.workspace.views.values() for v in stack]
    if view_id:
        found = call.workspace.view(view_id)
    elif external_id:
        found = next((v for v in everywhere if v.view.get("external_id") == external_id), None)
    else:
        raise ApiError("invalid_arguments")
    if found is None:
        raise ApiError("not_found")
    return found

"""What the bot's answer does to the screen of the person who acted.

Source: Slack, "Acknowledging", "Slash commands", "Modals: response_action"; the failure texts are
those reported in node-slack-sdk#2095 and Netflix/dispatch#2848.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bot.sandbox.api_call import ApiError
from bot.sandbox.delivery import Delivery, Sees
from bot.sandbox.message_body import checked_blocks
from bot.sandbox.model import Json, OpenView
from bot.sandbox.text_view import render_message
from bot.sandbox.view_methods import MAX_STACK, checked_view

if TYPE_CHECKING:
    from bot.sandbox.workspace import Workspace


def apply(workspace: Workspace, delivery: Delivery) -> None:
    """Change the workspace as the answer asks and note in `delivery` what the person sees."""
    match delivery.request.kind:
        case "block_actions":
            if not delivery.acknowledged:
                delivery.sees = Sees.WARNING_SIGN
        case "slash":
            _apply_slash(workspace, delivery)
        case "view_submission":
            _apply_submission(workspace, delivery)
        case "view_closed" | "event":
            pass


def _apply_slash(workspace: Workspace, delivery: Delivery) -> None:
    if delivery.timed_out:
        delivery.sees = Sees.OPERATION_TIMEOUT
        return
    if not delivery.acknowledged:
        delivery.sees = Sees.DISPATCH_FAILED
        return
    if not delivery.body.strip():
        return
    answer = _json_answer(delivery) or {"text": delivery.body}
    text, blocks = str(answer.get("text") or ""), answer.get("blocks") or []
    try:
        blocks = checked_blocks(blocks) if blocks else []
    except ApiError as refusal:
        delivery.sees, delivery.said = Sees.DISPATCH_FAILED, refusal.error
        return
    channel, user = delivery.request.context["channel"], delivery.request.user
    if answer.get("response_type") == "in_channel":
        workspace.post(channel, workspace.app.user_id, text, blocks, app=workspace.app)
        delivery.sees, delivery.said = Sees.IN_CHANNEL, render_message(text, blocks)
    elif text or blocks:
        workspace.whisper(channel, user, text, blocks)
        delivery.sees, delivery.said = Sees.EPHEMERAL, render_message(text, blocks)


def _apply_submission(workspace: Workspace, delivery: Delivery) -> None:
    opened = workspace.view(delivery.request.context["view_id"])
    if not delivery.acknowledged:
        delivery.sees = Sees.TROUBLE_CONNECTING
        return
    if opened is None:
        return
    answer = _json_answer(delivery)
    if answer is None and delivery.body.strip():
        delivery.sees = Sees.TROUBLE_CONNECTING
        return
    try:
        _respond(workspace, delivery, opened, answer or {})
    except ApiError as refusal:
        delivery.sees, delivery.said = Sees.TROUBLE_CONNECTING, refusal.error


def _respond(workspace: Workspace, delivery: Delivery, opened: OpenView, answer: Json) -> None:
    match answer.get("response_action"):
        case None:
            workspace.close_view(opened)
        case "clear":
            workspace.close_view(opened, whole_stack=True)
        case "errors":
            delivery.view_errors = _errors(opened, answer.get("errors"))
            delivery.sees = Sees.VIEW_ERRORS
            delivery.said = "; ".join(delivery.view_errors.values())
        case "update":
            workspace.update_view(opened, checked_view(answer.get("view")))
            delivery.sees = Sees.VIEW_CHANGED
        case "push":
            if len(workspace.views.get(opened.user, [])) >= MAX_STACK:
                raise ApiError("push_limit_reached")
            workspace.open_view(opened.user, checked_view(answer.get("view")), push=True)
            delivery.sees = Sees.VIEW_CHANGED
        case _:
            raise ApiError("invalid_response_action")


def _errors(opened: OpenView, errors: object) -> dict[str, str]:
    """Return the errors if each belongs to an input block that is there; Slack shows no others."""
    inputs = {b["block_id"] for b in opened.view["blocks"] if b["type"] == "input"}
    if not isinstance(errors, dict) or not errors or not set(errors) <= inputs:
        raise ApiError("invalid_errors")
    return {block_id: str(message) for block_id, message in errors.items()}


def _json_answer(delivery: Delivery) -> Json | None:
    if not delivery.headers.get("content-type", "").startswith("application/json"):
        return None
    try:
        answer = json.loads(delivery.body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None

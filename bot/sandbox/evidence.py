"""What the record proves about decisions: who pressed what, and which bytes were before them.

An approval that no click in this list accounts for was never given in this workspace.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox.model import Json
from bot.sandbox.record import Record
from bot.sandbox.text_view import literal_text


@dataclass(frozen=True)
class Click:
    """One press that was sent to the bot. `literal` is the untrusted text that it stood under."""

    user: str
    at: float
    action_id: str
    value: str | None
    channel: str | None
    ts: str | None
    literal: str
    status: int | None
    sees: str


def clicks(record: Record, action_id: str | None = None) -> list[Click]:
    """Return every delivered press, in order; replays and copies are presses of their own."""
    acks: dict[int, Json] = {e.data["delivery"]: e.data for e in record.acks("block_actions")}
    found = []
    for entry in record.deliveries("block_actions"):
        payload = entry.data["payload"]
        ack = acks.get(entry.data["delivery"], {"status": None, "sees": "not yet known"})
        shown = payload.get("message") or payload.get("view") or {}
        found += [
            Click(
                user=payload["user"]["id"],
                at=entry.at,
                action_id=action["action_id"],
                value=action.get("value"),
                channel=payload["container"].get("channel_id"),
                ts=payload["container"].get("message_ts"),
                literal=literal_text(shown.get("blocks", [])),
                status=ack["status"],
                sees=ack["sees"],
            )
            for action in payload["actions"]
            if action_id in (None, action["action_id"])
        ]
    return found

"""The sandbox's messages over a restart: one JSON file, written whole and then put in place.

Only what Slack itself would keep is kept: messages with their revisions. What was whispered to one
person and modals that were open are gone, as they are when a real client is started again.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path

from bot.sandbox.kept_file import read_kept, write_kept
from bot.sandbox.model import Json, Message, Revision
from bot.sandbox.workspace import Workspace

SAVE_SECONDS = 0.5
"""Changes within this time are written together."""

MOST_MESSAGES = 5_000
"""Messages of a channel that are kept; the newest ones."""


def load(workspace: Workspace, file: Path) -> int:
    """Put the messages of an earlier sandbox into a new workspace; returns how many."""
    stored = read_kept(file)
    if stored is None:
        return 0
    messages = [_message(fields) for fields in stored["messages"]]
    for message in messages:
        workspace.messages.setdefault(message.channel, {})[message.ts] = message
    workspace.changed()
    return len(messages)


def save(workspace: Workspace, file: Path) -> None:
    """Write every message that is left."""
    kept = [
        asdict(message)
        for channel in workspace.channels
        for message in workspace.visible(channel)[-MOST_MESSAGES:]
    ]
    write_kept(file, {"messages": kept})


async def keep(workspace: Workspace, file: Path) -> None:
    """Save after each change, until cancelled or the workspace closes; then save once more."""
    seen = -1
    try:
        while not workspace.closed:
            if workspace.version != seen:
                seen = workspace.version
                save(workspace, file)
            await asyncio.sleep(SAVE_SECONDS)
            await workspace.next_change(seen)
    finally:
        save(workspace, file)


def _message(fields: Json) -> Message:
    revisions = [Revision(**revision) for revision in fields.pop("revisions")]
    return Message(revisions=revisions, **fields)

"""The menu behind a full row of buttons: each choice is answered as its button would be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from slack_bolt.async_app import AsyncAck

from bot.listeners.clicks import read_click
from bot.listeners.pressing import Outdated
from bot.operation_value import choice_of

Listener = Callable[[AsyncAck, dict[str, Any], Mapping[str, Any]], Awaitable[None]]


class Menu:
    """Hands each choice to the listener of its action; ``outdated`` answers any other."""

    def __init__(self, listeners: Mapping[str, Listener], outdated: Outdated) -> None:
        self._listeners = listeners
        self._outdated = outdated

    async def chosen(self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]) -> None:
        """Answer one choice."""
        click = read_click(body)
        option = None if click is None else click.action.selected_option
        named = None if option is None else choice_of(option.value)
        listener = None if named is None else self._listeners.get(named[0])
        if named is None or listener is None:
            await self._outdated(ack, body)
            return
        [pressed] = body["actions"]
        action, value = named
        as_pressed = {**pressed, "action_id": action, "value": value}
        await listener(ack, {**body, "actions": [as_pressed]}, context)

"""How a person says in Slack what became of something: a button, a form, perhaps a note.

What Slack shows as failed was not recorded; the person does it again, as people do.
"""

from __future__ import annotations

from bot.sandbox.delivery import Delivery
from bot.sandbox.model import Message, OpenView
from tests.support.bot_harness import Harness

MOST_TRIES = 5
_NOT_TAKEN = "Nothing was recorded"


async def open_form(h: Harness, who: str, card: Message, action: str) -> OpenView:
    """Press a word's button and return the form that it opens."""
    person = h.person(who)
    before = person.view()
    for _ in range(MOST_TRIES):
        await person.click(card.channel, card.ts, action)
        opened = person.view()
        if opened is not None and opened is not before:
            return opened
    raise AssertionError(f"{action} opened no form for {who}; shown:\n{h.workspace.shown()}")


async def press(
    h: Harness, who: str, card: Message, action: str, *, revision: int | None = None
) -> None:
    """Press a button of a card until Slack shows that it was taken."""
    for _ in range(MOST_TRIES):
        pressed = await h.person(who).click(card.channel, card.ts, action, revision=revision)
        if pressed.acknowledged:
            return
    raise AssertionError(f"{action} of {who} was not taken: {pressed}")


async def submit_form(h: Harness, who: str, form: OpenView, note: str | None = None) -> Delivery:
    """Submit a form, with a note or without."""
    values = {} if note is None else {"note": {"text": note}}
    for _ in range(MOST_TRIES):
        delivery = await h.person(who).submit_view(form.id, values)
        told = delivery.view_errors.get("note", "")
        if delivery.acknowledged and not told.startswith(_NOT_TAKEN):
            return delivery
    raise AssertionError(f"the form of {who} was not taken: {delivery}")


async def say(h: Harness, who: str, card: Message, action: str, note: str | None = None) -> None:
    """Give a word, as somebody does who presses the button and submits its form."""
    form = await open_form(h, who, card, action)
    delivery = await submit_form(h, who, form, note)
    assert delivery.view_errors == {}, delivery.view_errors

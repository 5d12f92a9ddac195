"""The people of a demo without a person: they type, click and read as people in Slack do.

What Slack showed as failed they do again; what was acknowledged they do not. They see only what the
workspace shows.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from bot.button_value import ButtonValue
from bot.sandbox.delivery import Delivery
from bot.sandbox.demo_policy import CARDS_CHANNEL
from bot.sandbox.interaction import Person
from bot.sandbox.model import Json, Message
from bot.sandbox.payloads import NothingToClick
from bot.sandbox.stage import Stage, StageFailed
from bot.sandbox.text_view import render_message
from bot.sandbox.workspace import Workspace

ASKED_IN = "C0SUPPORT"
COMMAND = "/signoff"
MOST_TRIES = 5
SEEN = "It stands in the mailbox."
QUESTION = "Why this amount?"
REASON = "Please make it shorter, and apologise for the wait."

_PATIENCE_SECONDS = 3_600.0
"""Longer than any demo: its one overall time limit ends every wait."""

_RUN = re.compile(r"\brun_(\d+)\b")


@dataclass(frozen=True)
class Card:
    """A card with buttons, as it stood when it was looked at."""

    operation: UUID
    ts: str
    revision: int
    blocks: list[Json]


class ScriptedPeople:
    """Riko, who asks, and Rene, who decides."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._workspace: Workspace = stage.workspace
        self._requester: Person = stage.workspace.person("U0REQUESTER")
        self._reviewer: Person = stage.workspace.person("U0REVIEWER")

    async def ask(self, goal: str) -> None:
        """Ask for a run by the slash command."""
        said = await self._insist(
            f"the answer to {COMMAND} run",
            lambda: self._requester.slash(ASKED_IN, COMMAND, f"run {goal}"),
        )
        if _RUN.search(said.said or "") is None:
            raise StageFailed(f"the bot started no run; it said: {said.said!r}")

    async def mention(self, goal: str) -> None:
        """Ask for a run by naming the bot; what failed Slack delivers again by itself."""
        first = await self._stage.wait(
            "the answer to a mention",
            self._requester.mention(ASKED_IN, goal, retries=False),
        )
        delivery, tries = first, 1
        while not delivery.acknowledged:
            if tries == MOST_TRIES:
                raise StageFailed(f"the mention was not acknowledged: {delivery.sees.value}")
            await self._stage.wait("the bot to be ready again", self._stage.bot_is_ready())
            delivery = await self._stage.wait(
                "the answer to the mention's redelivery", self._requester.redeliver(first, tries)
            )
            tries += 1

    async def cancel(self, run: int) -> None:
        """Cancel a run."""
        await self._insist(
            f"the answer to {COMMAND} cancel",
            lambda: self._requester.slash(ASKED_IN, COMMAND, f"cancel run_{run}"),
        )

    def cards(self) -> list[Card]:
        """Return the cards that can be approved now, oldest first."""
        return _cards(self._workspace)

    async def wait_for_card(self, *known: UUID) -> Card:
        """Wait until a card asks for approval of an operation that is not among ``known``."""

        def find(workspace: Workspace) -> Card | None:
            new = [card for card in _cards(workspace) if card.operation not in known]
            return new[-1] if new else None

        await self._stage.wait(
            "a card that asks for approval", self._workspace.wait_for(find, _PATIENCE_SECONDS)
        )
        found = find(self._workspace)
        assert found is not None, "nothing ran since it was found"
        return found

    async def approve(self, card: Card, *, as_seen_at_first: bool = False) -> None:
        """Click Approve; ``as_seen_at_first`` is a client that missed all later changes."""
        await self._insist(
            "the answer to the click on Approve",
            lambda: self._reviewer.click(
                CARDS_CHANNEL,
                card.ts,
                "approve",
                revision=card.revision if as_seen_at_first else None,
            ),
        )

    async def settle(self, card: Card) -> None:
        """Wait until the card says that nobody knows, look for the email, and say it was sent."""
        await self.wait_until_shown(CARDS_CHANNEL, card.ts, "say below what happened")
        await self._fill_in(card, "settle_sent", SEEN)

    async def reject(self, card: Card, reason: str) -> None:
        """Click Reject, type a reason into the modal that opens, and submit it."""
        await self._fill_in(card, "reject", reason)

    async def ask_agent(self, card: Card) -> None:
        """Click Ask, type a question, submit it, and wait for the agent's answer."""
        await self._fill_in(card, "ask", QUESTION)
        await self.wait_until_shown(CARDS_CHANNEL, card.ts, "Answered by the agent")

    async def withdraw(self, card: Card) -> None:
        """Click Withdraw, as the one who asked for it."""
        await self._insist(
            "the answer to the click on Withdraw",
            lambda: self._requester.click(CARDS_CHANNEL, card.ts, "withdraw"),
        )

    async def _fill_in(self, card: Card, action: str, text: str) -> None:
        """Click a button, type into the one text field of the modal that opens, and submit it."""
        await self._insist(
            f"the answer to the click on {action}",
            lambda: self._reviewer.click(CARDS_CHANNEL, card.ts, action),
        )
        await self._stage.wait(
            f"the modal that {action} opens",
            self._workspace.wait_for(
                lambda w: w.view_of(self._reviewer.user.id), _PATIENCE_SECONDS
            ),
        )
        opened = self._reviewer.view()
        assert opened is not None, "nothing ran since it was found"
        inputs = [block for block in opened.view["blocks"] if block["type"] == "input"]
        [asked] = [block for block in inputs if block["element"]["type"] == "plain_text_input"]
        typed = {asked["block_id"]: {asked["element"]["action_id"]: text}}
        submitted = await self._insist(
            f"the answer to the modal of {action}",
            lambda: self._reviewer.submit_view(opened.id, typed),
        )
        if submitted.view_errors:
            raise StageFailed(f"what {action} says was refused: {submitted.said}")

    async def wait_until_shown(self, channel: str, ts: str, sentence: str) -> Message:
        """Wait until a message says ``sentence`` and return it."""

        def says(workspace: Workspace) -> bool:
            message = workspace.message(channel, ts)
            return message is not None and sentence in rendered(message)

        await self._stage.wait(
            f"the card to say {sentence!r}", self._workspace.wait_for(says, _PATIENCE_SECONDS)
        )
        found = self._workspace.message(channel, ts)
        assert found is not None, "nothing ran since it was found"
        return found

    async def _insist(self, what: str, act: Callable[[], Awaitable[Delivery]]) -> Delivery:
        """Act, and act again as long as Slack shows that it failed."""
        delivery: Delivery | None = None
        for _ in range(MOST_TRIES):
            try:
                delivery = await self._stage.wait(what, act())
            except NothingToClick:
                # The buttons are gone: our earlier click was recorded, though not acknowledged.
                if delivery is None:
                    raise
                return delivery
            if delivery.acknowledged:
                return delivery
            await self._stage.wait("the bot to be ready again", self._stage.bot_is_ready())
        assert delivery is not None
        raise StageFailed(
            f"{what} failed {MOST_TRIES} times; the last time the person saw: {delivery.sees.value}"
        )


def rendered(message: Message) -> str:
    """Return what a person reads of a message."""
    return render_message(message.text, message.blocks)


def _cards(workspace: Workspace) -> list[Card]:
    read = (_card(message) for message in workspace.visible(CARDS_CHANNEL))
    return [card for card in read if card is not None]


def _card(message: Message) -> Card | None:
    """Read a message as a card that can be approved; ``None`` where it is none."""
    for block in message.blocks:
        if block["type"] != "actions":
            continue
        for element in block["elements"]:
            value = ButtonValue.decode(str(element.get("value", "")))
            if element["action_id"] == "approve" and value is not None:
                return Card(value.operation, message.ts, len(message.revisions) - 1, message.blocks)
    return None

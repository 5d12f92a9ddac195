"""K2 in Slack: the card of a long email has its buttons, and every later drawing is accepted."""

from __future__ import annotations

import pytest

from bot.sandbox.mailbox_faults import Fault, Hang, Point
from executor.domain.operation import OperationStatus
from tests.support.bot_harness import REVIEWER, Harness, proposing
from tests.support.card_reading import action_ids, literals

LAST = "We refund 900 EUR."


@pytest.mark.parametrize(("length", "button"), [(2_990, "approve"), (12_500, "review")])
async def test_b018_the_drawings_after_the_decision_on_a_long_email_are_all_accepted(
    database_url: str, length: int, button: str
) -> None:
    message = ("All is well. " * 1_000)[: length - len(LAST) - 1] + f"\n{LAST}"
    async with Harness(database_url, model=proposing(message=message)) as h:
        await h.start_run("close 4101")
        card = await h.settled_card(predicate=lambda m: button in action_ids(m.blocks))
        rene = h.person(REVIEWER)
        h.mailbox.fail(Fault(Point.FINAL, Hang()))
        await rene.click(card.channel, card.ts, button)
        if button == "review":
            view = rene.view()
            assert view is not None
            assert LAST in "".join(literals(view.view["blocks"]))
            await rene.submit_view(view.id)
        await h.mailbox.wait_for_hang()
        await h.workspace.wait_for(lambda _: action_ids(card.blocks) == [])
        assert await h.operations() == [OperationStatus.EXECUTING]
        h.mailbox.release()
        await h.until_operation(OperationStatus.SUCCEEDED)
        await h.workspace.wait_for(lambda _: "Done." in str(card.blocks))
        assert any(LAST in text for text in literals(card.blocks)), "the end stays to be read"
        drawn = h.slack.record.calls("chat.update")
        assert drawn
        assert [call.data["response"]["ok"] for call in drawn] == [True] * len(drawn)
        assert h.mailbox.accepted == 1

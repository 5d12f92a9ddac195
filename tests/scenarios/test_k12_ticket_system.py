"""K12, as far as the outside desks and their adapters reach: version conflicts and double notices.

``executed`` does what the engine does with a desk: close, read back what proved nothing, and repeat
the same bytes once where the reading allows it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.desk_faults import DeskFault
from bot.sandbox.github_double import GithubDouble
from bot.sandbox.zendesk_account import Triggers
from bot.sandbox.zendesk_double import EMAIL, TOKEN, ZendeskDouble
from executor.adapters.tickets.github_issues import GithubIssues, GithubSettings
from executor.adapters.tickets.zendesk import Zendesk, ZendeskSettings
from executor.domain.effect import Capability, Outcome, OutcomeKind
from executor.engine.desk_port import Finding, OutgoingChange, TicketDesk

MARKER = "signoff-p1"
NOTE = "Refund sent."
SEVEN = 7


@dataclass
class Zendesk4101:
    """Ticket 4101 at version 7, with P1 approved to close it: tag, internal note and status."""

    double: ZendeskDouble
    clock: VirtualClock
    adapter: Zendesk
    approved: OutgoingChange

    @property
    def status(self) -> object:
        return self.double.account.tickets[4101].record["status"]

    @property
    def tags(self) -> object:
        return self.double.account.tickets[4101].record["tags"]

    def notes(self) -> list[str]:
        return [
            event["body"]
            for audit in self.double.account.tickets[4101].audits
            for event in audit["events"]
            if event["type"] == "Comment" and not event["public"]
        ]


@pytest.fixture
async def desk() -> AsyncIterator[Zendesk4101]:
    clock = VirtualClock(1_796_119_200.0)
    async with ZendeskDouble(clock, Triggers(on_solved=True, silent_tag="refund")) as double:
        account = double.account
        account.open_ticket(4101, "Refund", "Money?", name="Pat", email="pat@x.example", tags=())
        for _ in range(SEVEN - 1):
            clock.advance(60)
            account.customer_replies(4101, "Hello?")
        settings = ZendeskSettings(
            url=double.url,
            email=EMAIL,
            api_token=TOKEN,
            notifies_on_close=False,
            closing_tag="refund",
        )
        adapter = Zendesk(settings, longest_request_seconds=10)
        seen = await adapter.read("4101")
        assert seen is not None
        assert seen.ticket.version == SEVEN
        payload = adapter.freeze_close(seen, MARKER, NOTE)
        clock.advance(60)
        yield Zendesk4101(
            double, clock, adapter, OutgoingChange("4101", payload, seen.stamp, MARKER)
        )


async def executed(desk: TicketDesk, change: OutgoingChange) -> Outcome:
    outcome = await desk.close(change)
    for repeats_left in (1, 0):
        if outcome.kind is not OutcomeKind.UNKNOWN:
            return outcome
        found = await desk.read_back(change)
        may_repeat = (
            desk.capability is Capability.CONDITIONAL
            and found.evidence["finding"] == Finding.UNCHANGED.value
        )
        if not may_repeat or not repeats_left:
            return found
        outcome = await desk.close(change)
    return outcome


def is_stale(outcome: Outcome) -> bool:
    return outcome.kind is OutcomeKind.NOT_APPLIED and outcome.evidence["finding"] == "moved"


async def test_b151_a_conflict_leaves_tags_note_and_status_as_they_were(
    desk: Zendesk4101,
) -> None:
    desk.double.account.agent_edits(4101, priority="high")
    assert is_stale(await executed(desk.adapter, desk.approved))
    assert (desk.status, desk.tags, desk.notes()) == ("open", [], [])
    assert desk.double.account.mails == []


async def test_b152_an_agents_parallel_change_survives_and_is_not_retried_over(
    desk: Zendesk4101,
) -> None:
    desk.clock.advance(0.9)
    desk.double.account.agent_edits(4101, assignee_id=77)
    desk.clock.advance(0.1)
    assert is_stale(await executed(desk.adapter, desk.approved))
    assert desk.double.account.tickets[4101].record["assignee_id"] == 77
    assert desk.double.applied == 0


async def test_b153_a_conflict_costs_one_attempt_with_the_approved_version_and_no_other(
    desk: Zendesk4101,
) -> None:
    desk.double.account.agent_edits(4101, subject="Refund (2)")
    assert is_stale(await executed(desk.adapter, desk.approved))
    stamps = [update["updated_stamp"] for update in desk.double.updates]
    assert stamps == [desk.approved.stamp.updated_at]


async def test_b154_a_collision_without_a_change_is_repeated_once_and_ends_done(
    desk: Zendesk4101,
) -> None:
    desk.double.faults.add(DeskFault.COLLISION)
    assert (await executed(desk.adapter, desk.approved)).kind is OutcomeKind.APPLIED
    assert (desk.status, desk.double.applied) == ("solved", 1)
    assert desk.double.faults.counts["change"] == 2


async def test_b154_a_collision_with_a_change_behind_it_ends_stale(desk: Zendesk4101) -> None:
    desk.double.faults.add(DeskFault.COLLISION)
    desk.double.account.agent_edits(4101, priority="high")
    assert is_stale(await executed(desk.adapter, desk.approved))
    assert desk.double.faults.counts["change"] == 1


async def test_b154_collisions_that_go_on_end_unknown_and_not_in_a_loop(
    desk: Zendesk4101,
) -> None:
    desk.double.faults.add(DeskFault.COLLISION, 1)
    desk.double.faults.add(DeskFault.COLLISION, 2)
    assert (await executed(desk.adapter, desk.approved)).kind is OutcomeKind.UNKNOWN
    assert desk.double.faults.counts["change"] == 2


async def test_b156_a_worker_that_dies_in_the_close_leaves_one_note_and_a_closed_ticket(
    desk: Zendesk4101,
) -> None:
    for fault in (DeskFault.RESET_BEFORE, DeskFault.RESET_AFTER):
        desk.double.faults.add(fault)
        await desk.adapter.close(desk.approved)
    assert (await executed(desk.adapter, desk.approved)).kind is OutcomeKind.APPLIED
    assert (desk.status, desk.notes()) == ("solved", [f"{NOTE}\n\n({MARKER})"])


async def test_b156_a_note_that_was_left_before_the_worker_died_is_not_left_again() -> None:
    clock = VirtualClock(1_796_119_200.0)
    async with GithubDouble(clock) as double:
        double.repository.open_issue(4101, "Refund", "Money?", login="pat")
        settings = GithubSettings("acme", "support", token="gh-secret-token", url=double.url)
        seen = await GithubIssues(settings).read("4101")
        assert seen is not None
        clock.advance(60)
        payload = GithubIssues(settings).freeze_close(seen, MARKER, NOTE)
        change = OutgoingChange("4101", payload, seen.stamp, MARKER)
        await GithubIssues(settings).leave_note(change)
        clock.advance(60)

        recovered = GithubIssues(settings)
        assert (await recovered.leave_note(change)).kind is OutcomeKind.APPLIED
        assert (await executed(recovered, change)).kind is OutcomeKind.APPLIED
        assert (double.notes, double.state_changes) == (1, 1)
        assert double.repository.issues[4101].record["state"] == "closed"


async def test_b159_a_customers_reply_stops_the_close_and_is_what_the_card_can_tell(
    desk: Zendesk4101,
) -> None:
    desk.double.account.customer_replies(4101, "still broken")
    now = await desk.adapter.read("4101")
    assert now is not None
    # The reading before the opening sees it already; the desk refuses if it comes after that.
    assert now.stamp != desk.approved.stamp
    assert now.ticket.version == SEVEN + 1
    outcome = await executed(desk.adapter, desk.approved)
    assert is_stale(outcome)
    assert outcome.evidence["changes"] == [{"kind": "customer_message", "author": "Pat"}]
    assert (desk.status, desk.notes(), desk.double.account.mails) == ("open", [], [])

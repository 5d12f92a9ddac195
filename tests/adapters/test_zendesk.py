from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.desk_faults import READ, DeskFault
from bot.sandbox.zendesk_account import Triggers
from bot.sandbox.zendesk_double import EMAIL, TOKEN, ZendeskDouble
from executor.adapters.tickets.zendesk import Zendesk, ZendeskSettings
from executor.domain.effect import Capability, OutcomeKind
from executor.domain.errors import InvalidContent
from executor.domain.stamp import Stamp
from executor.domain.ticket import ChangeKind, TicketStatus
from executor.engine.desk_port import DeskUnavailable, Observation, OutgoingChange, TicketDesk
from executor.engine.promises import guard

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)
MARKER = "signoff-0193aa55"
NINE = 1_796_119_200.0


@dataclass
class Desk:
    """A Zendesk account with ticket 4101 and our adapter before it."""

    double: ZendeskDouble
    clock: VirtualClock
    adapter: Zendesk

    async def seen(self) -> Observation:
        observation = await self.adapter.read("4101")
        assert observation is not None
        return observation

    async def approved(self, note: str = "Refunded in full.") -> OutgoingChange:
        """The close of what is there now, as it would be approved; a minute passes."""
        seen = await self.seen()
        payload = self.adapter.freeze_close(seen, MARKER, note)
        self.clock.advance(60)
        return OutgoingChange("4101", payload, seen.stamp, MARKER)

    @property
    def record(self) -> dict[str, object]:
        return self.double.account.tickets[4101].record


def adapter_to(double: ZendeskDouble, *, bound: float = 10.0, token: str = TOKEN) -> Zendesk:
    settings = ZendeskSettings(
        url=double.url,
        email=EMAIL,
        api_token=token,
        notifies_on_close=False,
        closing_tag="signoff_closed",
    )
    return Zendesk(settings, longest_request_seconds=bound)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = VirtualClock(NINE)
    triggers = Triggers(on_solved=True, silent_tag="signoff_closed")
    async with ZendeskDouble(clock, triggers) as double:
        double.account.open_ticket(
            4101,
            "Refund",
            "Where is my money?",
            name="Pat",
            email="pat@cust.example",
            tags=("vip",),
        )
        clock.advance(600)
        double.account.agent_edits(4101, comment={"body": "Looking.", "public": True})
        double.account.mails.clear()
        clock.advance(600)
        yield Desk(double, clock, adapter_to(double))


@dataclass(frozen=True)
class Case:
    fault: DeskFault
    close: OutcomeKind
    read_back: OutcomeKind
    finding: str
    applied: int = 0
    retryable: bool = False
    retry_after: timedelta | None = None


CASES = [
    Case(DeskFault.REFUSED, NOT_APPLIED, UNKNOWN, "unchanged"),
    Case(DeskFault.STRANGER, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.RESET_BEFORE, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.RESET_AFTER, UNKNOWN, APPLIED, "marker", applied=1),
    Case(DeskFault.HANGS_BEFORE, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.HANGS_AFTER, UNKNOWN, APPLIED, "marker", applied=1),
    Case(DeskFault.ERROR_BEFORE, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.ERROR_AFTER, UNKNOWN, APPLIED, "marker", applied=1),
    Case(DeskFault.CUT_BODY, APPLIED, APPLIED, "marker", applied=1),
    Case(
        DeskFault.LIMITED,
        NOT_APPLIED,
        UNKNOWN,
        "unchanged",
        retryable=True,
        retry_after=timedelta(seconds=37),
    ),
    # Plain text without Retry-After could be anybody's; the same request may be repeated anyway.
    Case(DeskFault.LIMITED_BARE, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.COLLISION, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.LATE, UNKNOWN, UNKNOWN, "unchanged"),
    Case(DeskFault.REPEATED, UNKNOWN, APPLIED, "marker", applied=1),
]


def test_every_fault_has_its_row() -> None:
    assert {case.fault for case in CASES} == set(DeskFault)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault.value)
async def test_every_ending_of_a_close_proves_what_it_can(desk: Desk, case: Case) -> None:
    change = await desk.approved()
    desk.double.faults.add(case.fault)
    hangs = case.fault in (DeskFault.HANGS_BEFORE, DeskFault.HANGS_AFTER)
    adapter = adapter_to(desk.double, bound=0.3) if hangs else desk.adapter
    outcome = await adapter.close(change)
    assert (outcome.kind, outcome.retryable, outcome.retry_after) == (
        case.close,
        case.retryable,
        case.retry_after,
    ), outcome
    assert outcome.evidence["desk"] == desk.adapter.name
    assert desk.double.applied == case.applied
    assert desk.double.faults.counts["change"] == 1
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (case.read_back, case.finding), found
    assert TOKEN not in str(outcome) + str(found) + repr(desk.adapter._settings)
    if case.applied:
        assert found.evidence["stamp"] == (await desk.seen()).stamp.as_json()


async def test_a_close_is_one_request_with_status_tags_and_a_private_note(desk: Desk) -> None:
    seen = await desk.seen()
    outcome = await desk.adapter.close(await desk.approved())
    assert outcome.kind is APPLIED
    assert desk.double.updates == [
        {
            "status": "solved",
            "safe_update": True,
            "updated_stamp": seen.stamp.updated_at,
            "tags": [MARKER, "signoff_closed", "vip"],
            "comment": {"body": f"Refunded in full.\n\n({MARKER})", "public": False},
        }
    ]
    assert (desk.record["status"], desk.double.account.mails) == ("solved", [])
    now = await desk.seen()
    assert outcome.evidence["stamp"] == now.stamp.as_json()
    assert outcome.evidence["ticket_status"] == "solved"
    assert (now.ticket.status, now.ticket.changes[-1].kind) == (
        TicketStatus.CLOSED,
        ChangeKind.CLOSED,
    )


async def test_the_request_is_frozen_canonically(desk: Desk) -> None:
    seen = await desk.seen()
    payload = desk.adapter.freeze_close(seen, MARKER, "Done.")
    assert payload == desk.adapter.freeze_close(seen, MARKER, "Done.")
    assert (
        json.dumps(json.loads(payload), sort_keys=True, separators=(",", ":")) == payload.decode()
    )


async def test_without_the_excluded_tag_zendesk_mails_the_customer_a_second_time() -> None:
    clock = VirtualClock(NINE)
    async with ZendeskDouble(clock, Triggers(on_solved=True)) as double:
        double.account.open_ticket(4101, "s", "b", name="Pat", email="pat@cust.example", tags=())
        adapter = adapter_to(double)
        seen = await adapter.read("4101")
        assert seen is not None
        payload = adapter.freeze_close(seen, MARKER, "Done.")
        await adapter.close(OutgoingChange("4101", payload, seen.stamp, MARKER))
        assert [(mail.to, mail.why) for mail in double.account.mails] == [
            ("pat@cust.example", "solved")
        ]


async def test_whether_zendesk_notifies_has_no_default() -> None:
    with pytest.raises(TypeError, match="notifies_on_close"):
        ZendeskSettings(url="https://acme.zendesk.com", email=EMAIL, api_token=TOKEN)  # type: ignore[call-arg]


async def test_a_version_conflict_is_read_back_and_never_tried_on_the_new_version(
    desk: Desk,
) -> None:
    change = await desk.approved()
    desk.double.account.agent_edits(4101, assignee_id=77)
    outcome = await desk.adapter.close(change)
    assert (outcome.kind, outcome.evidence["error"]) == (UNKNOWN, "UpdateConflict")
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.retryable) == (NOT_APPLIED, False)
    assert found.evidence["changes"] == [{"kind": "edited", "author": "Kim"}]
    assert (desk.double.conflicts, desk.double.faults.counts["change"]) == (1, 1)
    assert (desk.record["status"], desk.record["assignee_id"]) == ("open", 77)


async def test_the_409_of_our_own_applied_close_is_told_as_applied(desk: Desk) -> None:
    change = await desk.approved()
    desk.double.faults.add(DeskFault.RESET_AFTER)
    await desk.adapter.close(change)
    outcome = await desk.adapter.close(change)
    assert (outcome.kind, outcome.evidence["status"]) == (UNKNOWN, 409)
    found = await desk.adapter.read_back(change)
    assert found.kind is APPLIED
    assert desk.double.applied == 1


async def test_a_request_that_lands_between_the_two_readings_is_told_as_applied(
    desk: Desk,
) -> None:
    change = await desk.approved()
    desk.double.faults.add(DeskFault.LATE)
    await desk.adapter.close(change)
    held = desk.double.faults.add(DeskFault.HANGS_BEFORE, 2, request=READ)
    reading = asyncio.create_task(desk.adapter.read_back(change))
    await held.struck.wait()
    assert [answer.status for answer in desk.double.faults.land()] == [200]
    held.released.set()
    found = await reading
    assert (found.kind, found.evidence["finding"]) == (APPLIED, "marker")
    assert "stamp" not in found.evidence


async def test_once_read_as_moved_a_late_request_is_shut_out(desk: Desk) -> None:
    change = await desk.approved()
    desk.double.faults.add(DeskFault.LATE)
    await desk.adapter.close(change)
    desk.double.account.customer_replies(4101, "still broken")
    assert (await desk.adapter.read_back(change)).kind is NOT_APPLIED
    assert [answer.status for answer in desk.double.faults.land()] == [409]
    assert desk.record["status"] == "open"


async def test_a_close_that_somebody_built_on_is_applied_but_no_longer_ours_to_undo(
    desk: Desk,
) -> None:
    change = await desk.approved()
    desk.double.faults.add(DeskFault.RESET_AFTER)
    await desk.adapter.close(change)
    desk.clock.advance(5)
    desk.double.account.customer_replies(4101, "Thanks, but…")
    desk.double.account.agent_edits(4101, tags=["vip"])
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (APPLIED, "marker")
    assert "stamp" not in found.evidence


async def test_a_marker_that_a_customer_writes_proves_nothing(desk: Desk) -> None:
    change = await desk.approved()
    desk.double.account.customer_replies(4101, f"What is ({MARKER})?")
    assert (await desk.adapter.read_back(change)).kind is NOT_APPLIED


async def test_a_long_history_since_leaves_the_outcome_unknown(desk: Desk) -> None:
    change = await desk.approved()
    for number in range(100):
        desk.double.account.customer_replies(4101, f"hello {number}")
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (UNKNOWN, "unread")


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "fault",
    [
        DeskFault.RESET_BEFORE,
        DeskFault.ERROR_BEFORE,
        DeskFault.CUT_BODY,
        DeskFault.LIMITED,
        DeskFault.STRANGER,
    ],
)
async def test_a_desk_that_cannot_be_read_is_said_to_be_so(
    desk: Desk, fault: DeskFault, number: int
) -> None:
    change = await desk.approved()
    desk.double.faults.add(fault, number, request=READ)
    with pytest.raises(DeskUnavailable) as unavailable:
        await desk.adapter.read("4101")
    if fault is DeskFault.LIMITED:
        assert unavailable.value.retry_after == timedelta(seconds=37)
    desk.double.faults.add(fault, number, request=READ)
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (UNKNOWN, "unread")


async def test_a_change_in_the_second_of_the_stamp_shows_in_the_hash_alone(desk: Desk) -> None:
    desk.double.account.agent_edits(4101, priority="low")
    before = await desk.seen()
    desk.double.account.customer_replies(4101, "Wait!")
    after = await desk.seen()
    assert before.stamp.updated_at == after.stamp.updated_at
    assert before.stamp != after.stamp
    payload = desk.adapter.freeze_close(before, MARKER, "Done.")
    outcome = await desk.adapter.close(OutgoingChange("4101", payload, before.stamp, MARKER))
    # This is the limit that the card tells: Zendesk itself cannot see such a change.
    assert outcome.kind is APPLIED
    assert "within 1 s" in guard(desk.adapter.declaration)


async def test_a_reopening_is_conditional_on_our_own_version(desk: Desk) -> None:
    await desk.adapter.close(await desk.approved())
    ours = await desk.seen()
    payload = desk.adapter.freeze_reopen(ours, "signoff-undo", "The mail was refused.")
    change = OutgoingChange("4101", payload, ours.stamp, "signoff-undo")
    desk.clock.advance(60)
    desk.double.account.agent_edits(4101, comment={"body": "Called them.", "public": False})
    assert (await desk.adapter.reopen(change)).kind is UNKNOWN
    assert (await desk.adapter.read_back(change)).kind is NOT_APPLIED
    assert desk.record["status"] == "solved"


async def test_a_reopening_leaves_the_ticket_open_without_the_closing_tag(desk: Desk) -> None:
    await desk.adapter.close(await desk.approved())
    ours = await desk.seen()
    payload = desk.adapter.freeze_reopen(ours, "signoff-undo", "The mail was refused.")
    outcome = await desk.adapter.reopen(OutgoingChange("4101", payload, ours.stamp, "signoff-undo"))
    assert outcome.kind is APPLIED
    assert (desk.record["status"], desk.record["tags"]) == (
        "open",
        [MARKER, "signoff-undo", "vip"],
    )
    assert (await desk.seen()).ticket.times_opened == 2


async def test_a_final_ticket_is_refused_in_zendesks_own_words(desk: Desk) -> None:
    desk.double.account.agent_edits(4101, status="closed")
    outcome = await desk.adapter.close(await desk.approved())
    assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
    assert outcome.evidence["error"] == "RecordInvalid"


async def test_a_wrong_token_is_a_refusal(desk: Desk) -> None:
    change = await desk.approved()
    stranger = adapter_to(desk.double, token="wrong")
    outcome = await stranger.close(change)
    assert (outcome.kind, outcome.evidence["status"]) == (NOT_APPLIED, 401)
    with pytest.raises(DeskUnavailable, match="401"):
        await stranger.read("4101")


async def test_a_desk_that_is_not_there_got_nothing(desk: Desk) -> None:
    change = await desk.approved()
    settings = replace(desk.adapter._settings, url="http://127.0.0.1:1")
    outcome = await Zendesk(settings).close(change)
    assert (outcome.kind, outcome.retryable, outcome.evidence["phase"]) == (
        NOT_APPLIED,
        True,
        "connect",
    )


async def test_cancellation_passes(desk: Desk) -> None:
    change = await desk.approved()
    held = desk.double.faults.add(DeskFault.HANGS_BEFORE)
    task = asyncio.create_task(desk.adapter.close(change))
    await held.struck.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (OutgoingChange("4101/../4102", b"{}", Stamp("x", "y"), MARKER), "no ticket"),
        (OutgoingChange("4101", b"[]", Stamp("x", "y"), MARKER), "not one of ours"),
        (
            OutgoingChange(
                "4101",
                b'{"ticket":{"safe_update":true,"updated_stamp":"z","tags":["signoff-1"]}}',
                Stamp("x", "y"),
                "signoff-1",
            ),
            "not conditional",
        ),
        (
            OutgoingChange(
                "4101",
                b'{"ticket":{"safe_update":true,"updated_stamp":"x","tags":[]}}',
                Stamp("x", "y"),
                "signoff-1",
            ),
            "its marker",
        ),
    ],
)
async def test_a_request_that_is_not_guarded_never_leaves(
    desk: Desk, change: OutgoingChange, problem: str
) -> None:
    outcome = await desk.adapter.close(change)
    assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
    assert problem in str(outcome.evidence["problem"])
    assert desk.double.faults.counts["change"] == 0


async def test_what_cannot_be_shown_or_found_is_not_frozen(desk: Desk) -> None:
    seen = await desk.seen()
    with pytest.raises(InvalidContent, match="marker"):
        desk.adapter.freeze_close(seen, "Two Words", "Done.")
    with pytest.raises(InvalidContent, match="longer than"):
        desk.adapter.freeze_close(seen, MARKER, "ü" * 30_001)


async def test_a_ticket_is_read_with_its_conversation(desk: Desk) -> None:
    desk.double.account.agent_edits(4101, comment={"body": "VIP!", "public": False})
    desk.double.account.agent_edits(4101, priority="high", tags=["vip", "refund"])
    desk.double.account.agent_edits(4101, status="solved")
    desk.double.account.customer_replies(4101, "No.")
    seen = await desk.seen()
    ticket = seen.ticket
    assert (ticket.desk, ticket.id, ticket.version) == (desk.adapter.name, "4101", 6)
    assert (ticket.customer_name, ticket.customer_email) == ("Pat", "pat@cust.example")
    assert (ticket.status, ticket.times_opened, ticket.language) == (TicketStatus.OPEN, 2, "en-US")
    assert [(change.version, change.kind, change.author) for change in ticket.changes] == [
        (1, ChangeKind.CUSTOMER_MESSAGE, "Pat"),
        (2, ChangeKind.AGENT_MESSAGE, "Kim"),
        (3, ChangeKind.NOTE, "Kim"),
        (4, ChangeKind.EDITED, "Kim"),
        (5, ChangeKind.CLOSED, "Kim"),
        (6, ChangeKind.CUSTOMER_MESSAGE, "Pat"),
    ]
    assert "priority: None → high" in ticket.changes[3].body
    assert seen.labels == ("refund", "vip")


async def test_a_history_of_several_pages_is_read_whole(desk: Desk) -> None:
    for number in range(250):
        desk.double.account.customer_replies(4101, f"hello {number}")
    assert (await desk.seen()).ticket.version == 252


@pytest.mark.parametrize("ticket_id", ["4102", "0", "x", "4101.json?", "../users/1"])
async def test_a_ticket_that_is_not_there_is_none(desk: Desk, ticket_id: str) -> None:
    assert await desk.adapter.read(ticket_id) is None


async def test_it_declares_what_it_can(desk: Desk) -> None:
    port: TicketDesk = desk.adapter
    assert (port.capability, port.notifies_on_close) == (Capability.CONDITIONAL, False)
    hosted = replace(desk.adapter._settings, url="https://acme.zendesk.com")
    assert Zendesk(hosted).name == "zendesk:acme"
    assert port.longest_request_seconds == 10.0


@pytest.mark.parametrize("url", ["acme.zendesk.com", "https://me:pw@acme.zendesk.com", "https://"])
def test_a_bad_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValueError, match="ZENDESK_URL") as refusal:
        ZendeskSettings(url=url, email=EMAIL, api_token=TOKEN, notifies_on_close=True)
    assert "pw" not in str(refusal.value)

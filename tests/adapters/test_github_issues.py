from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.desk_faults import READ, DeskFault
from bot.sandbox.github_double import OWNER, REPOSITORY, TOKEN, GithubDouble
from bot.sandbox.github_repository import OTHER_LOGIN, OUR_LOGIN
from executor.adapters.http_exchange import Answered
from executor.adapters.tickets.github_issues import GithubIssues, GithubSettings, read_refusal
from executor.domain.effect import Capability, OutcomeKind
from executor.domain.errors import InvalidContent
from executor.domain.stamp import Stamp
from executor.domain.ticket import ChangeKind, TicketStatus
from executor.engine.desk_port import DeskUnavailable, NotedDesk, Observation, OutgoingChange
from executor.engine.promises import guard, promise

APPLIED, NOT_APPLIED, UNKNOWN = (
    OutcomeKind.APPLIED,
    OutcomeKind.NOT_APPLIED,
    OutcomeKind.UNKNOWN,
)
MARKER = "signoff-0193aa55"
NINE = 1_796_119_200.0


@dataclass
class Desk:
    """A repository with issue 12 and our adapter before it."""

    double: GithubDouble
    clock: VirtualClock
    adapter: GithubIssues

    async def seen(self) -> Observation:
        observation = await self.adapter.read("12")
        assert observation is not None
        return observation

    async def approved(self) -> OutgoingChange:
        """The close of what is there now, as it would be approved; a minute passes."""
        seen = await self.seen()
        payload = self.adapter.freeze_close(seen, MARKER, "Fixed in 2.1.")
        self.clock.advance(60)
        return OutgoingChange("12", payload, seen.stamp, MARKER)

    async def noted(self) -> OutgoingChange:
        """The same, and the note is left already."""
        change = await self.approved()
        assert (await self.adapter.leave_note(change)).kind is APPLIED
        self.clock.advance(1)
        return change

    @property
    def record(self) -> dict[str, object]:
        return self.double.repository.issues[12].record


def adapter_to(
    double: GithubDouble, *, bound: float = 10.0, token: str = TOKEN, url: str = ""
) -> GithubIssues:
    settings = GithubSettings(OWNER, REPOSITORY, token=token, url=url or double.url)
    return GithubIssues(settings, longest_request_seconds=bound)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    clock = VirtualClock(NINE)
    async with GithubDouble(clock) as double:
        double.repository.open_issue(12, "It crashes", "Always.", login="pat", labels=("bug",))
        clock.advance(600)
        double.repository.comment(12, OTHER_LOGIN, "Looking.")
        double.repository.mails.clear()
        clock.advance(600)
        yield Desk(double, clock, adapter_to(double))


@dataclass(frozen=True)
class Case:
    fault: DeskFault
    outcome: OutcomeKind
    read_back: OutcomeKind
    done: int = 0
    retryable: bool = False
    retry_after: timedelta | None = None


MINUTE = timedelta(seconds=60)
CASES = [
    Case(DeskFault.REFUSED, NOT_APPLIED, UNKNOWN),
    Case(DeskFault.STRANGER, UNKNOWN, UNKNOWN),
    Case(DeskFault.RESET_BEFORE, UNKNOWN, UNKNOWN),
    Case(DeskFault.RESET_AFTER, UNKNOWN, APPLIED, done=1),
    Case(DeskFault.HANGS_BEFORE, UNKNOWN, UNKNOWN),
    Case(DeskFault.HANGS_AFTER, UNKNOWN, APPLIED, done=1),
    Case(DeskFault.ERROR_BEFORE, UNKNOWN, UNKNOWN),
    Case(DeskFault.ERROR_AFTER, UNKNOWN, APPLIED, done=1),
    Case(DeskFault.CUT_BODY, APPLIED, APPLIED, done=1),
    Case(
        DeskFault.LIMITED,
        NOT_APPLIED,
        UNKNOWN,
        retryable=True,
        retry_after=timedelta(seconds=37),
    ),
    Case(DeskFault.LIMITED_BARE, NOT_APPLIED, UNKNOWN, retryable=True, retry_after=MINUTE),
    Case(DeskFault.COLLISION, UNKNOWN, UNKNOWN),
    Case(DeskFault.LATE, UNKNOWN, UNKNOWN),
    Case(DeskFault.REPEATED, APPLIED, APPLIED, done=1),
]
HANGS = (DeskFault.HANGS_BEFORE, DeskFault.HANGS_AFTER)


def test_every_fault_has_its_row() -> None:
    assert {case.fault for case in CASES} == set(DeskFault)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault.value)
async def test_every_ending_of_a_close_proves_what_it_can(desk: Desk, case: Case) -> None:
    change = await desk.noted()
    desk.double.faults.add(case.fault)
    adapter = adapter_to(desk.double, bound=0.5) if case.fault in HANGS else desk.adapter
    outcome = await adapter.close(change)
    assert (outcome.kind, outcome.retryable, outcome.retry_after) == (
        case.outcome,
        case.retryable,
        case.retry_after,
    ), outcome
    assert (desk.double.state_changes, desk.double.notes) == (case.done, 1)
    assert desk.double.faults.counts["change"] == 2
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["noted"]) == (case.read_back, True), found
    assert TOKEN not in str(outcome) + str(found) + repr(desk.adapter._settings)
    if case.done:
        assert found.evidence["finding"] == "marker"
        assert found.evidence["stamp"] == (await desk.seen()).stamp.as_json()


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.fault is not DeskFault.REPEATED],
    ids=lambda case: case.fault.value,
)
async def test_every_ending_of_a_note_proves_what_it_can(desk: Desk, case: Case) -> None:
    change = await desk.approved()
    desk.double.faults.add(case.fault)
    adapter = adapter_to(desk.double, bound=0.5) if case.fault in HANGS else desk.adapter
    outcome = await adapter.leave_note(change)
    assert (outcome.kind, outcome.retryable, outcome.retry_after) == (
        case.outcome,
        case.retryable,
        case.retry_after,
    ), outcome
    assert (desk.double.notes, desk.record["state"]) == (case.done, "open")
    again = await desk.adapter.leave_note(change)
    assert (again.kind, desk.double.notes) == (APPLIED, 1)


async def test_a_note_that_somebody_sent_twice_is_a_change_that_nobody_approved(
    desk: Desk,
) -> None:
    change = await desk.approved()
    desk.double.faults.add(DeskFault.REPEATED)
    assert (await desk.adapter.leave_note(change)).kind is APPLIED
    closed = await desk.adapter.close(change)
    assert (closed.kind, closed.evidence["finding"]) == (NOT_APPLIED, "moved")
    assert (desk.double.notes, desk.record["state"]) == (2, "open")


async def test_a_close_is_a_note_with_a_hidden_marker_and_one_request(desk: Desk) -> None:
    change = await desk.noted()
    outcome = await desk.adapter.close(change)
    assert outcome.kind is APPLIED
    note = desk.double.repository.issues[12].comments[-1]
    assert note["body"] == f"Fixed in 2.1.\n\n<!-- {MARKER} -->"
    assert (desk.record["state"], desk.record["state_reason"]) == ("closed", "completed")
    assert (desk.double.notes, desk.double.state_changes) == (1, 1)
    now = await desk.seen()
    assert now.ticket.status is TicketStatus.CLOSED
    assert outcome.evidence["stamp"] == now.stamp.as_json()


async def test_github_itself_mails_the_author_and_the_adapter_says_so(desk: Desk) -> None:
    await desk.adapter.close(await desk.noted())
    assert [(mail.to, mail.why) for mail in desk.double.repository.mails] == [
        ("pat", "comment"),
        ("pat", "closed"),
    ]
    assert desk.adapter.notifies_on_close


async def test_the_bodies_are_frozen_canonically(desk: Desk) -> None:
    payload = (await desk.approved()).payload
    assert payload == (await desk.approved()).payload
    assert (
        json.dumps(json.loads(payload), sort_keys=True, separators=(",", ":")) == payload.decode()
    )


async def test_an_issue_that_moved_is_neither_noted_nor_closed(desk: Desk) -> None:
    change = await desk.approved()
    desk.double.repository.comment(12, "pat", "still broken")
    for outcome in (await desk.adapter.leave_note(change), await desk.adapter.close(change)):
        assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, False)
        assert outcome.evidence["finding"] == "moved"
    assert (desk.double.notes, desk.double.faults.counts["change"]) == (0, 0)


async def test_what_is_said_after_the_note_still_stops_the_close(desk: Desk) -> None:
    change = await desk.noted()
    desk.double.repository.comment(12, "pat", f"No! <!-- {MARKER} -->")
    outcome = await desk.adapter.close(change)
    assert (outcome.kind, outcome.evidence["finding"]) == (NOT_APPLIED, "moved")
    assert desk.record["state"] == "open"


async def test_a_change_in_the_second_of_the_stamp_is_seen_by_the_check(desk: Desk) -> None:
    desk.double.repository.comment(12, OTHER_LOGIN, "Try 2.1.")
    seen = await desk.seen()
    payload = desk.adapter.freeze_close(seen, MARKER, "Fixed.")
    desk.double.repository.comment(12, "pat", "Wait!")
    assert (await desk.seen()).stamp.updated_at == seen.stamp.updated_at
    change = OutgoingChange("12", payload, seen.stamp, MARKER)
    assert (await desk.adapter.leave_note(change)).kind is NOT_APPLIED


async def test_a_change_between_the_check_and_the_request_is_run_over(desk: Desk) -> None:
    change = await desk.noted()
    held = desk.double.faults.add(DeskFault.HANGS_BEFORE)
    closing = asyncio.create_task(desk.adapter.close(change))
    await held.struck.wait()
    desk.double.repository.comment(12, "pat", "Wait!")
    held.released.set()
    # This is what "checked, not guarded" on the card means.
    assert (await closing).kind is APPLIED
    assert "not guarded" in guard(desk.adapter.declaration)


async def test_a_close_never_leaves_without_the_note_it_is_found_by(desk: Desk) -> None:
    outcome = await desk.adapter.close(await desk.approved())
    assert (outcome.kind, desk.double.faults.counts["change"]) == (NOT_APPLIED, 0)


async def test_an_issue_that_somebody_else_closed_is_not_told_as_ours(desk: Desk) -> None:
    change = await desk.noted()
    desk.double.faults.add(DeskFault.RESET_BEFORE)
    await desk.adapter.close(change)
    desk.double.repository.change(12, OTHER_LOGIN, {"state": "closed"})
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["ticket_status"]) == (UNKNOWN, "closed")


async def test_an_open_issue_that_moved_proves_nothing_since_a_late_close_may_land(
    desk: Desk,
) -> None:
    change = await desk.noted()
    desk.double.faults.add(DeskFault.LATE)
    await desk.adapter.close(change)
    desk.double.repository.comment(12, "pat", "Hello?")
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (UNKNOWN, "moved")
    assert [answer.status for answer in desk.double.faults.land()] == [200]
    assert (await desk.adapter.read_back(change)).kind is APPLIED


async def test_a_close_that_somebody_built_on_is_no_longer_ours_to_undo(desk: Desk) -> None:
    change = await desk.noted()
    desk.double.faults.add(DeskFault.RESET_AFTER)
    await desk.adapter.close(change)
    desk.clock.advance(5)
    desk.double.repository.comment(12, "pat", "Thanks")
    found = await desk.adapter.read_back(change)
    assert found.kind is APPLIED
    assert "stamp" not in found.evidence


async def test_a_reopening_is_checked_against_our_own_version(desk: Desk) -> None:
    await desk.adapter.close(await desk.noted())
    ours = await desk.seen()
    payload = desk.adapter.freeze_reopen(ours, "signoff-undo", "The mail was refused.")
    change = OutgoingChange("12", payload, ours.stamp, "signoff-undo")
    assert (await desk.adapter.leave_note(change)).kind is APPLIED
    assert (await desk.adapter.reopen(change)).kind is APPLIED
    assert (desk.record["state"], desk.record["state_reason"]) == ("open", "reopened")
    assert (await desk.adapter.read_back(change)).kind is UNKNOWN
    assert (await desk.seen()).ticket.times_opened == 2


async def test_a_reopening_of_what_moved_on_is_not_made(desk: Desk) -> None:
    await desk.adapter.close(await desk.noted())
    ours = await desk.seen()
    payload = desk.adapter.freeze_reopen(ours, "signoff-undo", "The mail was refused.")
    desk.double.repository.comment(12, "pat", "Thanks")
    change = OutgoingChange("12", payload, ours.stamp, "signoff-undo")
    assert (await desk.adapter.reopen(change)).kind is NOT_APPLIED
    assert desk.record["state"] == "closed"


async def test_the_limit_on_content_is_an_outcome_that_says_how_long() -> None:
    clock = VirtualClock(NINE)
    async with GithubDouble(clock, content_limit=1) as double:
        double.repository.open_issue(12, "It crashes", "Always.", login="pat")
        desk = Desk(double, clock, adapter_to(double))
        change = await desk.approved()
        assert (await desk.adapter.leave_note(change)).kind is APPLIED
        limited = await desk.adapter.close(change)
        assert (limited.kind, limited.retryable, limited.retry_after) == (NOT_APPLIED, True, MINUTE)
        clock.advance(60)
        assert (await desk.adapter.close(change)).kind is APPLIED


def test_a_spent_quota_is_waited_for_until_its_reset() -> None:
    body = b'{"message":"API rate limit exceeded","documentation_url":"https://docs.github.com/x"}'
    headers = {
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": "1796119290",
        "date": "Tue, 01 Dec 2026 10:00:00 GMT",
    }
    refusal = read_refusal(Answered(403, headers, body))
    assert refusal is not None
    assert (refusal.retryable, refusal.retry_after) == (True, timedelta(seconds=90))
    broken = read_refusal(Answered(403, {**headers, "date": "today"}, body))
    assert broken is not None
    assert broken.retry_after == MINUTE


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
async def test_an_issue_that_cannot_be_read_is_not_closed(
    desk: Desk, fault: DeskFault, number: int
) -> None:
    change = await desk.noted()
    desk.double.faults.add(fault, number, request=READ)
    with pytest.raises(DeskUnavailable):
        await desk.adapter.read("12")
    desk.double.faults.add(fault, number, request=READ)
    found = await desk.adapter.read_back(change)
    assert (found.kind, found.evidence["finding"]) == (UNKNOWN, "unread")
    desk.double.faults.add(fault, number, request=READ)
    outcome = await desk.adapter.close(change)
    assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, True)
    assert desk.record["state"] == "open"


async def test_readings_together_are_left_at_the_time_bound(desk: Desk) -> None:
    change = await desk.noted()
    desk.double.faults.add(DeskFault.HANGS_BEFORE, request=READ)
    outcome = await adapter_to(desk.double, bound=0.3).close(change)
    assert (outcome.kind, outcome.evidence["problem"]) == (NOT_APPLIED, "no answer within 0.3 s")
    assert adapter_to(desk.double, bound=0.3).longest_request_seconds == 0.6


async def test_cancellation_passes(desk: Desk) -> None:
    change = await desk.noted()
    held = desk.double.faults.add(DeskFault.HANGS_BEFORE)
    task = asyncio.create_task(desk.adapter.close(change))
    await held.struck.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_wrong_token_is_a_refusal(desk: Desk) -> None:
    change = await desk.noted()
    outcome = await adapter_to(desk.double, token="wrong").close(change)
    assert (outcome.kind, outcome.evidence["problem"]) == (NOT_APPLIED, "the desk answered 401")


async def test_an_api_that_is_not_there_got_nothing(desk: Desk) -> None:
    change = await desk.noted()
    outcome = await adapter_to(desk.double, url="http://127.0.0.1:1").close(change)
    assert (outcome.kind, outcome.retryable) == (NOT_APPLIED, True)


@pytest.mark.parametrize(
    ("ticket_id", "payload"),
    [
        ("12/lock", b"{}"),
        ("12", b"[]"),
        ("12", b'{"issue":{"state":"closed"},"note":{"body":"Fixed."}}'),
    ],
)
async def test_a_request_that_is_not_ours_never_leaves(
    desk: Desk, ticket_id: str, payload: bytes
) -> None:
    outcome = await desk.adapter.close(OutgoingChange(ticket_id, payload, Stamp("x", "y"), MARKER))
    assert (outcome.kind, desk.double.faults.counts["change"]) == (NOT_APPLIED, 0)


@pytest.mark.parametrize(
    ("marker", "note"),
    [
        ("a--b", "Fixed."),
        ("-->", "Fixed."),
        (MARKER, "  "),
        (MARKER, "Fixed <!-- not"),
        (MARKER, "x" * 60_001),
    ],
)
async def test_what_cannot_be_shown_or_hidden_is_not_frozen(
    desk: Desk, marker: str, note: str
) -> None:
    seen = await desk.seen()
    with pytest.raises(InvalidContent):
        desk.adapter.freeze_close(seen, marker, note)


async def test_an_issue_is_read_with_its_conversation(desk: Desk) -> None:
    desk.double.repository.comment(12, "pat", "Thanks")
    ticket = (await desk.seen()).ticket
    assert (ticket.desk, ticket.version, ticket.customer_name) == ("github:acme/support", 3, "pat")
    assert [(change.kind, change.author) for change in ticket.changes] == [
        (ChangeKind.CUSTOMER_MESSAGE, "pat"),
        (ChangeKind.AGENT_MESSAGE, OTHER_LOGIN),
        (ChangeKind.CUSTOMER_MESSAGE, "pat"),
    ]


async def test_a_long_conversation_is_read_whole(desk: Desk) -> None:
    for number in range(250):
        desk.double.repository.comment(12, "pat", f"hello {number}")
    assert (await desk.seen()).ticket.version == 252


async def test_a_pull_request_is_no_ticket(desk: Desk) -> None:
    desk.record["pull_request"] = {"url": "https://api.github.example/pulls/12"}
    assert await desk.adapter.read("12") is None


@pytest.mark.parametrize("ticket_id", ["13", "0", "x", "../../x"])
async def test_an_issue_that_is_not_there_is_none(desk: Desk, ticket_id: str) -> None:
    assert await desk.adapter.read(ticket_id) is None


async def test_it_declares_what_it_can(desk: Desk) -> None:
    port: NotedDesk = desk.adapter
    assert (port.capability, port.name) == (Capability.LOOKUP, "github:acme/support")
    assert OUR_LOGIN not in promise(port.declaration)


def test_a_repository_that_would_leave_its_path_is_refused() -> None:
    settings = GithubSettings("acme", "support", token=TOKEN)
    assert settings.url == "https://api.github.com"
    for owner in ("..", "a/b", ""):
        with pytest.raises(ValueError, match="OWNER/NAME"):
            replace(settings, owner=owner)

"""What became of a demo, read back from all sides: record, desk, mailbox, Slack and journal.

``Truth.checks`` names every statement that has to hold; nothing here decides by what the people of
the demo believe to have done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from bot.card_parts import Paragraph, Words
from bot.card_status import status_of
from bot.sandbox.crash_points import CrashPlan, Story
from bot.sandbox.demo_desk import HeldTicket
from bot.sandbox.demo_faults import DeskKind, End, Outside, end_of
from bot.sandbox.mail_evidence import differences_from_card
from bot.sandbox.model import Json
from bot.sandbox.scripted_person import Card, ScriptedPeople, rendered
from bot.sandbox.stage import Stage
from executor.domain.effect import AttemptStatus, EffectKind
from executor.domain.ids import OperationId
from executor.domain.operation import RUN_WAITS_FOR, OperationStatus
from executor.domain.run import ENDED
from executor.domain.ticket import TicketStatus
from executor.engine.card_record import OperationRecord
from executor.engine.presenting import operation_record
from executor.engine.status import RunStatusLine, history, newest_runs
from executor.store import card_records, cards

_ENDS: Mapping[Story, OperationStatus] = {
    Story.APPROVE: OperationStatus.SUCCEEDED,
    Story.MENTION: OperationStatus.SUCCEEDED,
    Story.REJECT: OperationStatus.SUCCEEDED,
    Story.CANCEL: OperationStatus.WITHDRAWN,
    Story.STALE: OperationStatus.STALE,
    Story.EXPIRE: OperationStatus.EXPIRED,
    Story.SETTLE: OperationStatus.SUCCEEDED,
    Story.ASK: OperationStatus.SUCCEEDED,
    Story.WITHDRAW: OperationStatus.WITHDRAWN,
}

_CLOSED_IN = frozenset(
    {OperationStatus.SUCCEEDED, OperationStatus.UNKNOWN, OperationStatus.PARTIAL}
)


@dataclass
class Told:
    """What the people of a story saw and said, as far as the truth is measured against it."""

    story: Story
    before: HeldTicket
    earlier_runs: frozenset[int]
    earlier_mails: int
    outside: Outside
    card: Card | None = None
    rejected: Card | None = None
    reason: str = ""
    customer_wrote: str = ""
    crash: CrashPlan | None = None

    def end(self) -> End:
        """Return how the operation has to end, and how many mails have to be accepted."""
        if self.outside.fault is not None:
            return end_of(self.outside)
        wanted = _ENDS[self.story]
        if self.crash is None:
            return End(wanted, int(wanted is OperationStatus.SUCCEEDED))
        return End(OperationStatus.UNKNOWN if self.crash.in_doubt else wanted, self.crash.mails)


@dataclass
class Truth:
    """The JSON that is printed, and whether every check holds."""

    report: Json
    checks: dict[str, bool] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether everything is right."""
        return all(self.checks.values())


async def wait_for_the_end(
    stage: Stage, operation: UUID, earlier_runs: frozenset[int]
) -> tuple[OperationRecord, list[RunStatusLine]]:
    """Wait until nothing will happen any more by itself.

    Every run has ended, or waits for an operation of which a person has to say something.
    """

    async def ended() -> tuple[OperationRecord, list[RunStatusLine]]:
        while True:
            record = await _record(stage, operation)
            if _waits_for_a_person(record):
                # Its parts are read one after the other: what was moved between them, by a machine
                # that goes on, shows in a second reading.
                record = await _record(stage, operation)
            runs = await runs_since(stage, earlier_runs)
            asked = _waits_for_a_person(record)
            all_ended = record.status not in RUN_WAITS_FOR and all(
                run.status in ENDED for run in runs
            )
            if asked or all_ended:
                return record, runs
            await stage.record_may_have_changed()

    return await stage.wait("the operation and its run to end", ended())


def _waits_for_a_person(record: OperationRecord) -> bool:
    """Tell whether no machine will do anything about what is known in part, or not at all."""
    if record.status is OperationStatus.PARTIAL:
        return True
    doubtful = [
        attempt
        for effect in record.effects
        for attempt in effect.attempts
        if attempt.status is AttemptStatus.UNKNOWN
    ]
    by_a_machine = any(attempt.recover_at is not None for attempt in doubtful)
    return record.status is OperationStatus.UNKNOWN and bool(doubtful) and not by_a_machine


async def runs_since(stage: Stage, earlier: frozenset[int]) -> list[RunStatusLine]:
    """Read the runs that are not among those of an earlier demo in the same home.

    What people may still be asked about a demo is no part of it.
    """
    runs = await newest_runs(stage.engine, stage.tenant)
    return [run for run in runs if run.driven and run.number not in earlier]


async def find_out(stage: Stage, people: ScriptedPeople, told: Told) -> Truth:
    """Wait for the end, for the card to say so, and read everything back."""
    assert told.card is not None, "a story has a card"
    record, runs = await wait_for_the_end(stage, told.card.operation, told.earlier_runs)
    shown = await _card_says(stage, people, record)
    after = await stage.desk.ticket(told.before.id)
    assert after is not None, "tickets are never deleted"
    outside, rejected = told.outside, None
    if told.rejected is not None:
        rejected = await _record(stage, told.rejected.operation)
    truth = Truth(
        {
            "story": told.story.value,
            "ticket": {
                "id": after.id,
                "version_before": told.before.version,
                "version_after": after.version,
                "status": after.status.value,
                "changes": after.changes - told.before.changes,
                "notes": after.notes - told.before.notes,
            },
            "operation": {
                "id": str(record.id),
                "number": record.number,
                "digest": record.digest.hex(),
                "status": record.status.value,
            },
            "runs": [{"number": run.number, "status": run.status.value} for run in runs],
            "mail": outside.mail.value,
            "desk": outside.desk.value,
            "model": outside.model.value,
            "fault": None if outside.fault is None else outside.fault.value,
            "fault_at": None if outside.fault is None else outside.at.value,
            "attempts": [
                {
                    "effect": effect.kind.value,
                    "status": attempt.status.value,
                    "searches": attempt.lookups,
                }
                for effect in record.effects
                for attempt in effect.attempts
            ],
            "emails_accepted": stage.mail.accepted - told.earlier_mails,
            "email_matches_card": None,
            "card": shown,
        }
    )
    end = told.end()
    _check_record(truth, told, end.status, record, after)
    _check_mail(truth, told, end.mails, stage, await _payload_digest(stage, record))
    _check_words(truth, told, record, shown)
    if rejected is not None and told.rejected is not None:
        said = await _card_says(stage, people, rejected)
        truth.report["rejected_operation"] = {
            "id": str(rejected.id),
            "status": rejected.status.value,
            "card": said,
        }
        truth.checks["the first proposal was rejected"] = (
            rejected.status is OperationStatus.REJECTED and told.reason in said
        )
        truth.checks["the second email is another one"] = rejected.email != record.email
    histories = [await history(stage.engine, stage.tenant, run.id) for run in runs]
    noted = {entry.event for each in histories for entry in each.journal if entry.machine is None}
    truth.report["events"] = sorted(noted)
    truth.report["journal_verified"] = verified = all(each.broken is None for each in histories)
    truth.checks["every run's journal verifies"] = verified
    return truth


def _check_record(
    truth: Truth, told: Told, wanted: OperationStatus, record: OperationRecord, after: HeldTicket
) -> None:
    truth.checks[f"the operation is {wanted.value}"] = record.status is wanted
    closed = wanted in _CLOSED_IN
    bumped = closed or bool(told.customer_wrote)
    status = TicketStatus.CLOSED if closed else TicketStatus.OPEN
    truth.checks[f"the ticket is {status.value}"] = after.status is status
    truth.checks["the ticket changed as often as it should"] = (
        after.version == told.before.version + int(bumped)
    )
    # At GitHub the note is a change of its own; the built-in desk needs none.
    desk = told.outside.desk
    changes = (2 if desk is DeskKind.GITHUB else 1) if closed else 0
    notes = int(closed and desk is not DeskKind.BUILTIN)
    truth.checks[f"the desk took {changes} change(s) from us"] = (
        after.changes == told.before.changes + changes
    )
    truth.checks[f"we left {notes} note(s) there"] = after.notes == told.before.notes + notes


def _check_mail(truth: Truth, told: Told, wanted: int, stage: Stage, payload_digest: str) -> None:
    mails = stage.mail.evidence(told.earlier_mails)
    truth.checks[f"{wanted} email(s) were accepted"] = len(mails) == wanted
    if not mails:
        return
    assert told.card is not None
    problems = [p for mail in mails for p in differences_from_card(mail.content, told.card.blocks)]
    truth.report["email_matches_card"] = not problems
    truth.checks["the email is what the card showed"] = not problems
    if problems:
        truth.report["differences"] = problems
    same = all(mail.digest == payload_digest for mail in mails)
    truth.report["email_matches_intent"] = same
    truth.checks["the email's bytes are those of the intent"] = same


def _check_words(truth: Truth, told: Told, record: OperationRecord, shown: str) -> None:
    truth.checks["the card names the digest"] = record.digest.hex()[:16] in shown
    if told.story is Story.STALE:
        version = record.target.version
        truth.checks["the card says what changed"] = (
            f"You looked at version {version}; it is now {version + 1}" in shown
            and told.customer_wrote in shown
        )


async def _card_says(stage: Stage, people: ScriptedPeople, record: OperationRecord) -> str:
    """Wait until the operation's card shows its record, and return what it says."""
    place: tuple[str | None, str | None] = (None, None)
    while None in place:
        async with stage.engine.database.transaction() as conn:
            place = await cards.card_place(conn, (stage.tenant, record.id))
        if None in place:
            await stage.wait("the card to be recorded", stage.record_may_have_changed())
    channel, ts = place
    assert channel is not None
    assert ts is not None
    headline = status_of(record)[0]
    assert isinstance(headline, Paragraph)
    first = headline.pieces[0]
    assert isinstance(first, Words)
    return rendered(await people.wait_until_shown(channel, ts, first.text.strip()))


async def _record(stage: Stage, operation: UUID) -> OperationRecord:
    record = await operation_record(stage.engine, stage.tenant, OperationId(operation))
    assert isinstance(record, OperationRecord)
    return record


async def _payload_digest(stage: Stage, record: OperationRecord) -> str:
    """Read the digest of the frozen bytes that stands in the intent."""
    async with stage.engine.database.transaction() as conn:
        row = await card_records.operation(conn, stage.tenant, record.id)
    assert row is not None
    effects = json.loads(row.intent)["effects"]
    sent = next(e for e in effects if e["kind"] == EffectKind.EMAIL_SEND)
    return str(sent["payload_sha256"])

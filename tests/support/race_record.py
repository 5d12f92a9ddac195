"""What is left of a round when it is over, and what must be true of it whoever has won."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId
from executor.domain.transition import Reason, Refused
from executor.engine.card_record import OperationRecord
from executor.engine.click import Recorded
from executor.engine.presenting import operation_record
from tests.support.office import TENANT, Office
from tests.support.race_track import VERSION, Prize, revisions_of

DONE = "succeeded"
NOTHING_DONE = ("withdrawn", "expired", "stale", "rejected", "superseded")
_READ_EVERY = 10
"""Every how many rounds the whole record is read as for a card; it is the dearest of the reads."""

_TOLD_BY_STATUS = {
    "granted": Reason.ALREADY_GRANTED,
    "consumed": Reason.ALREADY_SENDING,
    "denied": Reason.ALREADY_DENIED,
    "expired": Reason.EXPIRED,
    "withdrawn": Reason.WITHDRAWN,
}

_JOURNAL = """
SELECT COALESCE(e.operation_id, a.operation_id, t.operation_id, j.entity_id) AS about,
       j.machine, j.source, j.target, j.event, j.actor, j.detail, j.recorded_at
FROM journal j
LEFT JOIN effects e ON e.tenant_id = j.tenant_id AND e.id = j.entity_id
LEFT JOIN approvals a ON a.tenant_id = j.tenant_id AND a.id = j.entity_id
LEFT JOIN attempts t ON t.tenant_id = j.tenant_id AND t.id = j.entity_id
ORDER BY j.subject, j.position"""

_STANDING = """
SELECT o.id, o.status, o.reason, a.status AS consent, a.decide_by, a.use_by,
       a.digest = sha256(convert_to(o.intent, 'UTF8')) AS is_bound,
       (SELECT part FROM jsonb_array_elements(CAST(o.intent AS jsonb) -> 'effects') AS part
        WHERE part ->> 'kind' = 'email.send') AS email,
       c.wanted_revision > c.shown_revision AS card_is_due,
       (SELECT id FROM effects e WHERE e.operation_id = o.id AND e.kind = 'email.send') AS mail,
       (SELECT jsonb_object_agg(principal, vote) FROM decisions d WHERE d.approval_id = a.id)
           AS votes,
       (SELECT jsonb_agg(jsonb_build_array(v.version, v.kind, v.operation_id) ORDER BY v.version)
        FROM desk_events v WHERE v.ticket_id = o.ticket_id AND v.version > :version) AS changes
FROM operations o
JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
JOIN cards c ON c.tenant_id = o.tenant_id AND c.subject_id = o.id"""


@dataclass(frozen=True)
class Entry:
    """One row of the journal; ``machine`` is ``None`` for a note."""

    machine: str | None
    source: str | None
    target: str | None
    event: str
    actor: str
    detail: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True)
class Round:
    """One round: what everybody was told, the journal in its order, and how all of it stands.

    ``sent`` are the mails that left, each as the digest of its bytes. ``card`` is what the card
    would be drawn from, read for some of the rounds. ``revision`` took the operation's place.
    """

    prize: Prize
    told: Mapping[str, Any]
    entries: Sequence[Entry]
    standing: Any
    sent: Sequence[str]
    card: OperationRecord | None
    revision: Round | None = None

    @property
    def status(self) -> str:
        """How the operation ended."""
        return str(self.standing.status)

    @property
    def reason(self) -> str | None:
        """Why it ended so."""
        return None if self.standing.reason is None else str(self.standing.reason)

    @property
    def changes(self) -> list[tuple[int, str, str | None]]:
        """What became of the ticket: version, kind, and whose operation it was if it was ours."""
        return [tuple(change) for change in self.standing.changes or ()]

    @property
    def quorum(self) -> int:
        """How many people had to say yes when it was proposed."""
        [born] = [e for e in self.entries if e.machine == "approval" and e.source == "born"]
        return int(born.detail["quorum"])

    def move(self, machine: str, target: str) -> Entry | None:
        """Return the entry by which something came to ``target``, if any did; never two."""
        found = [e for e in self.entries if (e.machine, e.target) == (machine, target)]
        assert len(found) <= 1, f"the {machine} came to {target} {len(found)} times"
        return found[0] if found else None

    def status_at(self, machine: str, entry: Entry) -> str:
        """Say where something stood right before an entry."""
        before = self.entries[: self.entries.index(entry)]
        return [str(e.target) for e in before if e.machine == machine][-1]

    def notes(self, event: str) -> list[Entry]:
        """List what was said and moved nothing by itself."""
        return [e for e in self.entries if e.machine is None and e.event == event]

    def check(self, *, may_wait: bool = False) -> None:
        """Raise where the record does not agree with itself, or something was done without right.

        This holds of every round of every race; ``may_wait``: it need not have ended.
        """
        times = [e.at for e in self.entries]
        assert times == sorted(times), "the journal's order is not that of its times"
        ends = (DONE, *NOTHING_DONE, *(["awaiting"] if may_wait else []))
        assert self.status in ends, f"it has ended in neither way: {self.status}"
        self._check_end()
        self._check_right()
        self._check_card()

    def _check_end(self) -> None:
        done = self.status == DONE
        assert len(self.sent) == int(done), f"{len(self.sent)} mails"
        closed = [kind for _, kind, by in self.changes if by == str(self.prize.operation)]
        assert closed == (["closed"] if done else []), f"what was done to the ticket: {closed}"
        attempts = [e for e in self.entries if e.machine == "attempt" and e.source == "born"]
        assert len(attempts) == int(done), f"{len(attempts)} attempts"

    def _check_right(self) -> None:
        """Nothing is done but under an approval that was granted before, by enough people."""
        acted = [e for e in self.entries if e.machine == "attempt" or e.target == "applied"]
        granted, used = self.move("approval", "granted"), self.move("approval", "consumed")
        assert bool(acted) == (used is not None), "done without an approval, or used for nothing"
        if used is not None:
            assert granted is not None
            assert self.entries.index(granted) < self.entries.index(used)
        if granted is not None:
            before = self.entries[: self.entries.index(granted)]
            voted = [(e.actor, e.detail["vote"]) for e in before if e.event == "voted"]
            assert {vote for _, vote in voted} == {"approve"}, f"granted after {voted}"
            assert len(voted) == len(dict(voted)) == self.quorum, f"granted after {voted}"
        assert self.standing.is_bound, "the approval is of something else"
        assert set(self.sent) <= {self.standing.email["payload_sha256"]}, "other bytes were sent"

    def _check_card(self) -> None:
        """The rows that a card is drawn from say what the journal says, and a drawing is due."""
        for machine, stands in (("operation", self.status), ("approval", self.standing.consent)):
            last = [e.target for e in self.entries if e.machine == machine][-1]
            assert stands == last, f"the {machine} stands at {stands}, its journal at {last}"
        votes = {e.actor: e.detail["vote"] for e in self.notes("voted")}
        assert (self.standing.votes or {}) == votes
        untouched = self.status == "awaiting" and not votes
        assert self.standing.card_is_due != untouched, "the card goes on showing what it showed"
        if self.card is not None:
            shown = (self.card.status, self.card.approval.status)
            assert shown == (self.status, self.standing.consent)
            assert {v.principal: v.vote for v in self.card.approval.votes} == votes

    def check_told(
        self, who: PrincipalId, told: object, vote: Vote = Vote.APPROVE, *, quorum: int = 0
    ) -> None:
        """Raise where somebody was told something else of a click than what the journal has.

        ``quorum`` is how many have to approve if more than were asked for at first.
        """
        voted = [e for e in self.notes("voted") if e.actor == who]
        refused = [e for e in self.notes("decision_refused") if e.actor == who]
        if isinstance(told, Recorded):
            assert (len(voted), len(refused)) == (1, 0), f"told {told}"
            said = self.notes("voted")
            missing = max(self.quorum, quorum) - (said.index(voted[0]) + 1)
            assert told.vote is vote
            assert vote is Vote.REJECT or told.still_needed == missing, f"told {told}"
            decisive = self.move("approval", "denied" if vote is Vote.REJECT else "granted")
            assert told.decided == (decisive is not None and decisive.actor == who), f"told {told}"
            return
        assert isinstance(told, Refused), f"told {told}"
        assert (len(voted), len(refused)) == (0, 1), f"told {told}"
        assert refused[0].detail["reason"] == told.reason.value
        stood = self.status_at("approval", refused[0])
        truth = _TOLD_BY_STATUS.get(stood, told.reason)
        assert told.reason is truth, f"it was {stood}, and somebody was told {told}"

    def __str__(self) -> str:
        lines = [f"round {self.prize.round}: {self.status} ({self.reason}), {self.prize}"]
        lines += [f"  {name} was told {answer}" for name, answer in self.told.items()]
        lines += [
            f"  {e.at:%H:%M:%S.%f} {e.machine or 'note'}: {e.event} {e.source or ''}"
            f" -> {e.target or ''} by {e.actor} {e.detail.get('reason', '')}"
            for e in self.entries
        ]
        lines.append(f"  the ticket: {self.changes}; {len(self.sent)} mails")
        return "\n".join([*lines, *([] if self.revision is None else [str(self.revision)])])


async def read_rounds(
    office: Office,
    prizes: Sequence[Prize],
    told: Sequence[Mapping[str, object]],
    sent: Sequence[tuple[str, str]],
) -> list[Round]:
    """Read all rounds; ``sent`` are mails by reference, each with the digest of its bytes."""
    async with office.database.transaction() as conn:
        journal = (await conn.execute(text(_JOURNAL))).all()
        standing = (await conn.execute(text(_STANDING), {"version": VERSION})).all()
    entries = _by_operation(prizes, journal)
    stands = {row.id: row for row in standing}
    mails: dict[str, list[str]] = defaultdict(list)
    for reference, digest in sent:
        mails[reference].append(digest)

    def round_of(prize: Prize, answers: Mapping[str, object]) -> Round:
        row, mine = stands[prize.operation], entries[prize.operation]
        return Round(prize, answers, mine, row, mails.pop(row.mail.hex, []), None)

    after = await revisions_of(office, prizes)
    rounds = []
    for prize, answers in zip(prizes, told, strict=True):
        one = round_of(prize, answers)
        if prize.round % _READ_EVERY == 0:
            read = await operation_record(office.engine, TENANT, prize.operation)
            assert isinstance(read, OperationRecord)
            one = replace(one, card=read)
        if prize.operation in after:
            one = replace(one, revision=round_of(after[prize.operation], {}))
        rounds.append(one)
    assert not mails, f"mails that belong to no round: {mails}"
    return rounds


def _by_operation(prizes: Sequence[Prize], journal: Sequence[Any]) -> dict[UUID, list[Entry]]:
    of_runs = Counter(prize.run_id for prize in prizes)
    # What happens to a run happens to its operation, where it has but one.
    alone: dict[UUID, UUID] = {p.run_id: p.operation for p in prizes if of_runs[p.run_id] == 1}
    entries: dict[UUID, list[Entry]] = defaultdict(list)
    for row in journal:
        entries[alone.get(row.about, row.about)].append(
            Entry(row.machine, row.source, row.target, row.event, row.actor, row.detail,
                  row.recorded_at)
        )  # fmt: skip
    return entries

"""What the entries of one subject have to say together, beside that their hashes hold.

Every move is an edge of its machine and follows the one before it. Every vote is one principal's on
the digest of the operation. What is granted has its votes, and what is opened has used up a granted
approval of its own before. Who may vote is not in the journal, and so is not judged here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never
from uuid import UUID

from executor.domain import approval, budget, effect, grant, operation, run
from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId, RunId, TenantId, is_policy
from executor.domain.journal import JournalEntry, tenant_subject
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.transition import BORN, Machine

EDGES: Mapping[Machine, frozenset[tuple[str, str]]] = {
    Machine.RUN: run.EDGES,
    Machine.OPERATION: operation.EDGES,
    Machine.EFFECT: effect.EFFECT_EDGES,
    Machine.ATTEMPT: effect.ATTEMPT_EDGES,
    Machine.APPROVAL: approval.EDGES,
    Machine.RESERVATION: budget.EDGES,
    Machine.GRANT: grant.EDGES,
}
VOTED = "voted"
WORD_GIVEN = "word_given"
SEND_AGAIN = "send_again"
_DISPATCHED_OR_DONE = ("dispatched", "applied")


@dataclass(slots=True)
class _Consent:
    """One approval: of which operation, and who said what; ``repeats`` is an attempt."""

    operation: UUID
    quorum: int
    repeats: UUID | None
    votes: dict[str, Vote] = field(default_factory=dict)

    @property
    def approving(self) -> set[str]:
        return {who for who, vote in self.votes.items() if vote is Vote.APPROVE}


@dataclass(slots=True)
class Story:
    """What the entries of one subject have told so far; entries come in their order."""

    tenant: TenantId
    subject: RunId
    _standing: dict[tuple[Machine, UUID], tuple[int, str]] = field(default_factory=dict)
    _digests: dict[UUID, str] = field(default_factory=dict)
    _consents: dict[UUID, _Consent] = field(default_factory=dict)
    _effects: dict[UUID, UUID] = field(default_factory=dict)
    _attempts: dict[UUID, UUID] = field(default_factory=dict)
    _let: set[UUID] = field(default_factory=set)
    _again: dict[UUID, set[str]] = field(default_factory=lambda: defaultdict(set))

    def problem(self, entry: JournalEntry) -> str | None:
        """Take in the next entry; says what of it cannot be after those before it."""
        wrong = self._no_move(entry)
        if wrong is None:
            wrong = self._note(entry) if entry.machine is None else self._authority(entry)
        if entry.machine is not None and entry.seq is not None:
            key = (entry.machine, entry.entity_id)
            self._standing[key] = (entry.seq, entry.target or "")
        return wrong

    def _no_move(self, entry: JournalEntry) -> str | None:
        """Say why this cannot be the next move of its record, by numbers and edges."""
        ends = (entry.seq, entry.source, entry.target)
        born = (entry.machine, entry.entity_id, entry.source) == (Machine.RUN, self.subject, BORN)
        if entry.position == 1 and self.subject != tenant_subject(self.tenant) and not born:
            return "the first entry of a run is not its birth"
        if entry.machine is None:
            return None if ends == (None, None, None) else "it is a note, and moves something"
        if None in ends:
            return f"it is a move of {entry.machine.value} without its number or its ends"
        seq, status = self._standing.get((entry.machine, entry.entity_id), (0, BORN))
        what = f"{entry.machine.value} {entry.entity_id}"
        if entry.seq != seq + 1:
            return f"move {seq + 1} of {what} is missing: this is move {entry.seq}"
        if entry.source != status:
            return f"{what} leaves {entry.source!r}, and it stood at {status!r}"
        if (status, str(entry.target)) not in EDGES[entry.machine]:
            return f"{what} cannot move from {status!r} to {entry.target!r}"
        return None

    def _note(self, entry: JournalEntry) -> str | None:
        if entry.event == WORD_GIVEN and entry.detail.get("said") == SEND_AGAIN:
            self._again[entry.entity_id].add(entry.actor)
        if entry.event != VOTED:
            return None
        consent = self._consents.get(entry.entity_id)
        if consent is None:
            return "it is a vote on an approval that was not opened before"
        if self._status(Machine.APPROVAL, entry.entity_id) != "open":
            return "it is a vote on an approval that was not open"
        if entry.detail.get("digest") != self._digests.get(consent.operation):
            return "it is a vote on another digest than that of its operation"
        if not entry.actor:
            return "it is nobody's vote"
        said = entry.detail.get("vote")
        if said not in list(Vote):
            return "it is a vote that says neither approve nor reject"
        vote = Vote(str(said))
        if entry.actor in consent.votes and vote is Vote.APPROVE:
            return "it is a second vote of the same principal"
        consent.votes[entry.actor] = vote
        return None

    def _authority(self, entry: JournalEntry) -> str | None:
        """Say what a move lacks of what it rests on."""
        assert entry.machine is not None
        match entry.machine:
            case Machine.OPERATION:
                return self._operation(entry)
            case Machine.APPROVAL:
                return self._approval(entry)
            case Machine.EFFECT:
                return self._effect(entry)
            case Machine.ATTEMPT:
                return self._attempt(entry)
            case Machine.RUN | Machine.RESERVATION | Machine.GRANT:
                return None
            case _:
                assert_never(entry.machine)

    def _operation(self, entry: JournalEntry) -> str | None:
        id_ = entry.entity_id
        match entry.source, entry.target:
            case "born", _:
                found = entry.detail.get("digest")
                if not isinstance(found, str) or len(found) != 64:
                    return "the operation is born without the digest of its content"
                self._digests[id_] = found
            case _, "approved":
                if not self._some_approval(id_, "granted"):
                    return "the operation is approved, and no approval of it was granted"
            case _, "rejected":
                if not self._some_approval(id_, "denied"):
                    return "the operation is rejected, and no approval of it was denied"
            case "approved", "executing":
                if id_ not in self._let:
                    return "the operation is opened, and no granted approval of it was used up"
        return None

    def _approval(self, entry: JournalEntry) -> str | None:
        if entry.source == BORN:
            return self._born_approval(entry)
        consent = self._consents[entry.entity_id]
        match entry.target:
            case "granted":
                if is_policy(PrincipalId(entry.actor)) or consent.repeats is not None:
                    return None
                if len(consent.approving) < consent.quorum:
                    return (
                        f"the approval is granted by {len(consent.approving)} vote(s), "
                        f"and it takes {consent.quorum}"
                    )
            case "denied":
                if consent.votes.get(entry.actor) is not Vote.REJECT:
                    return "the approval is denied, and who did it has not voted to reject"
            case "consumed":
                return self._use(consent)
        return None

    def _born_approval(self, entry: JournalEntry) -> str | None:
        of, quorum = _id(entry.detail, "operation"), entry.detail.get("quorum")
        if of is None or of not in self._digests:
            return "the approval is of an operation that was not born before"
        if not isinstance(quorum, int) or quorum < 1:
            return "the approval does not say how many votes it takes"
        repeats = _id(entry.detail, "repeats")
        if "repeats" in entry.detail and self._attempts.get(repeats or of) != of:
            return "the approval repeats an attempt that its operation has not made"
        self._consents[entry.entity_id] = _Consent(of, quorum, repeats)
        return None

    def _use(self, consent: _Consent) -> str | None:
        status = self._status(Machine.OPERATION, consent.operation)
        if status != ("approved" if consent.repeats is None else "executing"):
            return f"the approval is used up, and its operation stood at {status!r}"
        if consent.repeats is not None and len(self._again[consent.repeats]) < consent.quorum:
            return "the approval of a repeat is used up without the words that it takes"
        self._let.add(consent.operation)
        return None

    def _effect(self, entry: JournalEntry) -> str | None:
        if entry.source == BORN:
            of = _id(entry.detail, "operation")
            if of is None or of not in self._digests:
                return "the effect is of an operation that was not born before"
            self._effects[entry.entity_id] = of
        elif (
            entry.target in _DISPATCHED_OR_DONE and self._effects[entry.entity_id] not in self._let
        ):
            return "the effect happens, and no granted approval of its operation was used up"
        return None

    def _attempt(self, entry: JournalEntry) -> str | None:
        if entry.source != BORN:
            return None
        part = _id(entry.detail, "effect")
        of = None if part is None else self._effects.get(part)
        if of is None:
            return "the attempt is at an effect that was not born before"
        if of not in self._let:
            return "the attempt is made, and no granted approval of its operation was used up"
        self._attempts[entry.entity_id] = of
        return None

    def _some_approval(self, of: UUID, status: str) -> bool:
        return any(
            consent.operation == of and self._status(Machine.APPROVAL, id_) == status
            for id_, consent in self._consents.items()
        )

    def _status(self, machine: Machine, id_: UUID) -> str:
        return self._standing.get((machine, id_), (0, BORN))[1]


def _id(detail: JsonObject, name: str) -> UUID | None:
    found: JsonValue = detail.get(name)
    try:
        return UUID(found) if isinstance(found, str) else None
    except ValueError:
        return None

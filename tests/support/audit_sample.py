"""A small tenant's export, made by the domain alone: its own chain, and two runs that sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from executor.domain.approval import ApprovalStatus
from executor.domain.audit_file import ChainEnd, Header, entry_line
from executor.domain.effect import AttemptStatus, EffectStatus
from executor.domain.grant import GrantStatus
from executor.domain.ids import RunId, TenantId
from executor.domain.journal import Chain, Head, JournalEntry, tenant_subject
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.run import RunStatus
from executor.domain.transition import Machine, Transition

TENANT = TenantId("T1")
NOW = datetime(2026, 3, 2, 9, 30, 0, 123456, tzinfo=UTC)
RENE = "slack:T1:RENE"
Listed = list[tuple[JournalEntry, bytes]]


def identifier(run: int, number: int) -> UUID:
    return UUID(int=run * 1000 + number)


OPERATION, APPROVAL, EFFECT, ATTEMPT = 1, 2, 3, 4


@dataclass
class Writer:
    """Chains the entries of one tenant."""

    chain: Chain = field(default_factory=lambda: Chain(NOW, {}))
    listed: dict[RunId, Listed] = field(default_factory=dict)

    def keep(self, entry: JournalEntry) -> None:
        self.listed[entry.subject].append((entry, entry.hash))

    def begin(self, subject: RunId) -> None:
        self.chain.heads[TENANT, subject] = Head()
        self.listed[subject] = []

    def own(self) -> None:
        subject = tenant_subject(TENANT)
        self.begin(subject)
        self.keep(self.chain.note(TENANT, subject, subject, "policy_activated", "operator:O", {}))
        grant = UUID(int=5)
        active = GrantStatus.ACTIVE
        self.keep(self.chain.birth(Machine.GRANT, TENANT, subject, grant, active, "a", {"of": "ü"}))

    def run(
        self,
        number: int,
        *,
        leave_out: Collection[str] = (),
        instead: dict[str, JsonObject] | None = None,
    ) -> RunId:
        """Chain a run that sends, without the entries ``leave_out``, and with other details."""
        run = RunId(identifier(number, 0))
        self.begin(run)
        digest = f"{number:064x}"
        of: JsonObject = {"operation": str(identifier(number, OPERATION))}
        told: dict[str, JsonObject] = {
            "operation": {"digest": digest, "revision": 1},
            "effect": {**of, "kind": "email.send"},
            "approval": {**of, "quorum": 1},
            "vote": {"vote": "approve", "digest": digest, "note": "fine\u202e \u00fc\n"},
            "attempt": {"effect": str(identifier(number, EFFECT)), "number": 1},
            **(instead or {}),
        }
        part = Part(self, run, number, leave_out)
        part.born(Machine.RUN, 0, RunStatus.QUEUED, {"goal": "g"})
        part.move(Machine.RUN, 0, 1, RunStatus.QUEUED, RunStatus.RUNNING)
        part.born(Machine.OPERATION, OPERATION, OperationStatus.AWAITING, told["operation"])
        part.born(Machine.EFFECT, EFFECT, EffectStatus.PLANNED, told["effect"])
        part.born(Machine.APPROVAL, APPROVAL, ApprovalStatus.OPEN, told["approval"])
        part.note(APPROVAL, "voted", told["vote"])
        open_, granted = ApprovalStatus.OPEN, ApprovalStatus.GRANTED
        part.move(Machine.APPROVAL, APPROVAL, 1, open_, granted)
        approved = OperationStatus.APPROVED
        part.move(Machine.OPERATION, OPERATION, 1, OperationStatus.AWAITING, approved)
        part.move(Machine.APPROVAL, APPROVAL, 2, granted, ApprovalStatus.CONSUMED)
        part.born(Machine.ATTEMPT, ATTEMPT, AttemptStatus.DISPATCHED, told["attempt"])
        part.move(Machine.EFFECT, EFFECT, 1, EffectStatus.PLANNED, EffectStatus.DISPATCHED)
        executing = OperationStatus.EXECUTING
        part.move(Machine.OPERATION, OPERATION, 2, approved, executing)
        part.move(Machine.OPERATION, OPERATION, 3, executing, OperationStatus.SUCCEEDED)
        return run

    def header(self) -> Header:
        own = tenant_subject(TENANT)
        return Header(
            TENANT,
            None,
            NOW,
            tuple(
                ChainEnd(s, None if s == own else s.int // 1000, head.position, head.hash)
                for (_, s), head in self.chain.heads.items()
            ),
        )

    def lines(self) -> list[bytes]:
        entries = [entry_line(*pair) for listed in self.listed.values() for pair in listed]
        return [self.header().line(), *entries]


@dataclass
class Part:
    """Chains the entries of one run, unless they are left out."""

    writer: Writer
    run: RunId
    number: int
    leave_out: Collection[str] = ()

    def born(self, machine: Machine, entity: int, status: object, detail: JsonObject) -> None:
        if f"{machine.value} born" not in self.leave_out:
            at = identifier(self.number, entity)
            chain = self.writer.chain
            self.writer.keep(
                chain.birth(machine, TENANT, self.run, at, status, RENE, detail)  # type: ignore[arg-type]
            )

    def move(self, machine: Machine, entity: int, seq: int, source: object, target: object) -> None:
        if f"{machine.value} {target}" not in self.leave_out:
            moved: Transition[RunStatus] = Transition(source, target, "moved")  # type: ignore[arg-type]
            at = identifier(self.number, entity)
            chain = self.writer.chain
            self.writer.keep(chain.move(machine, TENANT, self.run, at, seq, moved, RENE))

    def note(self, entity: int, event: str, detail: JsonObject) -> None:
        if event not in self.leave_out:
            at = identifier(self.number, entity)
            chain = self.writer.chain
            self.writer.keep(chain.note(TENANT, self.run, at, event, RENE, detail))


def sample() -> list[bytes]:
    """Return the lines of a whole export."""
    writer = Writer()
    writer.own()
    writer.run(1)
    writer.run(2)
    return writer.lines()


def rechained(listed: Listed, change: int, **fields: object) -> list[bytes]:
    """Change one entry and let every hash after it fit again, as a forger would."""
    lines, previous = [], b""
    for index, (entry, _) in enumerate(listed):
        new = entry
        if index == change:
            new = replace(new, **fields)  # type: ignore[arg-type]
        if index > change:
            new = replace(new, previous_hash=previous)
        previous = new.hash
        lines.append(entry_line(new, previous))
    return lines

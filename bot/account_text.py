"""The story of one operation in sentences, from its journal: who said what, what every check found,
what was tried, and what each attempt proves.

Whatever somebody else wrote is revealed and stands on its own line's end, so that it can neither
hide anything nor pass for a line of ours. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from bot import check_text
from bot.card_parts import one_line
from bot.effect_words import EffectWords, words_for
from bot.reason_text import sentence
from executor.domain.approval import ApprovalStatus
from executor.domain.compensation import LEFT_BECAUSE
from executor.domain.effect import AttemptStatus, Capability, EffectStatus
from executor.domain.ids import operation_label
from executor.domain.journal import JournalEntry
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue
from executor.domain.recovery import MOST_LOOKUPS
from executor.domain.transition import BORN, Machine, Reason
from executor.engine.doubt import Account
from executor.engine.word import SAID, SAID_BY, WORD_GIVEN, WORD_REFUSED, Said

LONGEST_QUOTE = 400
_LONGEST_NAME = 80
_HIDDEN = frozenset({"request", "view_digest", "checks", "reason"})
"""Details that say nothing to a person, or are told in words."""
_WORD = _HIDDEN | {SAID, SAID_BY, "note"}

_CAPABILITIES: Mapping[str, str] = {
    Capability.TRANSACTIONAL.value: "which commits with its record",
    Capability.CONDITIONAL.value: "which refuses what rests on an old version",
    Capability.KEYED.value: "which drops repeats of its key for a while",
    Capability.LOOKUP.value: "which can be searched for it afterwards",
    Capability.OPAQUE.value: "which tells nothing afterwards",
}

_OPERATION: Mapping[str, str] = {
    OperationStatus.APPROVED.value: "It was approved, and due to be done.",
    OperationStatus.REJECTED.value: "It was rejected: nothing was done.",
    OperationStatus.EXPIRED.value: "It expired: nothing was done.",
    OperationStatus.SUPERSEDED.value: "It was replaced: nothing was done.",
    OperationStatus.WITHDRAWN.value: "It was withdrawn: nothing was done.",
    OperationStatus.STALE.value: "It was not opened: nothing was done.",
    OperationStatus.SUCCEEDED.value: "All of it is done.",
    OperationStatus.FAILED.value: "It failed: nothing was done.",
    OperationStatus.PARTIAL.value: "A part of it is done, and the rest is not.",
    OperationStatus.UNKNOWN.value: "From here on nobody knew whether it was done.",
    OperationStatus.COMPENSATED.value: "What had been done was undone.",
    OperationStatus.LEFT.value: "It was left as it is.",
}

_OPENED: Mapping[str, str] = {
    "opened": "Every check held: the approval was used up, and it was begun.",
    "sent_again": "Enough people had said to try it once more.",
    "recovers": "A machine went on with it, as its provider allows.",
}

_FINDINGS: Mapping[str, str] = {
    "found": "it was found",
    "not_found": "it was not found, which is no proof",
    "failed": "the search did not work",
    "marker": "our mark was found",
    "moved": "the ticket has moved without our mark",
    "unchanged": "the ticket has not moved, and has no mark of ours",
    "unread": "it could not be read",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What happened at one moment, and lines that belong below it."""

    at: datetime
    text: str
    below: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Spell it for a terminal."""
        moment = self.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        yield f"  {moment}  {self.text}"
        for line in self.below:
            yield f"      {line}"


def story(account: Account) -> list[Told]:
    """Tell everything about one operation, in order."""
    teller = _Teller(account)
    return [told for entry in account.entries for told in teller.tell(entry)]


@dataclass(slots=True)
class _Teller:
    """Knows which part an entry is about from the births before it."""

    account: Account
    kinds: dict[str, str] = field(default_factory=dict)
    numbers: dict[UUID, tuple[str, int]] = field(default_factory=dict)
    repeats: set[UUID] = field(default_factory=set)

    def tell(self, entry: JournalEntry) -> Iterator[Told]:
        """Tell one entry; what another one tells better is left out."""
        match entry.machine:
            case Machine.OPERATION:
                found = self._operation(entry)
            case Machine.EFFECT:
                found = self._effect(entry)
            case Machine.ATTEMPT:
                found = self._attempt(entry)
            case Machine.APPROVAL:
                found = self._approval(entry)
            case None:
                found = self._note(entry)
            case _:
                found = None
        if found is not None:
            text, *below = found
            yield Told(entry.recorded_at, text, tuple(below))

    def _operation(self, entry: JournalEntry) -> list[str] | None:
        target = entry.target or ""
        if entry.source == BORN:
            digest = str(entry.detail.get("digest", ""))[:16]
            revision = entry.detail.get("revision")
            return [
                f"{_name(entry.actor)} asked for it; what would be done was frozen as revision "
                f"{revision}, digest {digest}."
            ]
        if target == OperationStatus.EXECUTING:
            text = _OPENED.get(entry.event, f"It was begun ({one_line(entry.event, 40)}).")
        else:
            text = " ".join((_OPERATION.get(target, f"It is {target}."), self._why(entry))).strip()
        return [text, *check_text.told(entry.detail.get("checks"), entry.detail)]

    def _why(self, entry: JournalEntry) -> str:
        """Say the reason in words; the kind of effect is that of the first one not done."""
        code = entry.detail.get("reason")
        if not isinstance(code, str):
            return ""
        left = entry.detail.get(LEFT_BECAUSE)
        if isinstance(left, Mapping):
            return sentence(Reason(code), left)
        undone = [
            e.kind.value
            for e in self.account.record.effects
            if e.status is not EffectStatus.APPLIED
        ]
        detail: dict[str, JsonValue] = {**entry.detail, **({"effect": undone[0]} if undone else {})}
        try:
            return sentence(Reason(code), detail)
        except ValueError:
            return code

    def _effect(self, entry: JournalEntry) -> list[str] | None:
        if entry.source == BORN:
            self.kinds[str(entry.entity_id)] = str(entry.detail.get("kind", ""))
            return None
        words = self._words(str(entry.entity_id))
        if (entry.source, entry.target) == (EffectStatus.PLANNED, EffectStatus.APPLIED):
            return [f"{words.subject} was {words.done}, in the same commit as its record."]
        if entry.target == EffectStatus.SKIPPED:
            return [f"{words.subject} was not {words.done}, and will not be."]
        return None

    def _attempt(self, entry: JournalEntry) -> list[str] | None:
        if entry.source == BORN:
            effect = str(entry.detail.get("effect", ""))
            number = entry.detail.get("number")
            self.numbers[entry.entity_id] = (effect, number if isinstance(number, int) else 0)
            words, can = self._words(effect), str(entry.detail.get("capability", ""))
            return [
                f"Attempt {number} at having {_it(words)} {words.done} was recorded before its "
                f"first byte: through {self._provider(effect)}, {_CAPABILITIES.get(can, can)}.",
                *check_text.told(entry.detail.get("checks"), entry.detail),
            ]
        effect, number = self.numbers.get(entry.entity_id, ("", 0))
        done = self._words(effect).done
        text = {
            AttemptStatus.APPLIED.value: f"Attempt {number} was accepted: it was {done}.",
            AttemptStatus.NOT_APPLIED.value: f"Attempt {number} failed: it was not {done}.",
            AttemptStatus.UNKNOWN.value: (
                f"What came of attempt {number} is not known: it may have been {done}."
            ),
        }.get(entry.target or "", f"Attempt {number} is {entry.target}.")
        evidence = entry.detail.get("evidence")
        return [f"{text} {_source(entry.actor)}", *_evidence(evidence)]

    def _approval(self, entry: JournalEntry) -> list[str] | None:
        if entry.source == BORN:
            quorum = entry.detail.get("quorum")
            if entry.detail.get("by_policy") is True:
                return ["An approval was opened, for which the policy asks no person."]
            people = "one person" if quorum == 1 else f"{quorum} people"
            if "repeats" in entry.detail:
                self.repeats.add(entry.entity_id)
                return [f"An approval by {people} of trying it once more was opened."]
            return [f"An approval by {people} was opened."]
        which = "approval of trying it once more" if entry.entity_id in self.repeats else "approval"
        if entry.event == "policy_consents":
            return [f"The policy itself consented ({_name(entry.actor)})."]
        return {
            ApprovalStatus.GRANTED.value: [f"The {which} is granted: enough people said yes."],
            ApprovalStatus.CONSUMED.value: [f"The {which} was used up."],
            ApprovalStatus.EXPIRED.value: [f"The {which} expired."],
            ApprovalStatus.VOID.value: [f"The {which} ended, for there was nothing left to do."],
            ApprovalStatus.WITHDRAWN.value: [f"The {which} ended unused."],
        }.get(entry.target or "")

    def _note(self, entry: JournalEntry) -> list[str] | None:
        who, detail = _name(entry.actor), entry.detail
        _, number = self.numbers.get(entry.entity_id, ("", 0))
        match entry.event:
            case "presented":
                return [f"The card was shown in {one_line(str(detail.get('channel')), 40)}."]
            case "voted":
                return [
                    f"{who} voted to {one_line(str(detail.get('vote')), 20)}.",
                    *self._said(entry),
                ]
            case "decision_refused" if "asked" in detail:
                asked = one_line(str(detail["asked"]), 20)
                return [f"{who} asked to {asked} it, which did not count. {self._why(entry)}"]
            case "decision_refused":
                vote = one_line(str(detail.get("vote")), 20)
                return [f"A click by {who} to {vote} did not count. {self._why(entry)}"]
            case _ if entry.event == WORD_GIVEN:
                return [f"{who} said {self._word(entry)}.", *_quoted(detail.get("note"))]
            case _ if entry.event == WORD_REFUSED:
                return [f"What {who} said did not count. {self._why(entry)}"]
            case "question_asked":
                return [f"{who} asked the agent.", *_quoted(detail.get("question"))]
            case "question_answered":
                return ["The agent answered.", *_quoted(detail.get("answer"))]
            case "question_not_answered":
                return [f"The agent did not answer. {self._why(entry)}"]
            case "question_refused":
                return [f"A question by {who} was not put to the agent. {self._why(entry)}"]
            case "looking_up":
                return [
                    f"The provider is asked about attempt {number} "
                    f"(search {detail.get('number')} of {MOST_LOOKUPS})."
                ]
            case "looked_up":
                found = _FINDINGS.get(str(detail.get("kind")), str(detail.get("kind")))
                return [f"Of attempt {number}: {found}.", *_evidence(detail.get("evidence"))]
            case "recovery_decided":
                return [f"What comes next for attempt {number}: {_decided(detail)}."]
            case "reopening_proposed":
                return [f"{_numbered(detail)} was proposed, to open the ticket again."]
            case "desk_silent":
                desk = one_line(str(detail.get("desk")), _LONGEST_NAME)
                return [f"{desk} did not tell, so that it waits.", *_quoted(detail.get("problem"))]
            case _ if entry.event.startswith("accepted_then_"):
                became = entry.event.removeprefix("accepted_then_")
                return [
                    f"The email had been accepted, and {became} later. {_source(entry.actor)}",
                    *_evidence({k: v for k, v in detail.items() if k != "operation"}),
                ]
            case _:
                event = one_line(entry.event.replace("_", " "), 60)
                return [f"Note: {event}, by {who}.", *_evidence(detail)]

    def _said(self, entry: JournalEntry) -> list[str]:
        """Quote what a voter wrote; it stands with the vote, not in the journal."""
        return [
            line
            for vote in self.account.record.approval.votes
            if (vote.principal, vote.vote.value) == (entry.actor, entry.detail.get("vote"))
            for line in _quoted(vote.note)
        ]

    def _word(self, entry: JournalEntry) -> str:
        words = words_for(str(entry.detail.get("effect", "")))
        missing = entry.detail.get("still_needed")
        more = f" ({missing} more have to say so)" if missing else ""
        match entry.detail.get("said"):
            case Said.SENT:
                return f"that it was {words.done}"
            case Said.NOT_SENT:
                return f"that it was not {words.done}"
            case Said.SEND_AGAIN:
                return f"that it was not {words.done}, and to {words.again}{more}"
            case Said.LEAVE:
                return "to leave it as it is"
            case other:
                return one_line(str(other), 40)

    def _words(self, effect: str) -> EffectWords:
        return words_for(self.kinds.get(effect, ""))

    def _provider(self, effect: str) -> str:
        kind = self.kinds.get(effect, "")
        named = [e.provider for e in self.account.record.effects if e.kind.value == kind]
        return one_line(named[0], _LONGEST_NAME) if named else "its provider"


def _numbered(detail: JsonObject) -> str:
    number = detail.get("number")
    return operation_label(number) if isinstance(number, int) else "An operation"


def _it(words: EffectWords) -> str:
    return words.subject[:1].lower() + words.subject[1:]


def _name(actor: str) -> str:
    return one_line(actor, _LONGEST_NAME)


def _source(actor: str) -> str:
    """Say who found out."""
    if actor.startswith("webhook:"):
        return f"A webhook of {_name(actor.removeprefix('webhook:'))} says so."
    if actor == "recovery":
        return "A search found that out."
    if actor.startswith(("slack:", "operator:")):
        return f"That is the word of {_name(actor)}."
    return f"Recorded by {_name(actor)}."


def _decided(detail: JsonObject) -> str:
    until, why = detail.get("until"), detail.get("why")
    said = one_line(str(detail.get("next")), 60)
    if isinstance(until, str):
        said += f" until {one_line(until, 40)}"
    return f"{said}, for {one_line(why, 120)}" if isinstance(why, str) else said


def _quoted(text: object) -> list[str]:
    return [f"> {one_line(text, LONGEST_QUOTE)}"] if isinstance(text, str) and text else []


def _evidence(evidence: object) -> list[str]:
    """Spell what a conclusion rests on."""
    if not isinstance(evidence, Mapping):
        return []
    told_above = _WORD if SAID_BY in evidence else _HIDDEN
    shown = {key: value for key, value in evidence.items() if key not in told_above}
    lines = []
    for key, value in shown.items():
        spelt = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{one_line(str(key), 40)}: {one_line(spelt, LONGEST_QUOTE)}")
    return lines

"""One run's record, told in order: its steps, its votes, its attempts, and the moves of its parts.

Everything told stands in the steps or in the journal; what a chain that does not hold says is told
as well, under a line that says so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from bot.sandbox.page import JsonObject
from executor.domain.ids import PrincipalId, slack_user
from executor.domain.journal import JournalEntry
from executor.domain.payloads import JsonValue
from executor.domain.transition import BORN, Machine
from executor.engine.status import RunHistory, RunStatusLine

LONGEST_TEXT = 4_000

_NOBODY = frozenset({"bot", "clock", "executor"})

_NAMES = {
    Machine.RUN: "Run",
    Machine.OPERATION: "Operation",
    Machine.EFFECT: "Effect",
    Machine.ATTEMPT: "Attempt",
    Machine.APPROVAL: "Approval",
    Machine.RESERVATION: "Budget",
}


def told(line: RunStatusLine, history: RunHistory, people: Mapping[str, str]) -> list[JsonObject]:
    """Tell a run as the page's timeline; ``people`` names Slack's user ids."""
    teller = _Teller(line, history, people)
    # At one moment the cause (a step, a vote) comes before what it moved: sorting is stable.
    entries: list[tuple[datetime, JsonObject]] = []
    for step in history.steps:
        title, text = _step(step.kind, step.content)
        entries.append((step.recorded_at, _entry(step.recorded_at, "step", title, text, "")))
    for row in history.journal:
        entries.append((row.recorded_at, teller.journal(row)))
    entries.sort(key=lambda pair: pair[0])
    listed = [entry for _, entry in entries]
    if history.broken is not None:
        at = history.journal[-1].recorded_at if history.journal else line.created_at
        problem = f"entry {history.broken.position}: {history.broken.problem}"
        listed.append(_entry(at, "note", "The journal's chain does not hold", problem, "failed"))
    return listed


def _entry(at: datetime, kind: str, title: str, text: str, state: str) -> JsonObject:
    return {
        "at": at.isoformat(),
        "kind": kind,
        "title": title,
        "text": text[:LONGEST_TEXT],
        "state": state,
    }


def _step(kind: str, content: object) -> tuple[str, str]:
    assert isinstance(content, dict), "a step's content is a JSON object"
    if kind == "question":
        return "The run took up a question", _spelled(content.get("question"))
    if kind != "model":
        return "The tool answered", _spelled(content.get("result"))
    calls = content.get("tool_calls") or []
    names = ", ".join(str(call["name"]) for call in calls)
    arguments = "\n".join(_spelled(call["arguments"]) for call in calls)
    text = "\n".join(part for part in (str(content.get("text") or ""), arguments) if part)
    return (f"The model asked for {names}" if calls else "The model spoke"), text


class _Teller:
    """Tells journal entries with the names of people, and of the effects that parts belong to."""

    def __init__(self, line: RunStatusLine, history: RunHistory, people: Mapping[str, str]) -> None:
        self._line = line
        self._people = people
        self._effects = {
            row.entity_id: str(row.detail.get("kind", "effect"))
            for row in history.journal
            if row.machine is Machine.EFFECT and row.source == BORN
        }

    def journal(self, row: JournalEntry) -> JsonObject:
        """Tell one entry."""
        text = _detail(row)
        if row.machine is None:
            kind = "decision" if row.event in ("voted", "decision_refused") else "note"
            who = "" if row.actor in _NOBODY else f" by {self._name(row.actor)}"
            title = f"{row.event.replace('_', ' ').capitalize()}{who}"
            return _entry(row.recorded_at, kind, title, text, str(row.detail.get("vote", "")))
        name = self._effects.get(row.entity_id, _NAMES[row.machine])
        if row.machine is Machine.RUN and row.source == BORN:
            title = f"{self._name(self._line.requester)} asked: {self._line.goal}"
        elif row.source == BORN:
            title = f"{name}: {row.target}"
        else:
            title = f"{name}: {row.source} → {row.target}"
        kind = "attempt" if row.machine in (Machine.ATTEMPT, Machine.EFFECT) else "move"
        return _entry(row.recorded_at, kind, title, text, row.target or "")

    def _name(self, principal: str) -> str:
        user = slack_user(PrincipalId(principal))
        return principal if user is None else self._people.get(user[1], user[1])


def _detail(row: JournalEntry) -> str:
    return "\n".join(f"{key}: {_spelled(value)}" for key, value in sorted(row.detail.items()))


def _spelled(value: JsonValue | object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

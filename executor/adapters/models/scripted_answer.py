"""What the scripted model says when a person asks about what it has proposed: facts it has read.

It has no language to understand a question with, so it tells what the proposal rests on, and says
that this is all it can do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from executor.adapters.models.scripted_reading import Known, TicketRead
from executor.engine.ports import Question, Turn

_LONGEST_QUOTE = 240


def open_questions(turns: Sequence[Turn]) -> list[Question]:
    """List what people have asked since the last reply, if nothing else has come in since then."""
    news = turns[-1].afterwards if turns else ()
    asked = [item for item in news if isinstance(item, Question)]
    return asked if len(asked) == len(news) else []


def answer_to(questions: Sequence[Question], turns: Sequence[Turn], known: Known) -> str:
    """Answer questions about one or several proposals."""
    about = ", ".join(dict.fromkeys(question.operation for question in questions))
    lines = [f"About {about}: I only tell what I have read, for I follow a script."]
    for ticket_id in _proposed(turns):
        ticket = known.tickets.get(ticket_id)
        if ticket is not None and ticket.read is not None:
            lines += _grounds(ticket_id, ticket.read)
    lines.append("My proposal stays as it is. Reject it with a reason, and I write another one.")
    return "\n".join(lines)


def _proposed(turns: Sequence[Turn]) -> list[str]:
    """Name the tickets of what still waits, in order."""
    waiting = [
        str(answer.call.arguments.get("ticket_id", ""))
        for turn in turns
        for answer in turn.results
        if answer.result.get("status") == "awaiting" and isinstance(answer.call.arguments, Mapping)
    ]
    return list(dict.fromkeys(waiting))


def _grounds(ticket_id: str, read: TicketRead) -> list[str]:
    lines = [f"Ticket {ticket_id}, version {read.version}, is about “{_quoted(read.subject)}”."]
    answers = read.answers()
    if answers:
        lines.append(f"We told the customer last: “{_quoted(answers[-1])}”")
    if read.confirmed():
        lines.append("The customer then said that it is settled, so I propose to close it.")
    else:
        lines.append("The customer has not written since, so I propose to close it.")
    return lines


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[: _LONGEST_QUOTE - 1]}…"

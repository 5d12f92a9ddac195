"""What an operation is about, as its card shows it: in full, or shortened where that cannot fit.

``content`` shows every field that an approval binds, exactly. ``shortened`` shows heads and tails
of the same; a card that is drawn from it carries no Approve. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.card_compensation import Verbs, undone_of, verbs_of
from bot.card_email import Body, EmailView, email_view
from bot.card_parts import (
    NOTHING,
    Item,
    Literal,
    Paragraph,
    Piece,
    chunks,
    excerpt,
    one_line,
    person,
    shorten,
)
from bot.card_status import changes, status_of
from bot.effect_words import words_for
from bot.visible import Finding, merge, reveal
from executor.domain.ids import is_policy, operation_label, run_label
from executor.engine.card_record import OperationRecord

LONGEST_CHUNK = 3_000
"""Characters of one literal block in the full view."""

_LONGEST_TITLE = 150
_MOST_NAMED = 3
_LONGEST_GOAL = 300
_LONGEST_WHY = 300
_LONGEST_PROMISE = 160
_MOST_PROMISES = 3
_LONGEST_WARNING = 700
_MOST_WARNED_OF = 8
_LONGEST_FIELD = 120
_MOST_ROWS = 3
_NAME_WIDTH = 10


@dataclass(frozen=True, slots=True)
class Part:
    """One body of the email, in one or more literal blocks."""

    chunks: tuple[str, ...]
    characters: int
    lines: int


@dataclass(frozen=True, slots=True)
class OperationView:
    """Everything that the template of an operation's card puts into blocks."""

    title: str
    status: tuple[Item, ...]
    requester: Piece
    run: str
    operation: str
    goal: str
    ticket: tuple[str, ...]
    changes: Literal | None
    undoes: tuple[Item, ...]
    verbs: Verbs
    email: EmailView | None
    warning: str
    fields: tuple[str, ...]
    recipients: int
    text: Part | None
    has_html: bool
    html: Part | None
    why: str
    by_policy: bool
    promises: tuple[str, ...]
    digest: str


def content(record: OperationRecord) -> OperationView:
    """Show everything, exactly."""
    ticket = record.ticket
    revealed = [(name, reveal(fact, one_line=True)) for name, fact in _facts(record)]
    email = None if record.email is None else email_view(record.email)
    findings = tuple(f for _, shown in revealed for f in shown.warnings)
    if email is not None:
        findings += email.findings
    return OperationView(
        title=title_of(record),
        status=tuple(item for item in status_of(record) if item != Paragraph(())),
        requester=person(record.requester, record.tenant_id),
        run=run_label(record.run_number),
        operation=operation_label(record.number),
        goal=excerpt(record.goal, _LONGEST_GOAL).text,
        ticket=("\n".join(_row(name, shown.text or NOTHING) for name, shown in revealed),),
        changes=changes(ticket.recent_changes) if ticket.recent_changes else None,
        undoes=undone_of(record),
        verbs=verbs_of(record),
        email=email,
        warning=_warning(merge(findings), email),
        fields=() if email is None else (_rows(email),),
        recipients=0 if email is None else email.recipients,
        text=None if email is None else _part(email.text),
        has_html=email is not None and email.has_html,
        html=None if email is None or email.html is None else _part(email.html),
        why=one_line(record.why, _LONGEST_WHY),
        by_policy=any(is_policy(vote.principal) for vote in record.approval.votes),
        promises=_promises(record),
        digest=record.digest.hex(),
    )


def shortened(record: OperationRecord, view: OperationView, room: int) -> OperationView:
    """Shorten everything so that both bodies together take at most about ``room`` characters."""
    ticket = [_row(name, one_line(fact, _LONGEST_FIELD)) for name, fact in _facts(record)]
    return replace(
        view,
        ticket=("\n".join(ticket),),
        fields=() if view.email is None else ("\n".join(_few_rows(view.email)),),
        text=None
        if view.text is None
        else _shorten_part(view.text, room if view.html is None else room * 2 // 3),
        html=None if view.html is None else _shorten_part(view.html, room // 3),
    )


def in_chunks(view: OperationView) -> OperationView:
    """Cut what is long into several literal blocks; nothing is left out."""
    return replace(
        view,
        ticket=_chunks(view.ticket),
        fields=_chunks(view.fields),
        text=None if view.text is None else replace(view.text, chunks=_chunks(view.text.chunks)),
        html=None if view.html is None else replace(view.html, chunks=_chunks(view.html.chunks)),
    )


def _chunks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(chunk for text in texts for chunk in chunks(text, LONGEST_CHUNK))


def _promises(record: OperationRecord) -> tuple[str, ...]:
    """Say once what each provider promises, of however many parts."""
    told = dict.fromkeys(one_line(effect.promise, _LONGEST_PROMISE) for effect in record.effects)
    return tuple(told)[:_MOST_PROMISES]


def _facts(record: OperationRecord) -> tuple[tuple[str, str], ...]:
    ticket = record.ticket
    return (
        ("Ticket", ticket.id),
        ("Version", str(ticket.version)),
        ("Desk", ticket.desk),
        ("Subject", ticket.subject),
    )


def title_of(record: OperationRecord) -> str:
    """Say in one line what an operation would do."""
    ticket = one_line(record.ticket.id, _LONGEST_TITLE - 100)
    titles = [words_for(effect.kind.value).title for effect in record.effects[:_MOST_NAMED]]
    title = " and ".join(one.replace("{ticket}", ticket) for one in titles)
    return title[:1].upper() + title[1:] if title else "Nothing to do"


def _row(name: str, value: str) -> str:
    return f"{name:<{_NAME_WIDTH}} {value}"


def _rows(email: EmailView) -> str:
    return "\n".join(_row(name, value) for name, value in email.fields)


def _few_rows(email: EmailView) -> list[str]:
    """Keep the first rows of each field, so that no field can push another one out."""
    shown: list[str] = []
    counts: dict[str, int] = {}
    for name, value in email.fields:
        group = name.split(" ", 1)[0]
        counts[group] = counts.get(group, 0) + 1
        if counts[group] <= _MOST_ROWS:
            shown.append(_row(shorten(name, 40), shorten(value, _LONGEST_FIELD)))
    more = {group: count - _MOST_ROWS for group, count in counts.items() if count > _MOST_ROWS}
    return shown + [_row(group, f"({count} more)") for group, count in more.items()]


def _part(body: Body) -> Part:
    return Part((body.text,), body.characters, body.lines)


def _shorten_part(part: Part, room: int) -> Part:
    return replace(part, chunks=tuple(shorten(chunk, room) for chunk in part.chunks))


def _warning(findings: tuple[Finding, ...], email: EmailView | None) -> str:
    """List what was made visible; an empty string where nothing was."""
    lines = [f"{f.count} × {f.name}: {f.trick.value}" for f in findings[:_MOST_WARNED_OF]]
    if len(findings) > _MOST_WARNED_OF:
        kinds = len(findings) - _MOST_WARNED_OF
        total = sum(f.count for f in findings[_MOST_WARNED_OF:])
        lines.append(f"{total} × {kinds} more kinds")
    return shorten(
        "\n".join((*lines, *(() if email is None else email.spellings))), _LONGEST_WARNING
    )

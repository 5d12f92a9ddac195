"""What an operation is about, as its card shows it: in full, or shortened where that cannot fit.

``content`` shows every field that an approval binds, exactly; only what explains it, the goal and
what happened on the ticket, takes no more than ``Room`` gives. ``shortened`` shows heads and tails
of the rest as well; a card that is drawn from it carries no Approve. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.about_text import limit_words
from bot.card_compensation import Verbs, undone_of, verbs_of
from bot.card_email import Body, EmailView, email_view
from bot.card_parts import (
    Item,
    Link,
    Literal,
    Paragraph,
    Piece,
    Words,
    chunks,
    excerpt,
    length,
    one_line,
    person,
    shorten,
)
from bot.card_revision import Revision, revision_of
from bot.card_status import status_of
from bot.card_target import arguments, facts, label, why_raised
from bot.card_ticket import LONGEST_CHANGE_IN_FULL, changes, shortens, ticket_url
from bot.effect_words import words_for
from bot.trick import CLOSING, OPENING, ORDINARY
from bot.typed_money import dollars
from bot.visible import EMPTY, END, Finding, merge, reveal, runs_right_to_left
from executor.domain.effect import EffectKind
from executor.domain.ids import is_policy, operation_label, run_label
from executor.engine.card_record import OperationRecord

LONGEST_CHUNK = 3_000
"""Characters of one literal block in the full view."""

LONGEST_TITLE = 150
"""Characters of a title, which is a header in Slack."""

_LONGEST_TICKET_IN_TITLE = 40
_LONGEST_TOOL_IN_TITLE = 80
_MOST_NAMED = 3
_LONGEST_WHY = 300
_LONGEST_PROMISE = 160
_MOST_PROMISES = 3
_LONGEST_VERSION = 80
_LONGEST_WARNING = 700
_LONGEST_LINKS = 700
_MOST_NAMED_OF_A_KIND = 4
_LONGEST_BODIES = 2_000
_LONGEST_FIELD = 120
_MOST_ROWS = 3
_NAME_WIDTH = 10

_WARNING = (
    "Warning: some of this hides or deceives. It is written out below, and addresses as they are "
    "really spelt."
)
_WRITTEN_OUT = (
    "Written out below: what cannot be told by its look, and addresses as they are really spelt."
)
_LEGEND = (
    f" {OPENING}U+…{CLOSING} stands for one character, ×9 for nine of them. "
    f"An {OPENING} that is part of the text is written out too."
)
_FROM_THE_RIGHT = (
    "Some of this is written from right to left: digits and signs beside it may be shown in "
    "another order than they are sent in."
)


@dataclass(frozen=True, slots=True)
class Room:
    """How many characters there are for what explains an operation.

    Those are its goal, each change of its ticket, and what a revision says otherwise than before.
    """

    goal: int
    change: int
    revision: int


IN_FULL = Room(4_000, LONGEST_CHANGE_IN_FULL, 60_000)
ON_A_CARD = Room(600, 400, 3_000)
IN_BRIEF = Room(200, 120, 0)


@dataclass(frozen=True, slots=True)
class Part:
    """One long text that would leave, in one or more literal blocks."""

    chunks: tuple[str, ...]
    characters: int
    lines: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """Literal text under a bold label of ours, and what we say beside the label."""

    label: str
    chunks: tuple[str, ...]
    beside: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True)
class OperationView:
    """Everything that the template of an operation's card puts into blocks.

    ``explained`` tells whether all is there that explains it.
    """

    title: str
    status: tuple[Item, ...]
    requester: Piece
    by_agent: bool
    editor: Piece | None
    run: str
    operation: str
    goal: tuple[str, ...]
    revision: tuple[Item, ...]
    target: Labelled
    arguments: Part | None
    changes: tuple[Item, ...]
    undoes: tuple[Item, ...]
    raises: tuple[Item, ...]
    verbs: Verbs
    email: EmailView | None
    warning: Labelled | None
    fields: tuple[str, ...]
    links: tuple[str, ...]
    text: Part | None
    html: Part | None
    notes: tuple[str, ...]
    digest: str
    explained: bool


def content(record: OperationRecord, room: Room) -> OperationView:
    """Show everything that is bound, exactly, and of the rest what there is room for."""
    revealed = [(name, reveal(fact, one_line=True)) for name, fact in facts(record)]
    email = None if record.email is None else email_view(record.email)
    through = [reveal(provider, one_line=True) for provider in _providers(record)]
    findings = tuple(f for _, shown in revealed for f in shown.findings)
    findings += tuple(f for shown in through for f in shown.findings)
    if email is not None:
        findings += email.findings
    called, found = _arguments(record)
    findings += found
    goal, changed, revision = _explaining(record, room)
    rows = [(name, shown.text or EMPTY) for name, shown in revealed]
    return OperationView(
        title=title_of(record),
        status=tuple(item for item in status_of(record) if item != Paragraph(())),
        requester=person(record.requester, record.tenant_id),
        by_agent=record.requester in record.agents,
        editor=None if record.editor is None else person(record.editor, record.tenant_id),
        run=run_label(record.run_number),
        operation=operation_label(record.number),
        goal=(goal.text,),
        revision=revision.items,
        target=Labelled(label(record), ("\n".join(_row(*row) for row in rows),), _link(record)),
        arguments=called,
        changes=changed,
        undoes=undone_of(record),
        raises=why_raised(record),
        verbs=verbs_of(record),
        email=email,
        warning=_warning(merge(findings), email),
        fields=() if email is None else (_rows(email, [t.text or EMPTY for t in through]),),
        links=() if email is None or not email.links else ("\n".join(email.links),),
        text=None if email is None else _part(email.text),
        html=None if email is None or email.html is None else _part(email.html),
        notes=_notes(record, email),
        digest=record.digest.hex(),
        explained=_is_whole(goal, changed, revision),
    )


def in_room(record: OperationRecord, view: OperationView, room: Room) -> OperationView:
    """Give what explains it another room; everything else stays as it is."""
    goal, changed, revision = _explaining(record, room)
    return replace(
        view,
        goal=(goal.text,),
        revision=revision.items,
        changes=changed,
        explained=_is_whole(goal, changed, revision),
    )


def shortened(record: OperationRecord, view: OperationView, room: int) -> OperationView:
    """Shorten everything so that both bodies together take at most about ``room`` characters.

    Who wants to read more reads all of it in the full view.
    """
    view, room = in_room(record, view, IN_BRIEF), min(room, _LONGEST_BODIES)
    target = [_row(name, one_line(fact, _LONGEST_FIELD)) for name, fact in facts(record)]
    through = [one_line(provider, _LONGEST_FIELD) for provider in _providers(record)]
    return replace(
        view,
        target=replace(view.target, chunks=("\n".join(target),)),
        arguments=view.arguments and _shorten_part(view.arguments, room),
        undoes=undone_of(record, whole=False),
        warning=_shorten(view.warning, _LONGEST_WARNING),
        fields=() if view.email is None else ("\n".join(_few_rows(view.email, through)),),
        links=tuple(shorten(links, _LONGEST_LINKS) for links in view.links),
        text=None
        if view.text is None
        else _shorten_part(view.text, room if view.html is None else room * 2 // 3),
        html=None if view.html is None else _shorten_part(view.html, room // 3),
    )


def in_chunks(view: OperationView) -> OperationView:
    """Cut what is long into several literal blocks; nothing is left out."""
    return replace(
        view,
        goal=_chunks(view.goal),
        target=replace(view.target, chunks=_chunks(view.target.chunks)),
        arguments=view.arguments and replace(view.arguments, chunks=_chunks(view.arguments.chunks)),
        warning=view.warning and replace(view.warning, chunks=_chunks(view.warning.chunks)),
        fields=_chunks(view.fields),
        links=_chunks(view.links),
        text=None if view.text is None else replace(view.text, chunks=_chunks(view.text.chunks)),
        html=None if view.html is None else replace(view.html, chunks=_chunks(view.html.chunks)),
    )


def title_of(record: OperationRecord) -> str:
    """Say in one line what an operation would do."""
    named = _names(record)
    titles = [words_for(effect.kind.value).title for effect in record.effects[:_MOST_NAMED]]
    for place, name in named.items():
        titles = [one.replace(place, name) for one in titles]
    title = " and ".join(titles)
    whole = title[:1].upper() + title[1:] if title else "Nothing to do"
    return shorten(whole, LONGEST_TITLE)


def _names(record: OperationRecord) -> dict[str, str]:
    """Name what the title leaves room for."""
    if record.tool_call is not None:
        call = record.tool_call
        server = one_line(call.server, _LONGEST_TICKET_IN_TITLE)
        return {"{tool}": f"{server}.{one_line(call.tool, _LONGEST_TOOL_IN_TITLE)}"}
    if record.raising is not None:
        raising = record.raising.raising
        of, to = dollars(raising.current_microusd), dollars(raising.new_microusd)
        return {"{limit}": f"{limit_words(raising.limit)} from {of} to {to}"}
    return {"{ticket}": one_line(record.target.id, _LONGEST_TICKET_IN_TITLE)}


def _arguments(record: OperationRecord) -> tuple[Part | None, tuple[Finding, ...]]:
    """Show the arguments of a tool, with what had to be made visible in them."""
    written = arguments(record)
    if written is None:
        return None, ()
    shown = reveal(written)
    lines = written.count("\n") + 1
    return Part((shown.text + END,), length(written), lines), shown.findings


def _explaining(record: OperationRecord, room: Room) -> tuple[Literal, tuple[Item, ...], Revision]:
    """Tell the goal, the changes of the ticket, and what was said before."""
    return (
        excerpt(record.goal, room.goal),
        () if record.ticket is None else changes(record.ticket.recent_changes, room.change),
        revision_of(record, room.revision, LONGEST_CHUNK),
    )


def _is_whole(goal: Literal, changed: tuple[Item, ...], revision: Revision) -> bool:
    return revision.whole and not shortens((goal, *changed))


def _chunks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(chunk for text in texts for chunk in chunks(text, LONGEST_CHUNK))


def _providers(record: OperationRecord) -> list[str]:
    """Name the accounts that an email leaves through; there is one."""
    return [e.provider for e in record.effects if e.kind is EffectKind.EMAIL_SEND][:1]


def _link(record: OperationRecord) -> tuple[Piece, ...]:
    ticket = record.ticket
    url = None if ticket is None else ticket_url(ticket.desk, ticket.id)
    return () if url is None else (Words(" "), Link(url, "open it at the desk"))


def _notes(record: OperationRecord, email: EmailView | None) -> tuple[str, ...]:
    """Say why somebody is asked, under which policy, and what the providers promise."""
    by_policy = any(is_policy(vote.principal) for vote in record.approval.votes)
    asked = "Why nobody was asked: " if by_policy else "Why somebody has to approve: "
    promised = dict.fromkeys(one_line(e.promise, _LONGEST_PROMISE) for e in record.effects)
    mirrored = email is not None and email.runs_right_to_left
    mirrored = mirrored or runs_right_to_left(arguments(record) or "")
    return (
        *((_FROM_THE_RIGHT,) if mirrored else ()),
        asked + one_line(record.why, _LONGEST_WHY),
        *tuple(promised)[:_MOST_PROMISES],
        f"Policy {one_line(record.policy_version, _LONGEST_VERSION)}",
    )


def _row(name: str, value: str) -> str:
    return f"{name:<{_NAME_WIDTH}} {value}"


def _rows(email: EmailView, through: Sequence[str]) -> str:
    rows = [*email.fields, *(("Through", provider) for provider in through)]
    return "\n".join(_row(name, value) for name, value in rows)


def _few_rows(email: EmailView, through: Sequence[str]) -> list[str]:
    """Keep the first rows of each field, so that no field can push another one out."""
    shown: list[str] = []
    counts: Counter[str] = Counter()
    for name, value in [*email.fields, *(("Through", provider) for provider in through)]:
        counts[name] += 1
        if counts[name] <= _MOST_ROWS:
            shown.append(_row(name, shorten(value, _LONGEST_FIELD)))
    more = {name: count - _MOST_ROWS for name, count in counts.items() if count > _MOST_ROWS}
    return shown + [_row(name, f"({count} more)") for name, count in more.items()]


def _part(body: Body) -> Part:
    return Part((body.text,), body.characters, body.lines)


def _shorten_part(part: Part, room: int) -> Part:
    return replace(part, chunks=tuple(shorten(chunk, room) for chunk in part.chunks))


def _shorten(labelled: Labelled | None, room: int) -> Labelled | None:
    if labelled is None:
        return None
    return replace(labelled, chunks=tuple(shorten(chunk, room) for chunk in labelled.chunks))


def _warning(findings: tuple[Finding, ...], email: EmailView | None) -> Labelled | None:
    """List what was made visible, and what else may deceive; ``None`` where nothing does."""
    warned = () if email is None else email.warnings
    spelt = () if email is None else email.spellings
    lines = (*warned, *_counted(findings), *spelt)
    if not lines:
        return None
    deceives = warned or any(f.deceives for f in findings)
    beside = (Words(_LEGEND),) if findings else ()
    return Labelled(_WARNING if deceives else _WRITTEN_OUT, ("\n".join(lines),), beside)


def _counted(findings: tuple[Finding, ...]) -> list[str]:
    """Name the characters and how often they are there, what deceives first; of many, the rest."""
    lines = []
    for trick in sorted({f.trick for f in findings}, key=lambda t: (t in ORDINARY, t)):
        of_it = [f for f in findings if f.trick is trick]
        lines += [f"{f.count} × {f.name}: {trick.value}" for f in of_it[:_MOST_NAMED_OF_A_KIND]]
        rest = sum(f.count for f in of_it[_MOST_NAMED_OF_A_KIND:])
        lines += [f"{rest} × other characters: {trick.value}"] * (rest > 0)
    return lines

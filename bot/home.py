"""A person's Home tab: what waits for them, what they have running, what nobody knows yet. Pure.

What others wrote stands in literal text alone. Everything is bounded, and says what is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.about_text import resource_words
from bot.card_parts import (
    Item,
    Literal,
    Piece,
    Words,
    excerpt,
    moment,
    paragraph,
    person,
)
from bot.operation_value import operation_value
from bot.pending_list import ListLine, left_out, pending_lines, pending_title, roughly
from bot.state_text import run_state
from bot.terms_text import who_words
from executor.domain.ids import operation_label, run_label, slack_principal
from executor.engine.home import Home, InDoubt, OwnRun

MOST_OF_EACH = 10
"""Lines of each part; all of them take at most 70 of the 100 blocks that a Home tab holds."""

_ALL = "/signoff pending lists more of them."
_LONGEST_GOAL = 200
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run, its goal, and what its Cancel carries."""

    told: Item
    goal: Literal
    value: str
    name: str


@dataclass(frozen=True, slots=True)
class HomeView:
    """Everything that the template of a Home tab puts into blocks.

    ``note`` tells what the last press there came to; ``problem`` is why there is nothing else.
    """

    note: str
    problem: str
    pending: str
    lines: tuple[ListLine, ...]
    left_out: str
    runs: tuple[RunLine, ...]
    more_runs: str
    doubts: tuple[ListLine, ...]
    more_doubts: str
    as_of: Item | None


def home_view(home: Home, note: str = "") -> HomeView:
    """Show everything that concerns a person."""
    pending = home.pending
    return HomeView(
        note,
        "",
        pending_title(pending),
        pending_lines(pending, home.tenant_id),
        " ".join(filter(None, (left_out(pending, pending.more), _ALL if pending.more else ""))),
        tuple(_run(run, home) for run in home.runs),
        f"{home.more_runs} older ones are not listed here." if home.more_runs else "",
        tuple(ListLine(_doubt(doubt, home), operation_value(doubt.id)) for doubt in home.doubts),
        "More is in doubt than is listed here." if home.more_doubts else "",
        paragraph("As it was at ", moment(pending.now), ". Open this tab again to look again."),
    )


def refused_home(problem: str, note: str = "") -> HomeView:
    """Show why a person sees nothing here."""
    return HomeView(note, problem, "", (), "", (), "", (), "", None)


def _run(run: OwnRun, home: Home) -> RunLine:
    name, state = run_label(run.number), run_state(run.status, run.at_work)
    told: list[Piece | str] = [
        Words(f"{name}: {state}. ", bold=True),
        f"Started {roughly(home.pending.now - run.created_at)} ago.",
    ]
    if run.waits_on:
        listed = ", ".join(operation_label(number) for number in run.waits_on[:_MOST_NAMED])
        told.append(f" Waits for a decision on {listed}.")
    return RunLine(paragraph(*told), excerpt(run.goal, _LONGEST_GOAL), str(run.number), name)


def _doubt(doubt: InDoubt, home: Home) -> Item:
    told: list[Piece | str] = [
        Words(f"{operation_label(doubt.number)}, {resource_words(doubt.resource)}. ", bold=True),
        f"Not known for {roughly(home.pending.now - doubt.since)}. ",
    ]
    if doubt.looks_again_at is not None:
        told += ["Nobody has to act yet: it is looked at again by itself at "]
        told += [moment(doubt.looks_again_at), "."]
        return paragraph(*told)
    if doubt.may_settle:
        told.append("You can say on its card what became of it.")
        return paragraph(*told)
    told += ["Somebody has to say on its card what became of it: ", *_whoever(doubt, home), "."]
    return paragraph(*told)


def _whoever(doubt: InDoubt, home: Home) -> tuple[Piece, ...]:
    """Name who may say what became of something: people by a mention, all others in words."""
    of = list(dict.fromkeys(who for r in doubt.requirements for who in r.of))[:_MOST_NAMED]
    pieces: list[Piece] = []
    for who in of:
        if pieces:
            pieces.append(Words(", "))
        named = ":" not in who
        pieces.append(
            person(slack_principal(home.tenant_id, who), home.tenant_id)
            if named
            else Words(who_words(who))
        )
    return tuple(pieces) or (Words("the approvers"),)

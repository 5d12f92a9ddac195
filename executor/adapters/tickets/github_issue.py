"""Reads a GitHub issue: its record, its comments, and what both make of our own ticket.

Our own note is left out where a version is compared: leaving it moves ``updated_at``, and it must
not look like somebody else's change. It is the *first* comment that holds the marker; from then on
anybody who can read the issue's source could copy it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, JsonValue, TypeAdapter

from executor.adapters.tickets.stamp_text import StampText
from executor.domain.payloads import digest, storable_text
from executor.domain.stamp import Stamp, moment
from executor.domain.ticket import ChangeKind, Ticket, TicketChange, TicketStatus
from executor.engine.desk_port import Observation

_OURS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
_GHOST = "ghost"


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class GithubUser(_Read):
    """An account; a deleted one is no user at all, and is shown as ``ghost``."""

    login: str


class GithubLabel(_Read):
    """One label."""

    name: str


class GithubIssue(_Read):
    """The issue's own record. ``pull_request`` is there when it is none but a pull request."""

    number: int
    title: str
    body: str | None = None
    state: Literal["open", "closed"]
    state_reason: str | None = None
    user: GithubUser | None = None
    labels: tuple[GithubLabel, ...] = ()
    created_at: AwareDatetime
    updated_at: StampText
    closed_at: StampText | None = None
    closed_by: GithubUser | None = None
    pull_request: JsonValue = None


class GithubComment(_Read):
    """One comment."""

    id: int
    body: str | None = None
    user: GithubUser | None = None
    author_association: str = "NONE"
    created_at: AwareDatetime
    updated_at: StampText


ISSUE: TypeAdapter[GithubIssue] = TypeAdapter(GithubIssue)
COMMENTS: TypeAdapter[tuple[GithubComment, ...]] = TypeAdapter(tuple[GithubComment, ...])


def hidden(marker: str) -> str:
    """Spell a marker so that GitHub does not show it."""
    return f"<!-- {marker} -->"


def note_of(comments: Sequence[GithubComment], marker: str) -> GithubComment | None:
    """Find our own note; ``comments`` are in the order of their ids."""
    spelled = hidden(marker)
    return next((each for each in comments if spelled in (each.body or "")), None)


def stamp_of(
    issue: GithubIssue, comments: Sequence[GithubComment], *, without: GithubComment | None = None
) -> Stamp:
    """Name the version that an issue and its comments show, as if ``without`` were not there."""
    fields = digest(
        {
            "title": storable_text(issue.title),
            "body": storable_text(issue.body or ""),
            "state": issue.state,
            "state_reason": issue.state_reason,
            "labels": sorted(storable_text(label.name) for label in issue.labels),
            "comments": [
                [str(each.id), each.updated_at, storable_text(each.body or "")]
                for each in comments
                if without is None or each.id != without.id
            ],
        }
    )
    return Stamp(issue.updated_at, fields.hex())


def observation(desk: str, issue: GithubIssue, comments: Sequence[GithubComment]) -> Observation:
    """Make our own ticket of an issue; GitHub tells nobody's address and no language."""
    author = _login(issue.user)
    changes = [
        TicketChange(
            1,
            ChangeKind.CUSTOMER_MESSAGE,
            author,
            storable_text(issue.body or ""),
            issue.created_at,
        )
    ]
    for version, comment in enumerate(comments, start=2):
        writer = _login(comment.user)
        ours = writer != author and comment.author_association in _OURS
        kind = ChangeKind.AGENT_MESSAGE if ours else ChangeKind.CUSTOMER_MESSAGE
        body = storable_text(comment.body or "")
        changes.append(TicketChange(version, kind, writer, body, comment.created_at))
    ticket = Ticket(
        desk=desk,
        id=str(issue.number),
        version=len(changes),
        status=TicketStatus.CLOSED if issue.state == "closed" else TicketStatus.OPEN,
        subject=storable_text(issue.title),
        customer_name=author,
        customer_email="",
        language="",
        times_opened=2 if issue.state_reason == "reopened" else 1,
        updated_at=moment(issue.updated_at),
        changes=tuple(changes),
    )
    labels = tuple(label.name for label in issue.labels)
    return Observation(ticket, stamp_of(issue, comments), labels)


def _login(user: GithubUser | None) -> str:
    return storable_text(user.login) if user else _GHOST

"""GitHub Issues: a close is checked right before, and not guarded in the moment itself.

GitHub takes no precondition on PATCH (REST documentation, *Best practices*, read 2026-11), so that
a change between our reading and our request is run over; the card says so. What GitHub lets us
conclude is a ``lookup``: an issue that is closed, by the account that left our marker and after it,
was closed by us. It is not ``conditional``: where nothing shuts out a request that is still under
way, an issue that is open, whether or not it has moved, proves nothing. Nor may the request be
repeated because a second close changes nothing: somebody may have opened the issue again meanwhile.

The marker is a comment that GitHub does not show, found by listing the issue's comments; the search
index lags. PATCH cannot carry it, so it is left before, by a request of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from pydantic import ValidationError

from executor.adapters.http_exchange import Answered, Exchanges, parse_endpoint, require_secret
from executor.adapters.tickets.answers import (
    LARGEST_ANSWER,
    Refusal,
    conclude,
    fetch,
    json_object,
    quote,
)
from executor.adapters.tickets.github_issue import (
    COMMENTS,
    ISSUE,
    GithubComment,
    GithubIssue,
    hidden,
    note_of,
    observation,
    stamp_of,
)
from executor.domain.declaration import Declaration, Guard, Notices
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.errors import InvalidContent
from executor.domain.finding import Finding
from executor.domain.payloads import JsonObject, canonical
from executor.domain.recovery import READING_LAG
from executor.domain.stamp import moment
from executor.engine.desk_port import DeskUnavailable, Observation, OutgoingChange

GITHUB_API_URL = "https://api.github.com"

LONGEST_REQUEST_SECONDS = 30.0
"""Default bound of one request, and of the readings before it together."""

# GitHub shows at once what it has taken; this keeps our readings apart.
LOOKUP_LAG_SECONDS = READING_LAG.total_seconds()

LONGEST_NOTE = 60_000
"""Characters of the longest note; GitHub takes comments of 65,536."""

_LIMITED_WAIT = timedelta(seconds=60)
_LONGEST_WAIT = timedelta(days=1)
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MARKER = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*")
_PAGE_SIZE = 100
_MOST_PAGES = 20


DECLARED = Declaration(
    "GitHub Issues",
    EffectKind.TICKET_CLOSE,
    Capability.LOOKUP,
    "whoever can read the issue's timeline",
    lookup_lag=timedelta(seconds=LOOKUP_LAG_SECONDS),
    version_resolution=timedelta(seconds=1),
    guard=Guard.CHECKED_ONLY,
    notices=Notices.ALWAYS,
)


@dataclass(frozen=True, slots=True)
class GithubSettings:
    """Access to the issues of one repository; ``url`` is that of the REST API."""

    owner: str
    repository: str
    token: str = field(repr=False)
    url: str = GITHUB_API_URL

    def __post_init__(self) -> None:
        """Refuse what no request could be made from."""
        parse_endpoint(self.url, setting="GITHUB_API_URL")
        require_secret(self.token, setting="GITHUB_TOKEN")
        for name in (self.owner, self.repository):
            if not _NAME.fullmatch(name) or name in (".", ".."):
                raise ValueError("the repository must read OWNER/NAME")


@dataclass(frozen=True, slots=True)
class _Look:
    """An issue and all of its comments, read one after the other."""

    issue: GithubIssue
    comments: tuple[GithubComment, ...]


class GithubIssues:
    """The issues of one repository; implements ``NotedDesk``."""

    def __init__(
        self,
        settings: GithubSettings,
        *,
        longest_request_seconds: float = LONGEST_REQUEST_SECONDS,
        lookup_lag_seconds: float = LOOKUP_LAG_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._declaration = replace(DECLARED, lookup_lag=timedelta(seconds=lookup_lag_seconds))
        self._bound_seconds = longest_request_seconds
        token = require_secret(settings.token, setting="GITHUB_TOKEN")
        self._exchanges = Exchanges(
            parse_endpoint(settings.url, setting="GITHUB_API_URL"),
            longest_request_seconds,
            tls_context,
            most_answer_octets=LARGEST_ANSWER,
            secrets=(token,),
        )
        self._headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
        }

    @property
    def name(self) -> str:
        """The repository."""
        return f"github:{self._settings.owner}/{self._settings.repository}"

    @property
    def declaration(self) -> Declaration:
        """What can be promised of this repository."""
        return self._declaration

    @property
    def capability(self) -> Capability:
        """An issue that we closed can be found; one that we did not find closed proves nothing."""
        return self.declaration.capability

    @property
    def notifies_on_close(self) -> bool:
        """GitHub mails the subscribers of an issue, its author first, about notes and closes."""
        return True

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one change with the readings before it."""
        return 2 * self._bound_seconds

    async def read(self, ticket_id: str) -> Observation | None:
        """Read the issue and all of its comments; a pull request is no issue."""
        look = await self._look(ticket_id)
        return None if look is None else observation(self.name, look.issue, look.comments)

    def freeze_close(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the two bodies: the note's and the close's; everybody can read the note."""
        return _freeze({"state": "closed", "state_reason": "completed"}, marker, note)

    def freeze_reopen(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the two bodies: the note's and the reopening's."""
        return _freeze({"state": "open", "state_reason": "reopened"}, marker, note)

    async def leave_note(self, change: OutgoingChange) -> Outcome:
        """Leave the note with its hidden marker, unless it is there or the issue has moved."""
        look = await self._checked(change)
        if isinstance(look, Outcome):
            return look
        note = note_of(look.comments, change.marker)
        if note is not None:
            evidence = {"desk": self.name, "comment": str(note.id), "finding": "marker"}
            return Outcome(OutcomeKind.APPLIED, evidence)
        path = f"{self._path(change.ticket_id)}/comments"
        body = canonical(json.loads(change.payload)["note"])
        return conclude(
            self.name, await self._exchanges.post(path, self._headers, body), read_refusal
        )

    async def close(self, change: OutgoingChange) -> Outcome:
        """Read once more, and send the frozen request once if nothing but our note was added."""
        return await self._change(change)

    async def reopen(self, change: OutgoingChange) -> Outcome:
        """Read once more, and send the frozen request once if nothing but our note was added."""
        return await self._change(change)

    async def read_back(self, change: OutgoingChange) -> Outcome:
        """Look for our marker and for a close by the account that left it.

        GitHub does not say who opened an issue again, so that a reopening stays unknown.
        """
        try:
            look = await self._look(change.ticket_id)
        except DeskUnavailable as error:
            return self._unread(error.problem)
        if look is None:
            return self._unread("the issue is not there any more")
        issue = look.issue
        note = note_of(look.comments, change.marker)
        moved = _differs(look, change, note)
        evidence: JsonObject = {
            "desk": self.name,
            "ticket_status": issue.state,
            "updated_at": issue.updated_at,
            "noted": note is not None,
            "finding": (Finding.MOVED if moved else Finding.UNCHANGED).value,
        }
        if note is None or not _would_close(change) or not _closed_by_author_of(note, issue):
            return Outcome(OutcomeKind.UNKNOWN, evidence)
        evidence = {**evidence, "finding": Finding.MARKER.value}
        # Only a version that nobody has changed since is our own, to be undone by us.
        if issue.updated_at == issue.closed_at and look.comments[-1].id == note.id:
            stamp = stamp_of(issue, look.comments).as_json()
            evidence = {**evidence, "stamp": stamp}
        return Outcome(OutcomeKind.APPLIED, evidence)

    async def _change(self, change: OutgoingChange) -> Outcome:
        look = await self._checked(change)
        if isinstance(look, Outcome):
            return look
        if note_of(look.comments, change.marker) is None:
            problem = "the note that the change would be found by is missing"
            return Outcome(OutcomeKind.NOT_APPLIED, {"desk": self.name, "problem": problem})
        path = self._path(change.ticket_id)
        body = canonical(json.loads(change.payload)["issue"])
        ending = await self._exchanges.patch(path, self._headers, body)
        outcome = conclude(self.name, ending, read_refusal)
        if outcome.kind is not OutcomeKind.APPLIED or not isinstance(ending, Answered):
            return outcome
        told = _told_by(ending, look.comments)
        return Outcome(outcome.kind, {**outcome.evidence, **told})

    async def _checked(self, change: OutgoingChange) -> _Look | Outcome:
        """Read afresh; an outcome says why nothing must be sent."""
        unfit = _unfit(change)
        if unfit:
            return Outcome(OutcomeKind.NOT_APPLIED, {"desk": self.name, "problem": unfit})
        try:
            look = await self._look(change.ticket_id)
        except DeskUnavailable as error:
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                {"desk": self.name, "problem": error.problem},
                retryable=True,
                retry_after=error.retry_after,
            )
        if look is None:
            problem = "the issue is not there any more"
            return Outcome(OutcomeKind.NOT_APPLIED, {"desk": self.name, "problem": problem})
        if _differs(look, change, note_of(look.comments, change.marker)):
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                {
                    "desk": self.name,
                    "finding": Finding.MOVED.value,
                    "ticket_status": look.issue.state,
                    "updated_at": look.issue.updated_at,
                },
            )
        return look

    async def _look(self, ticket_id: str) -> _Look | None:
        if not _NUMBER.fullmatch(ticket_id):
            return None
        try:
            async with asyncio.timeout(self._bound_seconds):
                return await self._look_unbounded(ticket_id)
        except TimeoutError:
            raise DeskUnavailable(f"no answer within {self._bound_seconds:g} s") from None

    async def _look_unbounded(self, ticket_id: str) -> _Look | None:
        path = self._path(ticket_id)
        issue = await fetch(self._exchanges, path, self._headers, {}, ISSUE, read_refusal)
        if issue is None or issue.pull_request is not None:
            return None
        comments: list[GithubComment] = []
        for page in range(1, _MOST_PAGES + 1):
            query = {"per_page": str(_PAGE_SIZE), "page": str(page)}
            found = await fetch(
                self._exchanges, f"{path}/comments", self._headers, query, COMMENTS, read_refusal
            )
            if found is None:
                raise DeskUnavailable("the issue went away while it was read")
            comments.extend(found)
            if len(found) < _PAGE_SIZE:
                comments.sort(key=lambda comment: comment.id)
                return _Look(issue, tuple(comments))
        raise DeskUnavailable("the issue has more comments than can be shown")

    def _path(self, ticket_id: str) -> str:
        return f"/repos/{self._settings.owner}/{self._settings.repository}/issues/{ticket_id}"

    def _unread(self, problem: str) -> Outcome:
        return Outcome(
            OutcomeKind.UNKNOWN,
            {"desk": self.name, "finding": Finding.UNREAD.value, "problem": problem},
        )


def read_refusal(answer: Answered) -> Refusal | None:
    """Recognise GitHub's own refusals: ``{"message": "…", "documentation_url": "…"}``.

    Its limits are 429, or 403 with ``Retry-After``, with no requests remaining, or with the address
    of the page on limits; without a word on how long to wait, a minute (REST documentation, *Rate
    limits*, read 2026-11). For content the limit is 80 requests in a minute.
    """
    body = json_object(answer) or {}
    message, page = body.get("message"), body.get("documentation_url")
    if not isinstance(message, str) or not isinstance(page, str):
        return None
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    named = answer.retry_after is not None or "rate-limit" in page
    limited = answer.status == 429 or (answer.status == 403 and (spent or named))
    words: JsonObject = {"error": quote(message)}
    if not limited:
        return Refusal(words)
    wait = answer.retry_after or (_until_reset(answer.headers) if spent else None)
    return Refusal(words, True, wait or _LIMITED_WAIT)


def _until_reset(headers: Mapping[str, str]) -> timedelta | None:
    """Count from the answer's own ``Date`` to the limit's reset, both on GitHub's clock."""
    try:
        reset = datetime.fromtimestamp(int(headers["x-ratelimit-reset"]), UTC)
        wait = reset - parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, OverflowError, OSError, TypeError):
        return None
    return min(wait, _LONGEST_WAIT) if wait > timedelta(0) else None


def _freeze(issue: JsonObject, marker: str, note: str) -> bytes:
    if not _MARKER.fullmatch(marker) or len(marker) > 80:
        raise InvalidContent("marker", "it cannot be hidden", "Use a-z, 0-9, _ and single -.")
    if not note.strip() or "<!--" in note:
        raise InvalidContent("note", "GitHub would not show it", "Write what everybody may read.")
    if len(note) > LONGEST_NOTE:
        raise InvalidContent(
            "note", f"it is longer than {LONGEST_NOTE} characters", "Write a shorter note."
        )
    return canonical({"issue": issue, "note": {"body": f"{note}\n\n{hidden(marker)}"}})


def _unfit(change: OutgoingChange) -> str | None:
    """Name what keeps this change from leaving exactly as it is stored, if anything does."""
    if not _NUMBER.fullmatch(change.ticket_id):
        return "there can be no issue of this number"
    try:
        stored = json.loads(change.payload)
        marked = hidden(change.marker) in stored["note"]["body"]
        known = stored["issue"]["state"] in ("open", "closed")
    except (ValueError, KeyError, TypeError):
        return "the stored request is not one of ours"
    return None if marked and known else "the stored request does not carry its marker"


def _would_close(change: OutgoingChange) -> bool:
    """Tell a close from a reopening: a closed issue proves nothing of the latter."""
    return bool(json.loads(change.payload)["issue"]["state"] == "closed")


def _differs(look: _Look, change: OutgoingChange, note: GithubComment | None) -> bool:
    """Tell whether anything but our own note sets an issue apart from the approved version."""
    now = stamp_of(look.issue, look.comments, without=note)
    if now.fields_sha256 != change.stamp.fields_sha256:
        return True
    return note is None and now.updated_at != change.stamp.updated_at


def _closed_by_author_of(note: GithubComment, issue: GithubIssue) -> bool:
    """Tell whether the account that left our note closed the issue, then or later."""
    if issue.state != "closed" or issue.closed_at is None:
        return False
    if issue.closed_by is None or note.user is None or issue.closed_by.login != note.user.login:
        return False
    return moment(issue.closed_at) >= note.created_at


def _told_by(answer: Answered, comments: tuple[GithubComment, ...]) -> JsonObject:
    """Take the new version from the answer to a change, as far as it came."""
    try:
        issue = ISSUE.validate_json(answer.body or b"")
    except ValidationError:
        return {"answer": "broken"}
    return {"ticket_status": issue.state, "stamp": stamp_of(issue, comments).as_json()}

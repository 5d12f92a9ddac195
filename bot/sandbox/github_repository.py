"""A GitHub repository as far as its issues go: stamps of one second, comments, who closed what.

Every comment and every change of state mails the issue's author, unless it is their own doing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from bot.sandbox.clock import Clock
from bot.sandbox.kept_file import KeptFile
from bot.sandbox.model import Json

OUR_LOGIN, OTHER_LOGIN = "signoff-bot", "kim"
_FIRST_COMMENT = 2_100_000_001


@dataclass(frozen=True, slots=True)
class IssueMail:
    """One notification of GitHub's own, and why it was sent."""

    to: str
    issue: int
    why: str


@dataclass
class RepositoryIssue:
    """One issue's record, its comments, and who closed or opened it again; oldest first."""

    record: Json
    comments: list[Json] = field(default_factory=list)
    events: list[Json] = field(default_factory=list)


class GithubRepository:
    """Keep a repository's issues on one clock; with a ``spool`` file they survive a restart."""

    def __init__(self, clock: Clock, spool: Path | None = None) -> None:
        self._clock = clock
        self.issues: dict[int, RepositoryIssue] = {}
        self.mails: list[IssueMail] = []
        self._next_comment = _FIRST_COMMENT
        self.kept = KeptFile(spool, self._document)
        kept = self.kept.read()
        if kept is not None:
            self._next_comment = kept["next_comment"]
            for issue in kept["issues"]:
                self.issues[issue["record"]["number"]] = RepositoryIssue(**issue)

    def open_issue(
        self, number: int, title: str, body: str, *, login: str, labels: tuple[str, ...] = ()
    ) -> RepositoryIssue:
        """Let somebody open an issue."""
        record: Json = {
            "number": number,
            "title": title,
            "body": body,
            "state": "open",
            "state_reason": None,
            "user": _user(login),
            "labels": [{"name": name} for name in labels],
            "comments": 0,
            "created_at": self._stamp(),
            "updated_at": self._stamp(),
            "closed_at": None,
            "closed_by": None,
        }
        issue = self.issues[number] = RepositoryIssue(record)
        self.kept.keep()
        return issue

    def comment(self, number: int, login: str, body: str) -> Json:
        """Add one comment; the state stays as it is."""
        issue = self.issues[number]
        author = issue.record["user"]["login"]
        comment: Json = {
            "id": self._next_comment,
            "body": body,
            "user": _user(login),
            "author_association": "NONE" if login == author else "MEMBER",
            "created_at": self._stamp(),
            "updated_at": self._stamp(),
        }
        self._next_comment += 1
        issue.comments.append(comment)
        issue.record["comments"] = len(issue.comments)
        issue.record["updated_at"] = self._stamp()
        self._notify(issue, login, "comment")
        self.kept.keep()
        return comment

    def change(self, number: int, login: str, changes: Json) -> None:
        """Set fields; a state that the issue is in already changes nothing, its reason included."""
        issue = self.issues[number]
        record = issue.record
        moved = False
        for name in ("title", "body"):
            if name in changes and changes[name] != record[name]:
                record[name] = changes[name]
                moved = True
        state = changes.get("state", record["state"])
        if state != record["state"]:
            closed = state == "closed"
            record["state"] = state
            record["state_reason"] = changes.get(
                "state_reason", "completed" if closed else "reopened"
            )
            record["closed_at"] = self._stamp() if closed else None
            record["closed_by"] = _user(login) if closed else None
            event = "closed" if closed else "reopened"
            issue.events.append({"event": event, "actor": _user(login)})
            self._notify(issue, login, event)
            moved = True
        if moved:
            record["updated_at"] = self._stamp()
            self.kept.keep()

    def _document(self) -> Json:
        issues = [asdict(issue) for issue in self.issues.values()]
        return {"next_comment": self._next_comment, "issues": issues}

    def _notify(self, issue: RepositoryIssue, actor: str, why: str) -> None:
        author = issue.record["user"]["login"]
        if author != actor:
            self.mails.append(IssueMail(author, issue.record["number"], why))

    def _stamp(self) -> str:
        now = datetime.fromtimestamp(int(self._clock.now()), UTC)
        return now.isoformat().replace("+00:00", "Z")


def _user(login: str) -> Json:
    return {"login": login, "type": "User"}

"""GitHub's issues over HTTP, in the sandbox: show, list comments, comment, close; strict about it.

Bodies of refusals are GitHub's own (REST documentation, *Issues*, *Rate limits* and
*Troubleshooting*, read 2026-11). As GitHub does, it takes no precondition on a change.
"""

from __future__ import annotations

import hmac
import json
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType

from aiohttp import web

from bot.sandbox.clock import Clock
from bot.sandbox.desk_faults import CHANGE, READ, Act, DeskAnswer, DeskFaults
from bot.sandbox.github_repository import OUR_LOGIN, GithubRepository, RepositoryIssue
from bot.sandbox.model import Json
from bot.sandbox.provider_listener import Listener

OWNER, REPOSITORY, TOKEN = "acme", "support", "gh-secret-token"
CONTENT_LIMIT, CONTENT_WINDOW_SECONDS = 80, 60
_DOCS = "https://docs.github.com/rest"
_ATTRIBUTES = frozenset({"title", "body", "state", "state_reason"})
_REASONS = {"closed": ("completed", "not_planned", "duplicate"), "open": ("reopened",)}
_LARGEST_PAGE = 100


class GithubWords:
    """GitHub's refusals."""

    def refused(self) -> DeskAnswer:
        """The token may not."""
        return _refusal(403, "Resource not accessible by personal access token", "issues/issues")

    def limited(self, seconds: int | None) -> DeskAnswer:
        """Too much at once."""
        message = "You have exceeded a secondary rate limit. Please wait a few minutes."
        page = "using-the-rest-api/rate-limits-for-the-rest-api"
        more = {} if seconds is None else {"Retry-After": str(seconds)}
        return _refusal(403, message, page, more)

    def collision(self) -> DeskAnswer:
        """Another request was at the issue in the same moment."""
        return _refusal(409, "Conflict", "issues/issues")

    def broken(self) -> DeskAnswer:
        """Something is wrong in there."""
        return DeskAnswer(500, {"message": "Server Error"})


class GithubDouble:
    """Serve one repository while the ``async with`` lasts, and count what was done.

    ``content_limit`` changes are taken within a minute of the clock.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        content_limit: int = CONTENT_LIMIT,
        port: int = 0,
        spool: Path | None = None,
    ) -> None:
        """With a ``spool`` file, the repository survives a restart."""
        self._clock = clock
        self.repository = GithubRepository(clock, spool)
        self.faults = DeskFaults(GithubWords())
        self.notes = 0
        self.state_changes = 0
        self._content: deque[float] = deque(maxlen=content_limit)
        app = web.Application(client_max_size=4 * 1024 * 1024)
        issue = f"/repos/{OWNER}/{REPOSITORY}/issues/{{issue}}"
        app.router.add_get(issue, self._show)
        app.router.add_patch(issue, self._patch)
        app.router.add_get(f"{issue}/comments", self._list_comments)
        app.router.add_post(f"{issue}/comments", self._post)
        self.listener = Listener(app, port)

    @property
    def url(self) -> str:
        """Where the API is served."""
        return self.listener.url

    async def __aenter__(self) -> GithubDouble:
        await self.listener.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.faults.release()
        await self.listener.stop()

    async def _show(self, request: web.Request) -> web.StreamResponse:
        def act() -> DeskAnswer:
            issue = self._issue(request)
            return issue if isinstance(issue, DeskAnswer) else DeskAnswer(200, dict(issue.record))

        return await self.faults.serve(request, READ, act)

    async def _list_comments(self, request: web.Request) -> web.StreamResponse:
        def act() -> DeskAnswer:
            issue = self._issue(request)
            if isinstance(issue, DeskAnswer):
                return issue
            size = min(int(request.query.get("per_page", "30")), _LARGEST_PAGE)
            start = (int(request.query.get("page", "1")) - 1) * size
            return DeskAnswer(200, issue.comments[start : start + size])

        return await self.faults.serve(request, READ, act)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        octets = await request.read()

        def act(issue: RepositoryIssue, body: Json) -> DeskAnswer:
            if set(body) != {"body"} or not isinstance(body["body"], str) or not body["body"]:
                return _refusal(422, "Validation Failed", "issues/comments")
            self.notes += 1
            comment = self.repository.comment(issue.record["number"], OUR_LOGIN, body["body"])
            return DeskAnswer(201, comment)

        return await self.faults.serve(request, CHANGE, self._changing(request, octets, act))

    async def _patch(self, request: web.Request) -> web.StreamResponse:
        octets = await request.read()

        def act(issue: RepositoryIssue, body: Json) -> DeskAnswer:
            state = body.get("state", issue.record["state"])
            reason = body.get("state_reason")
            if set(body) - _ATTRIBUTES or state not in _REASONS:
                return _refusal(422, "Validation Failed", "issues/issues")
            if reason is not None and reason not in _REASONS[state]:
                return _refusal(422, "Validation Failed", "issues/issues")
            before = issue.record["state"]
            self.repository.change(issue.record["number"], OUR_LOGIN, body)
            self.state_changes += issue.record["state"] != before
            return DeskAnswer(200, dict(issue.record))

        return await self.faults.serve(request, CHANGE, self._changing(request, octets, act))

    def _changing(
        self,
        request: web.Request,
        octets: bytes,
        change: Callable[[RepositoryIssue, Json], DeskAnswer],
    ) -> Act:
        """Check what every change has in common, at the moment it is done."""

        def act() -> DeskAnswer:
            issue = self._issue(request)
            if isinstance(issue, DeskAnswer):
                return issue
            try:
                body = json.loads(octets)
            except ValueError:
                return _refusal(400, "Problems parsing JSON", "issues/issues")
            if not isinstance(body, dict):
                return _refusal(400, "Body should be a JSON object", "issues/issues")
            if self._is_over_the_limit():
                return GithubWords().limited(CONTENT_WINDOW_SECONDS)
            return change(issue, body)

        return act

    def _issue(self, request: web.Request) -> RepositoryIssue | DeskAnswer:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {TOKEN}".encode()):
            return _refusal(401, "Bad credentials", "")
        if not request.headers.get("User-Agent"):
            return DeskAnswer(403, "Request forbidden by administrative rules.")
        number = request.match_info["issue"]
        issue = self.repository.issues.get(int(number)) if number.isdigit() else None
        return issue or _refusal(404, "Not Found", "issues/issues#get-an-issue")

    def _is_over_the_limit(self) -> bool:
        now = self._clock.now()
        full = len(self._content) == self._content.maxlen
        if full and now - self._content[0] < CONTENT_WINDOW_SECONDS:
            return True
        self._content.append(now)
        return False


def _refusal(
    status: int, message: str, page: str, headers: Mapping[str, str] | None = None
) -> DeskAnswer:
    body = {"message": message, "documentation_url": f"{_DOCS}/{page}", "status": str(status)}
    return DeskAnswer(status, body, headers or {})

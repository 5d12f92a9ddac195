"""The sandbox's web page, and the JSON of what lies outside Slack: mails, tickets and runs.

Nothing on the page comes from elsewhere, and nothing that a mail contains can run or load: its HTML
part is a document of its own under a policy that forbids both. Only this machine's pages may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.sandbox.page_api import require_local

# Plain JSON that the page reads: this is the JSON boundary.
JsonObject = dict[str, Any]

MAX_REPLY_CHARACTERS: Final = 10_000

PAGE_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# Mails carry their style inline; they get nothing else, not even their own origin.
MAIL_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


class World(Protocol):
    """What lies around the workspace. Each answer is plain JSON; times are ISO 8601 or Unix."""

    async def mails(self) -> list[JsonObject]:
        """Return the mails that arrived, oldest first.

        Each is {"id": str, "from": str, "to": [str], "cc": [str]?, "reply_to": str?,
        "subject": str, "date": time, "text": str | None, "html": str | None, "raw": str,
        "sha256": str of the exact bytes}.
        """
        ...

    async def tickets(self) -> list[JsonObject]:
        """Return the desk's tickets: {"id": str, "version": int, "status": str, "subject": str}."""
        ...

    async def reply_as_customer(self, ticket: str, body: str) -> JsonObject | None:
        """Add the customer's reply and return the ticket; None if there is no such ticket."""
        ...

    async def reopen(self, ticket: str) -> JsonObject | None:
        """Open the ticket again and return it; None if there is no such ticket."""
        ...

    async def runs(self) -> list[JsonObject]:
        """Return the runs: {"number": int, "status": str, "title": str}."""
        ...

    async def timeline(self, number: int) -> list[JsonObject] | None:
        """Return what happened in a run, in order; None if there is no such run.

        Each is {"at": time, "kind": "step" | "move" | "note" | "attempt" | "decision",
        "title": str, "text": str, "state": str}; the texts are shown literally.
        """
        ...


def suggestions(goal: Callable[[str], str]) -> tuple[str, ...]:
    """Spell what a newcomer may send with one press; the welcome names the first.

    ``goal`` spells what a person asks for to have a ticket closed.
    """
    first = goal("4101").removeprefix("close ")
    return (f"/signoff run {first}", f"@Signoff {goal('4102')}", "/signoff status", "/signoff help")


@dataclass(frozen=True, slots=True)
class PageWords:
    """What depends on who is outside: what can be sent, who they are, and what goes wrong there.

    Without a name it is the sandbox's own.
    """

    suggestions: tuple[str, ...] = suggestions("close {}".format)
    mail: str = ""
    desk: str = ""
    mail_fault: str = ""
    desk_fault: str = ""


class CustomerReply(BaseModel):
    """What the customer writes."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    body: str = Field(min_length=1, max_length=MAX_REPLY_CHARACTERS)


class Page:
    """Serve the page and its second interface over one world."""

    def __init__(self, world: World, pages: Path, words: PageWords) -> None:
        self._world = world
        templates = Environment(
            loader=FileSystemLoader(pages), autoescape=True, undefined=StrictUndefined
        )
        document = templates.get_template("sandbox.html.j2")
        self._document = document.render(title="Signoff sandbox", **asdict(words))

    async def index(self, request: web.Request) -> web.Response:
        require_local(request)
        return web.Response(text=self._document, content_type="text/html")

    async def mails(self, request: web.Request) -> web.Response:
        require_local(request)
        return web.json_response(await self._world.mails())

    async def mail_html(self, request: web.Request) -> web.Response:
        """Return a mail's HTML part as it arrived, under a policy that runs and loads nothing."""
        require_local(request)
        wanted = request.match_info["id"]
        mail = next((m for m in await self._world.mails() if m["id"] == wanted), None)
        if mail is None or mail.get("html") is None:
            raise web.HTTPNotFound(text="no such HTML part")
        headers = {"Content-Security-Policy": MAIL_POLICY}
        return web.Response(text=mail["html"], content_type="text/html", headers=headers)

    async def tickets(self, request: web.Request) -> web.Response:
        require_local(request)
        return web.json_response(await self._world.tickets())

    async def reply(self, request: web.Request) -> web.Response:
        """Take {body}: what the customer writes."""
        require_action(request)
        try:
            reply = CustomerReply.model_validate_json(await request.read())
        except ValidationError:
            sentence = f"A reply has 1 to {MAX_REPLY_CHARACTERS} characters of text."
            return web.json_response({"error": sentence}, status=400)
        ticket = request.match_info["id"]
        return _found(await self._world.reply_as_customer(ticket, reply.body), "ticket", ticket)

    async def reopen(self, request: web.Request) -> web.Response:
        require_action(request)
        ticket = request.match_info["id"]
        return _found(await self._world.reopen(ticket), "ticket", ticket)

    async def runs(self, request: web.Request) -> web.Response:
        require_local(request)
        return web.json_response(await self._world.runs())

    async def timeline(self, request: web.Request) -> web.Response:
        require_local(request)
        number = request.match_info["number"]
        return _found(await self._world.timeline(int(number)), "run", number)


def add_page(app: web.Application, world: World, words: PageWords = PageWords()) -> None:
    """Mount the page and its second interface, and give every answer the page's headers.

    The workspace's own routes may be in the same application; a header that a handler set stays.
    """
    pages = _pages()
    page = Page(world, pages, words)
    app.on_response_prepare.append(_protect)
    app.add_routes(
        [
            web.get("/", page.index),
            web.get("/sandbox/mail", page.mails),
            web.get("/sandbox/mail/{id}/html", page.mail_html),
            web.get("/sandbox/tickets", page.tickets),
            web.post("/sandbox/tickets/{id}/reply", page.reply),
            web.post("/sandbox/tickets/{id}/reopen", page.reopen),
            web.get("/sandbox/runs", page.runs),
            web.get(r"/sandbox/runs/{number:\d{1,9}}/timeline", page.timeline),
            web.static("/static", pages / "static"),
        ]
    )


def require_action(request: web.Request) -> None:
    """Refuse a change that is not asked for by a page of this machine, in JSON.

    A form of a foreign page cannot send JSON without asking first, and is never given leave.
    """
    require_local(request)
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")


def _pages() -> Path:
    return Path(str(files("templates") / "pages"))


def _found(answer: JsonObject | list[JsonObject] | None, what: str, name: str) -> web.Response:
    if answer is None:
        return web.json_response({"error": f"There is no {what} {name}."}, status=404)
    return web.json_response(answer)


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    headers = response.headers
    headers.setdefault("Content-Security-Policy", PAGE_POLICY)
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Referrer-Policy", "no-referrer")
    headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
    headers.setdefault("Cache-Control", "no-cache")

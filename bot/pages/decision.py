"""The page on which somebody decides under a one-time link, with a second factor where it is asked.

Looking decides nothing, however often and whoever looks; only a form that its owner sends does. The
page shows the blocks of the full view and nothing else, has no script, and leaks no address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Protocol

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bot import replies, vote_replies
from bot.cards import CardPainter
from bot.notice_text import refusal_text
from bot.reason_text import sentence
from executor.domain.approval import Vote
from executor.domain.errors import ExecutorError
from executor.domain.ids import TenantId, operation_label
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import Click, ClickResult, NotConfirmed, Recorded
from executor.engine.decision_links import Shown, click_by_link, look
from executor.engine.engine import Engine
from executor.engine.second_factor import Sealer, judge_code

PATH = "/decide/{token}"
STYLE_PATH = "/decide.css"

_LONGEST_NOTE = 1_000
_MOST_FORM_BYTES = 16_384
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex",
}


class Decides(Protocol):
    """Records one decision, as for a click in Slack."""

    async def decide(self, click: Click) -> ClickResult:
        """Record one click and say what it came to."""


@dataclass(frozen=True, slots=True)
class _Form:
    vote: Vote
    code: str
    note: str


class DecisionPage:
    """Answers the links of one tenant."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        painter: CardPainter,
        sealer: Sealer,
        decides: Decides,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._painter = painter
        self._sealer = sealer
        self._decides = decides
        self._page = _environment().get_template("decision.html.j2")

    def add_to(self, router: web.UrlDispatcher) -> None:
        """Let the web application answer under this page's addresses."""
        router.add_get(PATH, self.show)
        router.add_post(PATH, self.decide)
        router.add_get(STYLE_PATH, _style)

    async def show(self, request: web.Request) -> web.Response:
        """Show what a link leads to; uses nothing up."""
        try:
            shown = await look(self._engine, self._tenant, request.match_info["token"])
        except ExecutorError:
            return self._says(replies.database_away(), status=503)
        if isinstance(shown, Refused):
            return self._says(refusal_text(shown.reason, shown.detail), status=410)
        return self._shows(shown)

    async def decide(self, request: web.Request) -> web.Response:
        """Take a decision; what it came to is on the page and on the card."""
        form = await _form(request)
        if form is None:
            return self._says("This form cannot be read. Open the link again.", status=400)
        try:
            shown = await look(self._engine, self._tenant, request.match_info["token"])
            if isinstance(shown, Refused):
                return self._says(refusal_text(shown.reason, shown.detail), status=410)
            return await self._decided(shown, form)
        except ExecutorError:
            return self._says(replies.database_away(), status=503)

    async def _decided(self, shown: Shown, form: _Form) -> web.Response:
        factored = False
        if form.vote is Vote.APPROVE and shown.asks_for_code:
            judged = await judge_code(
                self._engine, self._sealer, self._tenant, shown.link.principal, form.code
            )
            if isinstance(judged, Refused):
                text = refusal_text(judged.reason, judged.detail)
                return self._shows(shown, problem=text, status=403)
            factored = True
        click = click_by_link(shown.link, form.vote, form.note, second_factor=factored)
        result = await self._decides.decide(click)
        return self._says(_outcome(result, form.vote, shown.record.number))

    def _shows(self, shown: Shown, *, problem: str = "", status: int = 200) -> web.Response:
        blocks = self._painter.draw_page(shown.record, nonce=shown.link.nonce)
        return self._rendered(
            status,
            blocks=blocks,
            who=shown.link.principal,
            may_decide=shown.may_be_decided,
            asks_for_code=shown.asks_for_code,
            problem=problem,
            said="",
        )

    def _says(self, text: str, *, status: int = 200) -> web.Response:
        return self._rendered(
            status, blocks=[], who="", may_decide=False, asks_for_code=False, problem="", said=text
        )

    def _rendered(self, status: int, **values: object) -> web.Response:
        return web.Response(
            status=status,
            text=self._page.render(style=STYLE_PATH, **values),
            content_type="text/html",
            headers=_HEADERS,
        )


def _environment() -> Environment:
    return ImmutableSandboxedEnvironment(
        loader=PackageLoader("templates", "pages"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


async def _style(_: web.Request) -> web.Response:
    text = (resources.files("templates") / "pages/decision.css").read_text(encoding="utf-8")
    return web.Response(text=text, content_type="text/css")


async def _form(request: web.Request) -> _Form | None:
    """Read the form; ``None``: it is none of ours."""
    if request.content_length is None or request.content_length > _MOST_FORM_BYTES:
        return None
    fields = await request.post()
    vote, code, note = (fields.get(name, "") for name in ("vote", "code", "note"))
    if not isinstance(code, str) or not isinstance(note, str) or vote not in tuple(Vote):
        return None
    return _Form(Vote(str(vote)), code[:64], note[:_LONGEST_NOTE])


def _outcome(result: ClickResult, vote: Vote, operation: int) -> str:
    match result:
        case Recorded():
            return vote_replies.recorded(vote, operation, still_needed=result.still_needed)
        case NoChange():
            return sentence(result.reason or Reason.ALREADY_VOTED, {})
        case Refused():
            return f"{operation_label(operation)}: {refusal_text(result.reason, result.detail)}"
        case NotConfirmed():
            return replies.not_confirmed()

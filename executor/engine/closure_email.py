"""The closure email is rendered once, when it is proposed; nothing renders it again.

The text frames the model's message in fixed words of its language; the HTML is made from that text
and nothing else, so both say the same. A language without words of its own gets a frame without
words: the ticket's number and the signature.
"""

from __future__ import annotations

import hashlib
import json

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.closing_html import BODY_STYLE, paragraphs
from executor.domain.ticket import Ticket

_TEXT = "email/closure.txt.j2"
_HTML = "email/closure.html.j2"
_WORDS = "email/words.json"
_RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})


class ClosureEmails:
    """The templates of closure emails, read once, with the digests of their sources."""

    def __init__(self) -> None:
        loader = PackageLoader("templates", package_path="")
        # Only one name ends in .html.j2, and everything that goes into it is escaped.
        plain = ImmutableSandboxedEnvironment(
            loader=loader, undefined=StrictUndefined, autoescape=False
        )
        escaping = ImmutableSandboxedEnvironment(
            loader=loader, undefined=StrictUndefined, autoescape=True
        )
        self._text = plain.get_template(_TEXT)
        self._html = escaping.get_template(_HTML)
        sources = {name: loader.get_source(plain, name)[0] for name in (_TEXT, _HTML, _WORDS)}
        self._words: dict[str, dict[str, str]] = json.loads(sources[_WORDS])
        self._digests = {
            name: hashlib.sha256(source.encode()).hexdigest() for name, source in sources.items()
        }

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that have words of their own."""
        return tuple(sorted(self._words))

    def render(self, ticket: Ticket, proposal: ProposeClosing, signature: str) -> RenderedEmail:
        """Render both bodies of the email that goes with closing ``ticket``.

        Lines end with LF, whatever the message has. Total: content is judged by
        ``build_closing_email``.
        """
        primary = proposal.language.split("-")[0].lower()
        text = self._text.render(
            words=self._words.get(primary),
            name=" ".join(ticket.customer_name.split()),
            message=_unix(proposal.message).strip("\n"),
            ticket_id=ticket.id,
            signature=_unix(signature).strip(),
        )
        html = self._html.render(
            language=proposal.language,
            direction="rtl" if primary in _RIGHT_TO_LEFT else "ltr",
            style=BODY_STYLE,
            paragraphs=paragraphs(text),
        )
        return RenderedEmail(text + "\n", html + "\n", self._digests)


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")

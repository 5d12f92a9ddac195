"""The closure email is rendered once, when it is proposed; nothing renders it again.

The text frames the model's message in fixed words of its language; the HTML is made from that text
and nothing else, so both say the same. A language without words of its own gets a frame without
words: the ticket's number and the signature.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.closing_html import BODY_STYLE, paragraphs
from executor.domain.ticket import Ticket

_TEXT = "email/closure.txt.j2"
_HTML = "email/closure.html.j2"
_WORDS = "email/words.json"
_RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})


@cache
def _environment(*, escaping: bool) -> Environment:
    """Return the one environment of its kind, whose templates are compiled once in a process."""
    return ImmutableSandboxedEnvironment(
        loader=PackageLoader("templates", package_path=""),
        undefined=StrictUndefined,
        autoescape=escaping,
    )


class ClosureEmails:
    """The templates of closure emails, read once, with the digests of their sources."""

    def __init__(self) -> None:
        # Only one name ends in .html.j2, and everything that goes into it is escaped.
        plain, escaping = _environment(escaping=False), _environment(escaping=True)
        self._text = plain.get_template(_TEXT)
        self._html = escaping.get_template(_HTML)
        loader = plain.loader
        assert loader is not None
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
        text = self._text.render(
            words=self._words.get(_primary(proposal.language)),
            name=" ".join(ticket.customer_name.split()),
            message=_unix(proposal.message).strip("\n"),
            ticket_id=ticket.id,
            signature=_unix(signature).strip(),
        )
        return RenderedEmail(f"{text}\n", self._laid_out(text, proposal.language), self._digests)

    def lay_out(self, text: str, language: str) -> RenderedEmail:
        """Make the HTML of a text that is whole already, and leave the text as it is."""
        return RenderedEmail(text, self._laid_out(text, language), {_HTML: self._digests[_HTML]})

    def _laid_out(self, text: str, language: str) -> str:
        html = self._html.render(
            language=language,
            direction="rtl" if _primary(language) in _RIGHT_TO_LEFT else "ltr",
            style=BODY_STYLE,
            paragraphs=paragraphs(text),
        )
        return f"{html}\n"


def _primary(language: str) -> str:
    return language.split("-")[0].lower()


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")

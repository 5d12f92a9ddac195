"""Log lines without secrets and without content, at every level and from every library.

Secrets are replaced wherever they stand. The libraries that speak to Slack, to models and to tools
log whole requests, so of their lines only the fact is kept. A traceback keeps its frames and the
kinds of its errors and loses their messages, which may quote what somebody wrote. Slack's token
prefixes: docs.slack.dev, tokens (2026).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from traceback import StackSummary, format_list, walk_tb

from executor.domain.secret_text import LOOKS_ALONE

HIDDEN = "[hidden]"

_PATTERNS = (
    re.compile(r"\bx(?:ox[a-z]|app)-[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*"),
    re.compile(r"https?://[^\s'\"]*/(?:response|actions|commands|link)/[^\s'\"]+"),
    re.compile(r"(?i)(?<=bearer )[^\s'\",}]+"),
    re.compile(r"(?i)authorization['\"]?\s*[:=]\s*['\"]?[^\s'\",}]+(?: [^\s'\",}]+)?"),
    re.compile(r"(?i)response_url['\"]?\s*[:=]\s*['\"]?[^\s'\",}]+"),
)
_QUOTING = (
    "slack_sdk",
    "slack_bolt",
    "openai",
    "anthropic",
    "pydantic_ai",
    "mcp",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
)
"""Libraries whose lines hold whole requests and answers at some level."""


class RedactingFormatter(logging.Formatter):
    """Formats as another formatter would, then hides what must not be read."""

    def __init__(self, inner: logging.Formatter, secrets: Iterable[str]) -> None:
        super().__init__()
        self._inner = inner
        self._secrets = sorted((s for s in secrets if s), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Format one record; never raises for what stands in it."""
        kept = logging.makeLogRecord(record.__dict__)
        kept.exc_text = kept.stack_info = None
        if record.name.partition(".")[0] in _QUOTING:
            kept.msg, kept.args = "(a message of this library, left out)", None
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            kept.exc_text = "".join(_frames(record.exc_info[1]))
        kept.exc_info = None
        return self.hide(self._inner.format(kept))

    def hide(self, text: str) -> str:
        """Replace every secret in a text."""
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for pattern in _PATTERNS:
            text = pattern.sub(HIDDEN, text)
        return LOOKS_ALONE.hide(text)


def redact_root(secrets: Iterable[str]) -> None:
    """Let every handler of the root logger hide secrets and content from now on."""
    known = list(secrets)
    for handler in logging.getLogger().handlers:
        inner = handler.formatter or logging.Formatter()
        handler.setFormatter(RedactingFormatter(inner, known))


def _frames(error: BaseException) -> Iterator[str]:
    """Show an error and what caused it: frames and kinds, no messages."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or (
            None if current.__suppress_context__ else current.__context__
        )
    for shown in reversed(chain):
        yield from format_list(StackSummary.extract(walk_tb(shown.__traceback__)))
        yield f"{type(shown).__module__}.{type(shown).__qualname__}\n"

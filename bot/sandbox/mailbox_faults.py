"""Where and how the sandbox's mail server fails: one value per fault, no chance involved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from aiosmtpd.smtp import Envelope


class Point(StrEnum):
    """The moments of a conversation at which the server can fail."""

    CONNECT = "connect"
    EHLO = "ehlo"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    CONTENT = "content"
    """After ``354`` and the first byte of content, before the final dot."""
    FINAL = "final"
    """After the final dot."""
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer with this instead; ``after_accepting`` (at ``FINAL``) keeps the mail all the same.

    At ``CONNECT`` and ``CONTENT``, and with ``421`` anywhere, the connection is closed after it.
    """

    code: int
    text: str = "refused by the sandbox"
    after_accepting: bool = False

    def line(self) -> str:
        """Spell the reply as it goes over the wire."""
        return f"{self.code} {self.text}"


@dataclass(frozen=True, slots=True)
class Close:
    """Close without an answer; ``after_accepting`` (at ``FINAL``) keeps the mail first."""

    after_accepting: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """Say nothing until released, then go on; ``after_accepting`` keeps the mail first.

    At ``CONTENT`` the connection is closed when it is released.
    """

    after_accepting: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure at one moment, of every conversation or of those that fit.

    ``conversation`` counts connections from 1, ``recipient`` is for ``RCPT``, ``when`` sees the
    envelope as far as it is known: sender, recipients and, at ``FINAL``, the content.
    """

    point: Point
    action: Reply | Close | Hang
    conversation: int | None = None
    recipient: str | None = None
    when: Callable[[Envelope], bool] | None = None

    def fits(
        self, point: Point, conversation: int, envelope: Envelope, recipient: str | None
    ) -> bool:
        """Tell whether this moment is the one."""
        return (
            point is self.point
            and self.conversation in (None, conversation)
            and self.recipient in (None, recipient)
            and (self.when is None or self.when(envelope))
        )

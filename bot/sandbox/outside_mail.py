"""The demo's mail provider: a mail server, or a double of Resend or Postmark, behind one face.

Each says which settings the executor needs for it, what it took responsibility for, and fails once
as it is told.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol

from bot.sandbox.accepted_mail import AcceptedMail
from bot.sandbox.demo_faults import DemoFault, MailKind
from bot.sandbox.mail_evidence import MailEvidence, evidence_of, evidence_of_request
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.mailbox_faults import Close, Fault, Hang, Point, Reply
from bot.sandbox.model import Json
from bot.sandbox.page import JsonObject
from bot.sandbox.passing_fault import (
    GIVEN_UP_AFTER_SECONDS,
    RETRY_AFTER_SECONDS,
    PassingFault,
    Tried,
)
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import Fault as ProviderFault
from bot.sandbox.provider_faults import PlannedFault
from bot.sandbox.resend_double import ResendDouble
from bot.sandbox.world import mail_json

_SEARCH_LAG_SECONDS = 1.0
_API_KEY, _SERVER_TOKEN = "re_sandbox", "sandbox-token"


class OutsideMail(Protocol):
    """Whoever sends the demo's mail."""

    @property
    def kind(self) -> MailKind:
        """Who it is."""

    @property
    def port(self) -> int:
        """Where it listens."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The executor's settings for it."""

    @property
    def accepted(self) -> int:
        """How many mails it took responsibility for."""

    def fail(self, fault: DemoFault, tried: Tried) -> None:
        """Let the next mail meet a fault, once; see ``demo_faults`` for what is possible."""

    async def until_it_is_over(self) -> None:
        """Wait until the fault that was planned last does nothing any more."""

    def page(self) -> list[JsonObject]:
        """Spell what customers got as the page reads it, oldest first."""

    def evidence(self, earlier: int) -> list[MailEvidence]:
        """Read the accepted mails after the first ``earlier`` ones."""

    async def __aenter__(self) -> OutsideMail: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def outside_mail(kind: MailKind, home: Path, port: int) -> OutsideMail:
    """Make the provider of that kind, which finds again in ``home`` what it accepted before."""
    match kind:
        case MailKind.SMTP:
            return MailServer(Mailbox(port=port, spool=home / "mail"))
        case MailKind.RESEND:
            resend = ResendDouble(api_key=_API_KEY, port=port, spool=home / "resend.jsonl")
            return JsonProvider(resend, _OF_RESEND)
        case MailKind.POSTMARK:
            postmark = PostmarkDouble(
                server_token=_SERVER_TOKEN,
                search_lag_seconds=_SEARCH_LAG_SECONDS,
                port=port,
                spool=home / "postmark.jsonl",
            )
            return JsonProvider(postmark, _OF_POSTMARK)


class MailServer(PassingFault):
    """A mail server; what it accepts it keeps, and delivers to nobody."""

    def __init__(self, mailbox: Mailbox) -> None:
        super().__init__()
        self.mailbox = mailbox

    @property
    def kind(self) -> MailKind:
        return MailKind.SMTP

    @property
    def port(self) -> int:
        return self.mailbox.port

    @property
    def settings(self) -> Mapping[str, str]:
        return {"SMTP_URL": self.mailbox.url}

    @property
    def accepted(self) -> int:
        return self.mailbox.accepted

    def fail(self, fault: DemoFault, tried: Tried) -> None:
        if fault is DemoFault.REFUSE:
            self.end_later(self._refuse_until(tried))
            return
        actions: dict[DemoFault, Reply | Close | Hang] = {
            DemoFault.REJECT: Reply(550),
            DemoFault.HANG_BEFORE: Hang(),
            DemoFault.HANG_AFTER: Hang(after_accepting=True),
            DemoFault.LOST_ANSWER: Close(after_accepting=True),
        }
        action = actions[fault]
        self.mailbox.fail(Fault(Point.FINAL, action, conversation=self.mailbox.conversations + 1))
        if isinstance(action, Hang):
            # What it accepts it has accepted before it hangs.
            self.end_later(_let_go(self.mailbox))

    def page(self) -> list[JsonObject]:
        return [mail_json(mail) for mail in self.mailbox.mails]

    def evidence(self, earlier: int) -> list[MailEvidence]:
        return [evidence_of(mail) for mail in self.mailbox.mails[earlier:]]

    async def _refuse_until(self, tried: Tried) -> None:
        await self.mailbox.stop()
        await tried()
        await self.mailbox.start()

    async def __aenter__(self) -> MailServer:
        await self.mailbox.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_ending()
        self.mailbox.release()
        await self.mailbox.stop()


@dataclass(frozen=True)
class _Spelling:
    """How a provider is set up, and which names its request gives to the parts of a mail."""

    kind: MailKind
    settings: Callable[[str], Mapping[str, str]]
    names: Mapping[str, str]


_OF_RESEND = _Spelling(
    MailKind.RESEND,
    lambda url: {
        "SIGNOFF_MAIL": "resend",
        "RESEND_API_KEY": _API_KEY,
        "RESEND_API_URL": url,
    },
    {name: name for name in ("from", "to", "cc", "bcc", "reply_to", "subject", "text", "html")},
)
_OF_POSTMARK = _Spelling(
    MailKind.POSTMARK,
    lambda url: {
        "SIGNOFF_MAIL": "postmark",
        "POSTMARK_SERVER_TOKEN": _SERVER_TOKEN,
        "POSTMARK_API_URL": url,
        "SIGNOFF_POSTMARK_LOOKUP_LAG_SECONDS": f"{_SEARCH_LAG_SECONDS:g}",
    },
    {
        "from": "From",
        "to": "To",
        "cc": "Cc",
        "bcc": "Bcc",
        "reply_to": "ReplyTo",
        "subject": "Subject",
        "text": "TextBody",
        "html": "HtmlBody",
    },
)


class JsonProvider(PassingFault):
    """A double of a provider that takes a mail as JSON."""

    def __init__(self, double: ResendDouble | PostmarkDouble, spelling: _Spelling) -> None:
        super().__init__()
        self.double = double
        self._spelling = spelling

    @property
    def kind(self) -> MailKind:
        return self._spelling.kind

    @property
    def port(self) -> int:
        return int(self.double.url.rpartition(":")[2])

    @property
    def settings(self) -> Mapping[str, str]:
        return self._spelling.settings(self.double.url)

    @property
    def accepted(self) -> int:
        return self.double.accepted

    def fail(self, fault: DemoFault, tried: Tried) -> None:
        planned = {
            DemoFault.REFUSE: PlannedFault(ProviderFault.REFUSE),
            DemoFault.REJECT: PlannedFault(ProviderFault.ERROR, status=422),
            DemoFault.HANG_BEFORE: PlannedFault(ProviderFault.HANG),
            DemoFault.HANG_AFTER: PlannedFault(ProviderFault.HANG, after_accepting=True),
            DemoFault.LOST_ANSWER: PlannedFault(ProviderFault.DROP, after_accepting=True),
            DemoFault.ERROR_AFTER: PlannedFault(ProviderFault.ERROR, after_accepting=True),
            DemoFault.CUT_BODY: PlannedFault(ProviderFault.CUT_BODY),
            DemoFault.REPEAT: PlannedFault(ProviderFault.DELIVER_TWICE),
            DemoFault.TOO_MANY: PlannedFault(ProviderFault.RATE_LIMIT),
            DemoFault.TOO_MANY_RETRY_AFTER: PlannedFault(
                ProviderFault.RATE_LIMIT, retry_after=RETRY_AFTER_SECONDS
            ),
        }[fault]
        self.double.fail(planned, call=self.double.faults.calls + 1)
        if planned.fault is ProviderFault.HANG:
            before = self.accepted
            mails = self.double.accepted_mails
            self.end_later(
                _let_go(self.double.faults, lambda: mails.wait_for(lambda m: m.accepted > before))
            )
        elif planned.fault is ProviderFault.REFUSE:
            self.end_later(self._listen_after(tried))

    def page(self) -> list[JsonObject]:
        return [
            self._page_json(mail, copy)
            for mail in self.double.mails
            for copy in range(1, mail.copies + 1)
        ]

    def evidence(self, earlier: int) -> list[MailEvidence]:
        return [
            evidence_of_request(self._named(mail), mail) for mail in self.double.mails[earlier:]
        ]

    def _named(self, mail: AcceptedMail) -> Json:
        """Give the parts of a mail one name each, whoever the provider is."""
        return {ours: mail.fields.get(its) for ours, its in self._spelling.names.items()}

    def _page_json(self, mail: AcceptedMail, copy: int) -> JsonObject:
        named = self._named(mail)
        return {
            "id": f"m{mail.number}" + (f"-{copy}" if copy > 1 else ""),
            "from": named["from"],
            "to": _listed(named["to"]),
            "cc": _listed(named["cc"]),
            "reply_to": ", ".join(_listed(named["reply_to"])) or None,
            "subject": named["subject"],
            "date": datetime.fromtimestamp(mail.accepted_at, UTC).isoformat(),
            "text": named["text"],
            "html": named["html"],
            "raw": mail.raw.decode("utf-8", errors="replace"),
            "sha256": hashlib.sha256(mail.raw).hexdigest(),
        }

    async def _listen_after(self, tried: Tried) -> None:
        await tried()
        self.double.faults.clear()
        await self.double.listen()

    async def __aenter__(self) -> JsonProvider:
        await self.double.listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop_ending()
        self.double.faults.release()
        await self.double.__aexit__(kind, error, trace)


class _Hanging(Protocol):
    async def wait_for_hang(self, timeout: float) -> None: ...

    def release(self) -> None: ...


async def _let_go(hanging: _Hanging, arrival: Callable[[], Awaitable[None]] | None = None) -> None:
    """Let what hangs go on once its sender has given up, and wait until it has arrived."""
    while True:
        try:
            await hanging.wait_for_hang(60.0)
        except TimeoutError:
            continue
        await asyncio.sleep(GIVEN_UP_AFTER_SECONDS)
        hanging.release()
        if arrival is not None:
            await arrival()
        return


def _listed(boxes: str | Sequence[str] | None) -> list[str]:
    if not boxes:
        return []
    return [boxes] if isinstance(boxes, str) else list(boxes)

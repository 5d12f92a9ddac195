"""One mail provider on this machine, and the real adapter that speaks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.mailbox import Mailbox
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from tests.support.doubt import Doubt
from tests.support.office import Office


@asynccontextmanager
async def resend(
    office: Office, *, bound: float = 20.0
) -> AsyncIterator[tuple[ResendDouble, Doubt]]:
    """Let an office send by Resend; what hangs is let go in the end."""
    clock = VirtualClock()
    async with ResendDouble(clock=clock) as double:
        mail = ResendMail(
            SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=bound
        )
        yield double, Doubt(office, mail, clock)
        double.faults.release()


@asynccontextmanager
async def postmark(
    office: Office, *, bound: float = 20.0
) -> AsyncIterator[tuple[PostmarkDouble, Doubt]]:
    """Let an office send by Postmark, whose records lag behind; see ``resend``."""
    clock = VirtualClock()
    async with PostmarkDouble(clock=clock, search_lag_seconds=200.0) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=bound
        )
        yield double, Doubt(office, mail, clock)
        double.faults.release()


@asynccontextmanager
async def smtp(office: Office, *, bound: float = 20.0) -> AsyncIterator[tuple[Mailbox, Doubt]]:
    """Let an office send by SMTP; see ``resend``."""
    async with Mailbox() as double:
        mail = SmtpMail(parse_smtp_url(double.url), longest_request_seconds=bound)
        yield double, Doubt(office, mail)
        double.release()

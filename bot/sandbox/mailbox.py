"""A mail server to try Signoff with: it keeps what it accepts, and fails where it is told to.

It speaks real SMTP on this machine only and runs in the caller's event loop. What it counts as
accepted is exactly what a server would have taken responsibility for, whether or not the client
ever learnt of it. Where it fails is described in ``mailbox_faults``.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from bot.sandbox.mailbox_faults import Close, Fault, Hang, Point, Reply
from bot.sandbox.mailbox_spool import ReceivedMail, Spool

MOST_MAILS = 10_000
"""Mails that a mailbox holds; it answers ``452`` beyond them."""


class Mailbox:
    """An SMTP server on 127.0.0.1.

    Use it as an async context manager, or call ``start`` and ``stop``. With a ``spool`` folder (a
    Maildir) mails survive a restart; without one they live as long as this object. With
    ``credentials`` senders have to log in.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        spool: Path | None = None,
        credentials: tuple[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        implicit_tls: bool = False,
        smtputf8: bool = True,
        size_limit: int | None = 2**25,
    ) -> None:
        self.faults: list[Fault] = []
        self.mails: list[ReceivedMail] = []
        self.accepted = 0
        self.logins = 0
        self._port = port
        self._spool = Spool(spool) if spool else None
        self._credentials = credentials
        self._tls = tls
        self._implicit_tls = implicit_tls
        self._smtputf8 = smtputf8
        self._size_limit = size_limit
        self._changed = asyncio.Condition()
        self._released = asyncio.Event()
        self._hanging = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._server: asyncio.Server | None = None
        self.conversations = 0
        self._open: set[_Server] = set()

    @property
    def port(self) -> int:
        """The port that is listened on, once ``start`` was called."""
        return self._port

    @property
    def url(self) -> str:
        """``SMTP_URL`` for this server, without credentials."""
        return f"{'smtps' if self._implicit_tls else 'smtp'}://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen; a port that was free at the first start is kept for later ones."""
        if self._spool and not self.mails:
            self.mails = await asyncio.to_thread(self._spool.load, MOST_MAILS)
            self.accepted = len(self.mails)
        self._server = await asyncio.get_running_loop().create_server(
            self._new_server,
            "127.0.0.1",
            self._port,
            ssl=self._tls if self._implicit_tls else None,
        )
        self._port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening, so that connections are refused, and drop those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        tasks = [server.end() for server in list(self._open)]
        await asyncio.gather(*filter(None, tasks), return_exceptions=True)

    async def __aenter__(self) -> Mailbox:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def fail(self, fault: Fault) -> None:
        """Fail from now on as told; the first fault that fits a moment is the one that happens.

        What is told to hang does so until the next release.
        """
        self.faults.append(fault)
        if isinstance(fault.action, Hang):
            self._released.clear()
            self._hanging.clear()

    def release(self) -> None:
        """Let everything go on that hangs, and nothing hang any more."""
        self._released.set()

    async def wait_for_hang(self, timeout: float = 10.0) -> None:
        """Wait until a conversation has come to a ``Hang``."""
        async with asyncio.timeout(timeout):
            await self._hanging.wait()

    async def wait_for(self, predicate: Callable[[Mailbox], bool], timeout: float = 10.0) -> None:
        """Wait until what is kept here satisfies ``predicate``; raises ``TimeoutError``."""
        async with asyncio.timeout(timeout), self._changed:
            await self._changed.wait_for(lambda: predicate(self))

    async def wait_for_no_connection(self, timeout: float = 10.0) -> None:
        """Wait until every connection is closed."""
        async with asyncio.timeout(timeout):
            await self._idle.wait()

    async def accept(self, envelope: Envelope, *, encrypted: bool) -> bool:
        """Take responsibility for a mail; ``False`` when there is no room for it."""
        if len(self.mails) >= MOST_MAILS:
            return False
        mail = ReceivedMail(
            number=self.accepted + 1,
            envelope_from=envelope.mail_from or "",
            envelope_to=tuple(envelope.rcpt_tos),
            raw=envelope.original_content or b"",
            received_at=datetime.now(UTC),
            encrypted=encrypted,
        )
        self.accepted += 1
        self.mails.append(mail)
        if self._spool:
            await asyncio.to_thread(self._spool.keep, mail)
        async with self._changed:
            self._changed.notify_all()
        return True

    def fault_at(
        self, point: Point, conversation: int, envelope: Envelope, recipient: str | None = None
    ) -> Reply | Close | Hang | None:
        """Choose what happens at a moment of a conversation instead of the usual."""
        for fault in self.faults:
            if fault.fits(point, conversation, envelope, recipient):
                return fault.action
        return None

    async def hang(self) -> None:
        """Wait until released."""
        self._hanging.set()
        await self._released.wait()

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object
    ) -> AuthResult:
        """Check a login against this mailbox's credentials."""
        self.logins += 1
        expected = self._credentials
        ok = isinstance(data, LoginPassword) and (
            expected is not None and (data.login.decode(), data.password.decode()) == expected
        )
        return AuthResult(success=ok, handled=False)

    def demands_login(self, session: Session) -> bool:
        """Tell whether a conversation may not send yet."""
        return self._credentials is not None and not session.authenticated

    def ended(self, server: _Server) -> None:
        """Forget a connection that was closed."""
        self._open.discard(server)
        if not self._open:
            self._idle.set()

    def _new_server(self) -> SMTP:
        self.conversations += 1
        server = _Server(
            self,
            self.conversations,
            smtputf8=self._smtputf8,
            size_limit=self._size_limit,
            tls=None if self._implicit_tls else self._tls,
        )
        self._open.add(server)
        self._idle.clear()
        return server


class _Server(SMTP):
    """One connection: the protocol of aiosmtpd with faults put in before each of its steps."""

    def __init__(
        self,
        mailbox: Mailbox,
        number: int,
        *,
        smtputf8: bool,
        size_limit: int | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._mailbox = mailbox
        self._number = number
        super().__init__(
            self,
            data_size_limit=size_limit,
            enable_SMTPUTF8=smtputf8,
            hostname="sandbox.invalid",
            ident="Signoff sandbox",
            tls_context=tls,
            auth_require_tls=False,
            authenticator=mailbox.authenticate,
            loop=asyncio.get_running_loop(),
        )

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._mailbox.ended(self)

    def end(self) -> asyncio.Task[None] | None:
        """Drop the connection and return the task that served it."""
        self._drop()
        task: asyncio.Task[None] | None = self._handler_coroutine
        if task is not None:
            task.cancel()
        return task

    async def _handle_client(self) -> None:
        try:
            if await self._goes_on(Point.CONNECT):
                await super()._handle_client()
        except ConnectionError:
            # Nobody is left to answer.
            return
        finally:
            self._writer.close()

    async def smtp_EHLO(self, hostname: str) -> None:
        if await self._goes_on(Point.EHLO):
            await super().smtp_EHLO(hostname)

    async def smtp_MAIL(self, arg: str | None) -> None:
        if self._mailbox.demands_login(self._session()):
            await self.push("530 5.7.0 Authentication required")
        elif await self._goes_on(Point.MAIL):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg: str | None) -> None:
        recipient = (arg or "").partition(":")[2].strip(" <>")
        if await self._goes_on(Point.RCPT, recipient):
            await super().smtp_RCPT(arg)

    async def smtp_DATA(self, arg: str) -> None:
        if not await self._goes_on(Point.DATA):
            return
        action = self._mailbox.fault_at(Point.CONTENT, self._number, self._mail())
        if action is None:
            await super().smtp_DATA(arg)
            return
        await self.push("354 End data with <CR><LF>.<CR><LF>")
        await self._reader.readexactly(1)
        await self._act(action)
        self._writer.close()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        action = self._mailbox.fault_at(Point.FINAL, self._number, envelope)
        if action is None:
            return await self._accepted(envelope)
        answer = None
        if action.after_accepting:
            answer = await self._accepted(envelope)
        if isinstance(action, Reply):
            return action.line()
        if isinstance(action, Close):
            # The task that serves this connection ends with it.
            self._drop()
            raise ConnectionResetError("closed by a fault")
        await self._mailbox.hang()
        return answer or await self._accepted(envelope)

    async def _accepted(self, envelope: Envelope) -> str:
        encrypted = self._writer.get_extra_info("sslcontext") is not None
        if await self._mailbox.accept(envelope, encrypted=encrypted):
            return f"250 2.0.0 Ok: queued as {self._mailbox.accepted}"
        return "452 4.3.1 The mailbox is full"

    async def smtp_QUIT(self, arg: str) -> None:
        if await self._goes_on(Point.QUIT):
            await super().smtp_QUIT(arg)

    async def _goes_on(self, point: Point, recipient: str | None = None) -> bool:
        """Let a fault happen, if one is due, and tell whether the usual is to follow."""
        action = self._mailbox.fault_at(point, self._number, self._mail(), recipient)
        return action is None or await self._act(action)

    async def _act(self, action: Reply | Close | Hang) -> bool:
        if isinstance(action, Reply):
            await self.push(action.line())
            if action.code == 421:
                self._writer.close()
            return False
        if isinstance(action, Close):
            self._drop()
            return False
        await self._mailbox.hang()
        return True

    def _drop(self) -> None:
        transport = self.transport
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()

    def _mail(self) -> Envelope:
        return self.envelope or Envelope()

    def _session(self) -> Session:
        return self.session or self._create_session()

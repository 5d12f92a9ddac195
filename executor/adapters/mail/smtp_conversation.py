"""One SMTP conversation, led command by command, that knows at every moment how far it came.

``phase`` says what is being waited for. Content leaves only after every recipient was accepted, and
``drop`` discards what the system had not sent yet, so that nothing leaves behind our back.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import ssl
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import aiosmtplib

from executor.adapters.mail.smtp_url import Encryption, SmtpSettings
from executor.domain.payloads import JsonObject
from executor.engine.ports import OutgoingMail

_LONGEST_REPLY = 300
_RESET_SECONDS = 5.0
_ENHANCED_STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")


class Phase(StrEnum):
    """What a conversation is busy with; from ``content`` on, a loss proves nothing."""

    CONNECT = "connect"
    EHLO = "ehlo"
    STARTTLS = "starttls"
    AUTH = "auth"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    CONTENT = "content"
    FINAL_REPLY = "final_reply"


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a server says it takes; a ``size`` of ``None`` is no limit."""

    smtputf8: bool
    size: int | None

    def objection(self, addresses: Sequence[str], mime: bytes) -> str | None:
        """Say why the server could not take this mail, or ``None``."""
        if self.size is not None and self.size < len(mime):
            return f"the message has {len(mime)} octets, the server takes {self.size}"
        if not self.smtputf8 and not ("".join(addresses).isascii() and mime.isascii()):
            return (
                "an address has characters beyond ASCII before its @, "
                "and the server cannot take such addresses (SMTPUTF8)"
            )
        return None


class Refused(Exception):
    """The conversation ended before any content left; nothing was sent.

    ``refused`` lists refused recipients as ``{"address": …, "code": 550, "reply": "…"}``.
    """

    def __init__(
        self,
        phase: Phase,
        problem: str,
        *,
        code: int | None = None,
        reply: str = "",
        retryable: bool = False,
        refused: Sequence[JsonObject] = (),
    ) -> None:
        super().__init__(problem)
        self.phase = phase
        self.problem = problem
        self.code = code
        self.reply = reply
        self.retryable = retryable
        self.refused = refused

    def evidence(self) -> dict[str, str | int | Sequence[JsonObject]]:
        """Spell the refusal as evidence."""
        evidence: dict[str, str | int | Sequence[JsonObject]] = {
            "phase": self.phase.value,
            "problem": self.problem,
        }
        if self.code is not None:
            evidence["code"] = self.code
            evidence["reply"] = self.reply
        if self.refused:
            evidence["refused"] = self.refused
        return evidence


class Conversation:
    """One connection to one server, for one mail."""

    def __init__(self, settings: SmtpSettings, tls_context: ssl.SSLContext | None) -> None:
        self._settings = settings
        self._client = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            use_tls=settings.encryption is Encryption.IMPLICIT,
            start_tls=False,
            tls_context=tls_context,
            # The whole conversation has one bound, which the caller enforces.
            timeout=None,
            # Never sent: we greet by a name of our own. Left out, it would be looked up in DNS.
            local_hostname="localhost",
        )
        self._transport: asyncio.BaseTransport | None = None
        self._encrypted = settings.encryption is Encryption.IMPLICIT
        self.phase = Phase.CONNECT

    async def greet(self) -> None:
        """Connect, greet, encrypt and log in, as the settings say; raises ``Refused``."""
        try:
            await self._client.connect()
        except aiosmtplib.SMTPConnectResponseError as answer:
            raise self._refusal("the server does not serve us now", answer) from None
        self._transport = self._client.transport
        await self._ehlo()
        await self._encrypt()
        await self._log_in()

    def limits(self) -> ServerLimits:
        """Read what the server that was greeted says it takes."""
        size = self._client.esmtp_extensions.get("size", "")
        limit = int(size) if size.isascii() and size.isdigit() else 0
        return ServerLimits(self._client.supports_extension("smtputf8"), limit or None)

    async def address(self, mail: OutgoingMail, mime: bytes) -> None:
        """Announce sender and recipients; any refused recipient ends it for all of them.

        Raises ``Refused`` that names each refused recipient with the server's reply.
        """
        self.phase = Phase.MAIL
        options = self._mail_options(mail, mime)
        answer = await self._command(
            b"MAIL", b"FROM:<" + mail.envelope_from.encode() + b">", *options
        )
        if answer.code != 250:
            raise self._refusal("the sender was refused", answer)
        self.phase = Phase.RCPT
        refusals: list[tuple[str, aiosmtplib.SMTPResponse]] = []
        for recipient in mail.envelope_to:
            answer = await self._command(b"RCPT", b"TO:<" + recipient.encode() + b">")
            if answer.code not in (250, 251):
                refusals.append((recipient, answer))
            if answer.code == 421:
                break
        if not refusals:
            return
        await self._reset()
        raise Refused(
            Phase.RCPT,
            f"refused: {', '.join(recipient for recipient, _ in refusals)}",
            code=refusals[0][1].code,
            reply=self.one_line(refusals[0][1].message),
            retryable=all(400 <= answer.code < 500 for _, answer in refusals),
            refused=[
                {
                    "address": recipient,
                    "code": answer.code,
                    "reply": self.one_line(answer.message),
                }
                for recipient, answer in refusals
            ],
        )

    async def hand_over(self, mime: bytes) -> tuple[int, str]:
        """Send the content and return the code and text of the reply to its final dot.

        Raises ``Refused`` when the server does not want content.
        """
        self.phase = Phase.DATA
        answer = await self._command(b"DATA")
        if answer.code != 354:
            raise self._refusal("the server did not take the content", answer)
        protocol = self._client.protocol
        if protocol is None:
            raise aiosmtplib.SMTPServerDisconnected("Connection lost")
        # aiosmtplib 5.1 keeps what came in one piece with the 354 and would take it for the answer
        # to the content, whatever the server says afterwards. It offers no public look at it.
        if protocol._buffer:
            raise Refused(Phase.DATA, "the server answered before it had the content")
        self.phase = Phase.CONTENT
        protocol.write(re.sub(rb"(?m)^\.", b"..", mime) + b".\r\n")
        try:
            reply = await protocol.read_response()
        except aiosmtplib.SMTPResponseException as malformed:
            self.phase = Phase.FINAL_REPLY
            return malformed.code, malformed.message
        self.phase = Phase.FINAL_REPLY
        return reply.code, reply.message

    def take_leave(self) -> None:
        """Say QUIT and close without waiting: what the mail came to is known already."""
        if self._client.protocol is not None and self._client.is_connected:
            self._client.protocol.write(b"QUIT\r\n")
        self._client.close()
        self._transport = None

    def drop(self) -> None:
        """End the connection at once and discard what has not left yet; again: does nothing."""
        # A plain close would first flush, and could so complete a message that was given up.
        transport = self._client.transport or self._transport
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
        self._client.close()
        self._transport = None

    def one_line(self, reply: str) -> str:
        """Trim a server's reply to one storable line that repeats no credentials."""
        for secret in self._secrets():
            reply = reply.replace(secret, "***")
        printable = "".join(c if c.isprintable() else " " for c in reply)
        return " ".join(printable.split())[:_LONGEST_REPLY]

    async def _ehlo(self) -> None:
        self.phase = Phase.EHLO
        name = self._settings.ehlo_name or self._own_literal()
        try:
            await self._client.ehlo(hostname=name)
        except aiosmtplib.SMTPHeloError as answer:
            if answer.code < 500 or not self._client.is_connected:
                raise self._refusal("the server refused our greeting", answer) from None
            try:
                await self._client.helo(hostname=name)
            except aiosmtplib.SMTPHeloError as second:
                raise self._refusal("the server refused our greeting", second) from None

    def _own_literal(self) -> str:
        """Name ourselves by our socket's address, as RFC 5321, 4.1.4, allows."""
        sockname = self._client.get_transport_info("sockname")
        address = ipaddress.ip_address(str(sockname[0]).partition("%")[0])
        return f"[IPv6:{address}]" if address.version == 6 else f"[{address}]"

    async def _encrypt(self) -> None:
        wanted = self._settings.encryption
        if wanted in (Encryption.IMPLICIT, Encryption.NONE):
            return
        self.phase = Phase.STARTTLS
        if not self._client.supports_extension("starttls"):
            if wanted is Encryption.REQUIRED:
                raise Refused(Phase.STARTTLS, "the server offers no encryption, it is required")
            return
        try:
            await self._client.starttls()
        except aiosmtplib.SMTPResponseException as answer:
            raise self._refusal("the server did not begin encryption", answer) from None
        self._transport = self._client.transport
        self._encrypted = True
        await self._ehlo()

    async def _log_in(self) -> None:
        username, password = self._settings.username, self._settings.password
        if username is None or password is None:
            return
        self.phase = Phase.AUTH
        if not self._encrypted and not self._may_speak_openly():
            raise Refused(
                Phase.AUTH,
                "the server offers no encryption, so the password was not sent; "
                "tls=none in SMTP_URL would allow it",
            )
        if not self._client.supported_auth_methods:
            raise Refused(Phase.AUTH, "the server offers no login that we know")
        try:
            await self._client.login(username, password)
        except aiosmtplib.SMTPAuthenticationError as answer:
            # The text of the answer may repeat what was sent; its status does not.
            status = _ENHANCED_STATUS.match(answer.message)
            raise Refused(
                Phase.AUTH,
                "the login was refused",
                code=answer.code,
                reply=status.group() if status else "",
                retryable=400 <= answer.code < 500,
            ) from None

    def _may_speak_openly(self) -> bool:
        if self._settings.encryption is Encryption.NONE:
            return True
        peer = self._client.get_transport_info("peername")
        return ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback

    def _mail_options(self, mail: OutgoingMail, mime: bytes) -> list[bytes]:
        """List the parameters of MAIL; refuse what the server has said it cannot take."""
        addresses = (mail.envelope_from, *mail.envelope_to)
        refused = self.limits().objection(addresses, mime)
        if refused is not None:
            raise Refused(Phase.MAIL, refused)
        options: list[bytes] = []
        if "size" in self._client.esmtp_extensions:
            options.append(b"SIZE=%d" % len(mime))
        if not ("".join(addresses).isascii() and mime.isascii()):
            options.extend((b"BODY=8BITMIME", b"SMTPUTF8"))
        return options

    async def _reset(self) -> None:
        """Take the accepted recipients back; who was refused is known, whatever comes of this."""
        with suppress(OSError, aiosmtplib.SMTPException):
            async with asyncio.timeout(_RESET_SECONDS):
                await self._client.execute_command(b"RSET")

    async def _command(self, *words: bytes) -> aiosmtplib.SMTPResponse:
        try:
            return await self._client.execute_command(*words)
        except aiosmtplib.SMTPResponseException as malformed:
            raise self._refusal("the server's reply made no sense", malformed) from None

    def _refusal(
        self,
        problem: str,
        answer: aiosmtplib.SMTPResponse | aiosmtplib.SMTPResponseException,
    ) -> Refused:
        return Refused(
            self.phase,
            problem,
            code=answer.code,
            reply=self.one_line(answer.message),
            retryable=400 <= answer.code < 500,
        )

    def _secrets(self) -> list[str]:
        username, password = self._settings.username, self._settings.password
        if not username or not password:
            return []
        plain = f"\0{username}\0{password}"
        return [password, *(b64encode(text.encode()).decode() for text in (plain, password))]

"""``SMTP_URL``: everything that reaching one mail server takes, in one setting.

``smtp://user:password@host:port`` speaks in the clear until the server offers STARTTLS, then
encrypts; ``smtps://`` encrypts from the first byte. The password is in no representation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

_DEFAULT_PORTS = {"smtp": 587, "smtps": 465}
_EHLO_NAME = re.compile(r"[A-Za-z0-9.-]{1,255}|\[[A-Za-z0-9.:]{1,64}\]")


class Encryption(StrEnum):
    """When a conversation is encrypted."""

    IMPLICIT = "implicit"
    REQUIRED = "required"
    IF_OFFERED = "if_offered"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """How one mail server is reached; ``ehlo_name`` ``None`` means our socket's own address."""

    host: str
    port: int
    encryption: Encryption
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ehlo_name: str | None = None


def parse_smtp_url(url: str) -> SmtpSettings:
    """Read ``SMTP_URL``, e.g. ``smtp://user:secret@mail.example:587?tls=required``.

    Parameters: ``tls`` (``required`` or ``none``, for ``smtp`` only) and ``ehlo``, the name that we
    greet with. Special characters in user and password are percent-encoded. Raises ``ValueError``
    with a sentence that never holds the password.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        # The parser's own words would repeat the URL and with it the password.
        raise ValueError("SMTP_URL is not a URL, or its port is not a number") from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError("SMTP_URL must begin with smtp:// or smtps://")
    if not parts.hostname:
        raise ValueError("SMTP_URL names no host; write smtp://host:port")
    if parts.path not in ("", "/") or parts.fragment:
        raise ValueError("SMTP_URL ends after host and port; percent-encode / and # in a password")
    username = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    if (username is None) != (password is None):
        raise ValueError("SMTP_URL needs both a user and a password, or neither")
    parameters = _parameters(parts)
    ehlo_name = parameters.pop("ehlo", None)
    if ehlo_name is not None and not _EHLO_NAME.fullmatch(ehlo_name):
        raise ValueError("SMTP_URL: ehlo must be a host name or an address in brackets")
    return SmtpSettings(
        host=parts.hostname,
        port=_DEFAULT_PORTS[parts.scheme] if port is None else port,
        encryption=_encryption(parts.scheme, parameters.pop("tls", None)),
        username=username,
        password=password,
        ehlo_name=ehlo_name,
    )


def _parameters(parts: SplitResult) -> dict[str, str]:
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    for name, _ in pairs:
        if name not in ("tls", "ehlo"):
            raise ValueError("SMTP_URL knows only the parameters tls and ehlo")
    if len(dict(pairs)) != len(pairs):
        raise ValueError("SMTP_URL gives a parameter twice")
    return dict(pairs)


def _encryption(scheme: str, tls: str | None) -> Encryption:
    if scheme == "smtps":
        if tls is not None:
            raise ValueError("SMTP_URL: smtps:// is always encrypted and takes no tls parameter")
        return Encryption.IMPLICIT
    if tls is None:
        return Encryption.IF_OFFERED
    if tls == "required":
        return Encryption.REQUIRED
    if tls == "none":
        return Encryption.NONE
    raise ValueError("SMTP_URL: tls must be required or none")

"""A database URL is understood completely or refused; no part of it is ever dropped in silence.

asyncpg reads libpq's own parameters, but sends every word that it does not know to the server as a
setting, where it fails with an error that names no URL. So each parameter is sorted here first.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

_SCHEMES = frozenset({"postgres", "postgresql", "postgresql+asyncpg"})
# Parameters that asyncpg.connect(dsn) reads itself (asyncpg 0.32, connect_utils.py, read 2025-11).
_UNDERSTOOD = frozenset(
    {
        "host", "port", "user", "password", "dbname", "database", "passfile", "service",
        "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation",
        "ssl_min_protocol_version", "ssl_max_protocol_version",
        "target_session_attrs", "krbsrvname", "gsslib",
    }
)  # fmt: skip
# SQLAlchemy's spelling of the same parameter for asyncpg.
_RENAMED = {"ssl": "sslmode"}
# What the executor sets itself, whatever the URL says.
_OURS = frozenset({"application_name", "fallback_application_name", "connect_timeout"})
# Values that ask for nothing beyond what asyncpg does anyway.
_HARMLESS = {
    "channel_binding": frozenset({"disable", "prefer"}),
    "gssencmode": frozenset({"disable", "prefer"}),
    "client_encoding": frozenset({"utf8", "UTF8", "utf-8", "UTF-8"}),
}


class UnsupportedAddress(ValueError):
    """A database URL asks for what cannot be given; the message never holds its password."""


def asyncpg_dsn(url: str) -> str:
    """Return ``url`` as a DSN that asyncpg understands completely.

    Takes ``postgres://``, ``postgresql://`` and ``postgresql+asyncpg://``. ``ssl=`` becomes
    ``sslmode=``. A name for the connection and a time limit are the executor's own and are left
    out. Raises ``UnsupportedAddress`` for any other scheme, driver or parameter.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        raise UnsupportedAddress(
            f"the database URL begins with {parts.scheme or 'nothing'!r}: only PostgreSQL is "
            "supported, write postgresql://user@host/database"
        )
    query: list[tuple[str, str]] = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        known = _RENAMED.get(name, name)
        if known in _UNDERSTOOD:
            query.append((known, value))
        elif known not in _OURS and value not in _HARMLESS.get(known, frozenset()):
            raise UnsupportedAddress(
                f"the database URL says {known}={value}, which the asyncpg driver does not "
                "support: remove it, or set it for the role with ALTER ROLE"
            )
    return urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(query), ""))


def with_database(url: str, name: str) -> str:
    """Return ``url`` pointing at the database ``name`` on the same server."""
    parts = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(parts.query) if k not in {"dbname", "database"}]
    return urlunsplit((parts.scheme, parts.netloc, f"/{name}", urlencode(query), ""))

"""A database URL is understood completely or refused."""

from __future__ import annotations

import pytest

from executor.store.address import UnsupportedAddress, asyncpg_dsn, with_database


@pytest.mark.parametrize(
    ("url", "dsn"),
    [
        ("postgres://u@h/d", "postgresql://u@h/d"),
        ("postgresql+asyncpg://u@h:5433/d", "postgresql://u@h:5433/d"),
        ("postgresql://u:p%40ss@h/d?sslmode=require", "postgresql://u:p%40ss@h/d?sslmode=require"),
        ("postgresql+asyncpg://u@h/d?ssl=verify-full", "postgresql://u@h/d?sslmode=verify-full"),
        ("postgresql://u@/d?host=/run/pg&port=5433", "postgresql://u@/d?host=%2Frun%2Fpg&port=5433"),
        ("postgresql://h/d?application_name=x&connect_timeout=3", "postgresql://h/d"),
        ("postgresql://h/d?channel_binding=prefer", "postgresql://h/d"),
        ("postgresql://a,b:5433/d?target_session_attrs=primary",
         "postgresql://a,b:5433/d?target_session_attrs=primary"),
    ],
)  # fmt: skip
def test_what_libpq_takes_becomes_what_asyncpg_takes(url: str, dsn: str) -> None:
    assert asyncpg_dsn(url) == dsn


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("mysql://u@h/d", "only PostgreSQL is supported"),
        ("postgresql+psycopg://u@h/d", "only PostgreSQL is supported"),
        ("sqlite:///signoff.db", "only PostgreSQL is supported"),
        ("h/d", "begins with 'nothing'"),
        ("postgresql://h/d?channel_binding=require", "channel_binding=require"),
        ("postgresql://h/d?options=-csearch_path%3Dx", "ALTER ROLE"),
        ("postgresql://h/d?keepalives=1", "remove it"),
    ],
)
def test_what_cannot_be_given_is_refused_by_name(url: str, complaint: str) -> None:
    with pytest.raises(UnsupportedAddress, match=complaint):
        asyncpg_dsn(url)


def test_a_refusal_does_not_repeat_the_password() -> None:
    with pytest.raises(UnsupportedAddress) as refusal:
        asyncpg_dsn("postgresql://u:hunter2@h/d?password=hunter2&keepalives=1")
    assert "hunter2" not in str(refusal.value)


def test_another_database_on_the_same_server_keeps_everything_else() -> None:
    url = "postgresql+asyncpg://u@/one?host=%2Frun%2Fpg&port=5433"
    assert with_database(url, "two") == "postgresql+asyncpg://u@/two?host=%2Frun%2Fpg&port=5433"
    assert with_database("postgresql://h/one?dbname=x", "two") == "postgresql://h/two"

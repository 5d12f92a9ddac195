"""The database of a test, and an environment in which nothing of the machine's own is set."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from executor.store.database import Database
from tests.support.database import TestServer, running_server
from tests.support.nursery import Nursery, running_nursery

# Read before anything is scrubbed: the one setting that is meant for the tests.
_GIVEN_DATABASE_URL = os.environ.get("SIGNOFF_TEST_DATABASE_URL")
_SETTINGS_OF_OURS = (
    "DATABASE_URL",
    "SIGNOFF_",
    "EXECUTOR_",
    "BOT_",
    "SLACK_",
    "SMTP_",
    "RESEND_",
    "POSTMARK_",
    "ZENDESK_",
    "GITHUB_",
    "OPENAI_",
    "ANTHROPIC_",
    "PG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
)
_LONGEST = ("test_torture.py", "test_demo_faults.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--torture-runs",
        type=int,
        default=60,
        help="how many runs are to survive random kills (tests/faults/test_torture.py)",
    )


def pytest_configure() -> None:
    # A run that is told to end unwinds its fixtures, and so leaves no server behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # At the start and not in a fixture, so that modules imported during collection see it too.
    for name in list(os.environ):
        if name.upper().startswith(_SETTINGS_OF_OURS):
            del os.environ[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The longest first, or the last worker would end with one of them alone.
    items.sort(key=lambda item: item.get_closest_marker("torture") is None)
    items.sort(key=lambda item: item.path.name not in _LONGEST)


def pytest_collection_finish() -> None:
    # What was imported stays to the end: nobody need look through it for garbage again and again.
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def database_server() -> Iterator[TestServer]:
    """The session's PostgreSQL: ``SIGNOFF_TEST_DATABASE_URL``, or else a private one."""
    with running_server(_GIVEN_DATABASE_URL) as server:
        yield server


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Starts our programs without the time that importing takes."""
    with running_nursery() as nursery:
        yield nursery


@pytest.fixture
async def database_url(database_server: TestServer) -> AsyncIterator[str]:
    """The URL of a migrated database that no other test sees."""
    async with database_server.fresh_database() as url:
        yield url


@pytest.fixture
async def empty_database_url(database_server: TestServer) -> AsyncIterator[str]:
    """The URL of a database without any schema."""
    async with database_server.fresh_database(migrated=False) as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A connected ``Database`` of its own, disposed of after the test."""
    database = Database.connect(database_url, application_name="test")
    yield database
    await database.dispose()

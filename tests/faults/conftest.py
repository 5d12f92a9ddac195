"""A folder for a whole installation."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from executor.store.database import Database
from tests.support import invariants
from tests.support.nursery import Nursery
from tests.support.office import Office
from tests.support.tcp_proxy import TcpProxy, tcp_proxy
from tests.support.theatre import Theatre


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL can live in, also as root, who lends it to another user.

    Not below ``tmp_path``: each session of pytest takes the way through the parent that they all
    share (``/tmp/pytest-of-root``) from other users again.
    """
    path = Path(tempfile.mkdtemp(prefix="signoff-tests-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def office(database: Database) -> AsyncIterator[Office]:
    """One tenant at work; the invariants hold when the test is over."""
    office = await Office.open(database)
    yield office
    await invariants.check(database)


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[TcpProxy]:
    """A proxy before the test's database that can lose the answer to a COMMIT."""
    async with tcp_proxy(database_url) as proxy:
        yield proxy


@pytest.fixture
async def far(office: Office, proxy: TcpProxy) -> AsyncIterator[Office]:
    """The same office, worked in by a process that reaches the database through the proxy."""
    database = Database.connect(proxy.url, application_name="far")
    yield office.colleague(database)
    await database.dispose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def theatre(nursery: Nursery) -> AsyncIterator[Theatre]:
    """A stage of the demo for the plays of one module."""
    theatre = Theatre(nursery)
    yield theatre
    await theatre.close()

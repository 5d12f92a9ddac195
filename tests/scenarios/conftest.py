"""An open office for every test of the use cases; after each, what must hold is checked."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from executor.store.database import Database
from tests.support import invariants
from tests.support.office import Office


@pytest.fixture
async def office(database: Database) -> AsyncIterator[Office]:
    """One tenant at work; the invariants hold when the test is over."""
    office = await Office.open(database)
    yield office
    await invariants.check(database)

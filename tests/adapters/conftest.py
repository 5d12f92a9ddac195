"""A double of the servers of models, and each way to ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.sandbox.model_double import ModelDouble
from executor.engine.ports import ModelPort
from tests.adapters.remote_models import COUNTED, WAYS, model_at


@pytest.fixture
async def double() -> AsyncIterator[ModelDouble]:
    async with ModelDouble([COUNTED]) as running:
        yield running


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'streamed' if way[1] else 'whole'}")
def way(request: pytest.FixtureRequest) -> tuple[str, bool]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def model(double: ModelDouble, way: tuple[str, bool]) -> ModelPort:
    return model_at(double, way[0], streamed=way[1])

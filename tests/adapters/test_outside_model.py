"""The demo's model at a double: chosen by settings, priced by the demo's policy."""

from __future__ import annotations

import tomllib

import pytest

from bot.sandbox.demo_faults import ModelKind
from bot.sandbox.demo_policy import demo_policy
from bot.sandbox.outside_model import OUTSIDE_MODEL, outside_model
from executor.adapters.models.model_choice import model_from
from executor.domain.policy import Policy
from executor.engine.ports import ModelRequest
from tests.adapters.remote_models import READ


@pytest.mark.parametrize("kind", [ModelKind.ANTHROPIC, ModelKind.OPENAI])
async def test_the_demo_has_a_price_for_the_model_that_it_asks(kind: ModelKind) -> None:
    policy = Policy.model_validate(tomllib.loads(demo_policy()))
    async with outside_model(kind, 0) as outside:
        model = model_from(outside.settings, 20)
        request = ModelRequest("close 4101", (READ,), (), 1_000, prices=policy.prices)
        reply = await model.reply(request)
    assert model.name == OUTSIDE_MODEL
    assert reply.cost_microusd
    [asked] = reply.tool_calls
    assert asked.arguments == {"ticket_id": "4101"}


async def test_the_scripted_model_needs_no_settings() -> None:
    async with outside_model(ModelKind.SCRIPTED, 0) as outside:
        assert (outside.settings, outside.port) == ({}, None)

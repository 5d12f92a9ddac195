"""What the tests of real models share: both adapters against one double, and a request to make."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from bot.sandbox.model_double import ModelDouble
from bot.sandbox.model_reply import SaidReply, call
from executor.adapters.models.model_choice import model_from
from executor.domain.policy_money import PriceSection
from executor.engine.ports import ModelFailed, ModelPort, ModelReply, ModelRequest, ToolSpec, Turn

MODEL = "test-model"
PRICE = PriceSection(
    input_usd_per_million=Decimal(3),
    output_usd_per_million=Decimal(15),
    cache_write_usd_per_million=Decimal("3.75"),
    cache_read_usd_per_million=Decimal("0.3"),
)
READ = ToolSpec(
    "read_ticket",
    "Read one ticket.",
    {
        "type": "object",
        "properties": {"ticket_id": {"type": "string"}},
        "required": ["ticket_id"],
        "additionalProperties": False,
    },
)
KINDS = ("anthropic", "openai")
WAYS = [(kind, streamed) for kind in KINDS for streamed in (True, False)]
COUNTED = SaidReply(
    "Read it.",
    (call("c1", "read_ticket", ticket_id="4101"),),
    input_tokens=1_000,
    output_tokens=40,
    cache_read=300,
    cache_write=100,
)


def settings_for(
    kind: str, url: str, *, streamed: bool = True, model: str = MODEL
) -> dict[str, str]:
    """Choose a model at this address."""
    prefix = kind.upper()
    return {
        "SIGNOFF_MODEL": f"{kind}:{model}",
        "SIGNOFF_MODEL_STREAMED": str(streamed).lower(),
        f"{prefix}_BASE_URL": url + ("/v1" if kind == "openai" else ""),
        f"{prefix}_API_KEY": "sk-sandbox",
    }


def model_at(
    double: ModelDouble,
    kind: str,
    *,
    streamed: bool,
    seconds: float = 20.0,
    model: str = MODEL,
    more: Mapping[str, str] | None = None,
) -> ModelPort:
    """Make the adapter of this kind, pointed at the double."""
    chosen = settings_for(kind, double.url, streamed=streamed, model=model)
    return model_from({**chosen, **(more or {})}, seconds)


def request(*turns: Turn, goal: str = "close 4101", most: int = 1_000) -> ModelRequest:
    """Make a request with a tool and a price."""
    return ModelRequest(goal, (READ,), turns, most, "Be brief.", {MODEL: PRICE})


async def failure(model: ModelPort, asked: ModelRequest | None = None) -> ModelFailed:
    """Ask, and return how it failed."""
    with pytest.raises(ModelFailed) as caught:
        await model.reply(asked or request())
    return caught.value


async def ending(model: ModelPort, asked: ModelRequest | None = None) -> ModelReply | ModelFailed:
    try:
        return await model.reply(asked or request())
    except ModelFailed as failed:
        return failed

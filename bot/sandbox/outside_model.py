"""The demo's language model: the scripted one, itself or behind the wire of a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bot.sandbox.demo_faults import ModelKind
from bot.sandbox.model_double import ModelDouble

OUTSIDE_MODEL = "sandbox-1"
_KEY = "sk-sandbox"


@dataclass(frozen=True, slots=True)
class OutsideModel:
    """What the executor is told of its model; without a ``port`` it is none that listens."""

    settings: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None


@asynccontextmanager
async def outside_model(kind: ModelKind, port: int) -> AsyncIterator[OutsideModel]:
    """Run the double of that provider, if it is one."""
    if kind is ModelKind.SCRIPTED:
        yield OutsideModel()
        return
    async with ModelDouble(api_key=_KEY, port=port) as double:
        name = kind.value.upper()
        base_url = double.url + ("/v1" if kind is ModelKind.OPENAI else "")
        settings = {
            "SIGNOFF_MODEL": f"{kind.value}:{OUTSIDE_MODEL}",
            f"{name}_BASE_URL": base_url,
            f"{name}_API_KEY": _KEY,
        }
        yield OutsideModel(settings, int(double.url.rpartition(":")[2]))

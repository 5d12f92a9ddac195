"""Anthropic's Messages API: its counts, its errors, and how pydantic-ai is set up for it.

Anthropic, "Messages", "Streaming messages" and "Errors", 2026.
"""

from __future__ import annotations

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from executor.adapters.models.one_request import Exchange
from executor.adapters.models.server import Server
from executor.adapters.models.told import (
    Told,
    code_of,
    document_of,
    events_of,
    object_in,
    usage_of,
)
from executor.engine.ports import Usage

ANTHROPIC_API_URL = "https://api.anthropic.com"
_OVERLOADED = 529


class AnthropicMessages:
    """Anthropic, or a server that speaks as it does."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def model(self, http: httpx2.AsyncClient) -> Model:
        """Make pydantic-ai's model over this client."""
        client = AsyncAnthropic(
            api_key=self._server.key,
            base_url=self._server.endpoint.base_url,
            max_retries=0,
            http_client=http,
        )
        return AnthropicModel(
            self._server.model, provider=AnthropicProvider(anthropic_client=client)
        )

    def settings(self) -> ModelSettings:
        """Choose what is priced, no tier that costs more, and to think as little as can be.

        What a model has thought would have to be given back with its calls, to the letter, and a
        run's record does not hold it.
        """
        settings = AnthropicModelSettings(thinking=False)
        if self._server.is_known:
            settings["anthropic_service_tier"] = "standard_only"
        return settings

    def told(self, exchange: Exchange) -> Told:
        """Read what the answer says of itself."""
        if not exchange.is_stream:
            document = document_of(exchange.octets)
            return Told(_usage(object_in(document, "usage")), exchange.is_whole)
        counts: dict[str, object] = {}
        final = complete = False
        for event in events_of(exchange):
            if event.get("type") == "message_start":
                counts |= object_in(object_in(event, "message"), "usage")
            elif event.get("type") == "message_delta":
                last = object_in(event, "usage")
                counts |= {name: count for name, count in last.items() if count is not None}
                final = final or "output_tokens" in last
            elif event.get("type") == "message_stop":
                complete = True
        return Told(_usage(counts) if final else None, complete)

    def own_error(self, exchange: Exchange) -> str | None:
        """Name the error, if it is one of Anthropic's own and not somebody's in between."""
        document = document_of(exchange.octets)
        error = object_in(document, "error")
        return code_of(error.get("type")) if document.get("type") == "error" else None

    def is_turned_away(self, status: int, code: str) -> bool:
        """Tell whether an error of 500 and more came before any work.

        529 with ``overloaded_error`` is how Anthropic turns requests away when it is too busy to
        take them, and requests that fail are not charged; other such errors say nothing of when.
        """
        return status == _OVERLOADED and code == "overloaded_error"


def _usage(counts: dict[str, object] | object) -> Usage | None:
    """Add up what was read: Anthropic counts apart what went to the cache or came from it."""
    if not isinstance(counts, dict):
        return None
    read = counts.get("cache_read_input_tokens") or 0
    written = counts.get("cache_creation_input_tokens") or 0
    fresh = counts.get("input_tokens")
    if not (isinstance(fresh, int) and isinstance(read, int) and isinstance(written, int)):
        return None
    return usage_of(fresh + read + written, counts.get("output_tokens"), read, written)

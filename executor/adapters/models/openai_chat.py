"""The Chat Completions API of OpenAI and of the many servers that speak it.

OpenAI, "Chat Completions" and "Error codes", 2026. Servers at home need no key, and most know only
the older name of the limit of a reply, ``max_tokens``.
"""

from __future__ import annotations

import re

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
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

OPENAI_API_URL = "https://api.openai.com/v1"

_OF_OPENAI = re.compile(r"(?:gpt-(?!oss)|chatgpt|o[1-9])")
"""Models of OpenAI's, also behind a gateway: the newer of them refuse ``max_tokens``."""
_NO_KEY = "none"


class OpenAIChat:
    """OpenAI, or a server that speaks as it does."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def model(self, http: httpx2.AsyncClient) -> Model:
        """Make pydantic-ai's model over this client."""
        client = AsyncOpenAI(
            api_key=self._server.key or _NO_KEY,
            base_url=self._server.endpoint.base_url,
            max_retries=0,
            http_client=http,
        )
        newer = self._server.is_known or bool(_OF_OPENAI.match(self._server.model))
        return OpenAIChatModel(
            self._server.model,
            provider=OpenAIProvider(openai_client=client),
            profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=newer),
        )

    def settings(self) -> ModelSettings:
        """Choose what is priced: no tier that costs more."""
        tier = OpenAIChatModelSettings(openai_service_tier="default")
        return tier if self._server.is_known else ModelSettings()

    def told(self, exchange: Exchange) -> Told:
        """Read what the answer says of itself."""
        if not exchange.is_stream:
            document = document_of(exchange.octets)
            return Told(_usage(document), exchange.is_whole)
        usage: Usage | None = None
        finished = False
        for event in events_of(exchange):
            choices = event.get("choices") or []
            finished = finished or any(
                isinstance(choice, dict) and choice.get("finish_reason") for choice in choices
            )
            # Some servers count as they go; only what is told at the end is all.
            usage = _usage(event) if finished and event.get("usage") else usage
        return Told(usage, finished)

    def own_error(self, exchange: Exchange) -> str | None:
        """Name the error, if it has the shape that such servers give it."""
        document = document_of(exchange.octets)
        error = document.get("error")
        if isinstance(error, dict):
            return code_of(error.get("code"), error.get("type"), "error")
        is_own = isinstance(error, str) or document.get("object") == "error"
        return code_of(document.get("type"), "error") if is_own else None

    def is_turned_away(self, status: int, code: str) -> bool:
        """Tell whether an error of 500 and more came before any work; OpenAI documents none."""
        return False


def _usage(document: object) -> Usage | None:
    counts = object_in(document, "usage")
    details = object_in(counts, "prompt_tokens_details")
    return usage_of(
        counts.get("prompt_tokens"),
        counts.get("completion_tokens"),
        details.get("cached_tokens"),
        details.get("cache_write_tokens"),
    )

"""Which language model this installation uses: the scripted one, or what ``SIGNOFF_MODEL`` names.

What a real model needs is installed only where one is wanted, and imported only here when one is
chosen. No message ever holds a setting's value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from executor.adapters.choice import ChoiceInvalid, built, given_in
from executor.adapters.http_exchange import parse_endpoint, require_secret
from executor.adapters.models.scripted import ScriptedModel
from executor.engine.ports import ModelPort

if TYPE_CHECKING:
    from executor.adapters.models.server import Dialect, Server

SCRIPTED = "scripted"
INSTALL = "pip install 'signoff[models]'"

_MODEL = re.compile(r"(anthropic|openai):([A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199})")
_FORM = (
    "SIGNOFF_MODEL must be scripted, anthropic:MODEL or openai:MODEL, such as "
    "anthropic:claude-sonnet-4-5"
)
_ANSWERS = {"true": True, "false": False}


def model_from(settings: Mapping[str, str], longest_call_seconds: float) -> ModelPort:
    """Build the model from settings as they stand in the environment.

    ``SIGNOFF_MODEL`` is ``scripted``, which it is unless set, ``anthropic:MODEL`` or
    ``openai:MODEL``; an empty setting counts as absent. Raises ``ChoiceInvalid``.
    """
    given = given_in(settings)
    chosen = given.get("SIGNOFF_MODEL", SCRIPTED)
    if chosen == SCRIPTED:
        return ScriptedModel()
    named = _MODEL.fullmatch(chosen)
    if named is None:
        raise ChoiceInvalid([_FORM])
    kind, model = named.groups()
    return built(lambda g: _remote(g, kind, model, longest_call_seconds), given)


def _remote(given: Mapping[str, str], kind: str, model: str, seconds: float) -> ModelPort:
    streamed = _ANSWERS.get(given.get("SIGNOFF_MODEL_STREAMED", "true").lower())
    if streamed is None:
        raise ChoiceInvalid(["SIGNOFF_MODEL_STREAMED must be true or false"])
    try:
        from executor.adapters.models.prices import PriceBook
        from executor.adapters.models.remote import RemoteModel

        server, dialect = {"anthropic": _anthropic, "openai": _openai}[kind](given, model)
    except ImportError:
        raise ChoiceInvalid(
            [f"SIGNOFF_MODEL names a model of {kind}, and what it needs is not here: {INSTALL}"]
        ) from None
    book = PriceBook(model, server.endpoint.base_url, (model, f"{kind}:{model}"))
    return RemoteModel(server, dialect, book, streamed=streamed, seconds=seconds)


def _anthropic(given: Mapping[str, str], model: str) -> tuple[Server, Dialect]:
    from executor.adapters.models.anthropic_messages import ANTHROPIC_API_URL, AnthropicMessages

    server = _server(given, model, "ANTHROPIC", ANTHROPIC_API_URL)
    if not server.key:
        raise ChoiceInvalid(["set ANTHROPIC_API_KEY to an API key, from console.anthropic.com"])
    return server, AnthropicMessages(server)


def _openai(given: Mapping[str, str], model: str) -> tuple[Server, Dialect]:
    from executor.adapters.models.openai_chat import OPENAI_API_URL, OpenAIChat

    server = _server(given, model, "OPENAI", OPENAI_API_URL)
    if server.is_known and not server.key:
        raise ChoiceInvalid(
            [
                "set OPENAI_API_KEY to an API key, from platform.openai.com, or OPENAI_BASE_URL to "
                "a server that needs none, such as http://127.0.0.1:11434/v1"
            ]
        )
    return server, OpenAIChat(server)


def _server(given: Mapping[str, str], model: str, prefix: str, api_url: str) -> Server:
    from executor.adapters.models.server import Server

    endpoint = parse_endpoint(
        given.get(f"{prefix}_BASE_URL", api_url), setting=f"{prefix}_BASE_URL"
    )
    key = given.get(f"{prefix}_API_KEY", "")
    return Server(
        model,
        endpoint,
        is_known=endpoint.authority == parse_endpoint(api_url, setting="it").authority,
        key=require_secret(key, setting=f"{prefix}_API_KEY") if key else "",
    )

"""A language model at a server: one request a reply, and the truth about what it cost.

pydantic-ai only translates. How far the request came and what the answer said of its price are read
from the exchange itself, since a library drops both where it cannot use the answer.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import httpx2
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as Said
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings, merge_model_settings
from pydantic_ai.tools import ToolDefinition

from executor.adapters.http_exchange import tls_context_for
from executor.adapters.models.conversation import (
    Heard,
    Piece,
    Result,
    Spoken,
    conversation_of,
    most_input_tokens,
)
from executor.adapters.models.failures import Charge, cut_short, failure_of
from executor.adapters.models.one_request import Exchange, OneRequest
from executor.adapters.models.prices import PriceBook
from executor.adapters.models.replies import reply_from
from executor.adapters.models.server import Dialect, Server
from executor.domain.price import CostBound, Rates, dearest
from executor.domain.transition import Reason, Refused
from executor.engine.ports import ModelFailed, ModelPort, ModelReply, ModelRequest

_LONGEST_UNTIL_MADE = timedelta(minutes=15)
"""How long after its bound a call is made at most; prices may change in between."""


class RemoteModel(ModelPort):
    """One model at one server; see the module docstring."""

    def __init__(
        self, server: Server, dialect: Dialect, book: PriceBook, *, streamed: bool, seconds: float
    ) -> None:
        """Bound each call by ``seconds``, all of its phases together."""
        self._server = server
        self._dialect = dialect
        self._book = book
        self._streamed = streamed
        self._seconds = seconds
        self._tls_context = tls_context_for(server.endpoint)

    @property
    def name(self) -> str:
        """The model's name, as the journal records it."""
        return self._server.model

    def cost_bound(self, request: ModelRequest) -> CostBound | Refused:
        """Bound what one call can cost; refuses a model without a price."""
        now = datetime.now(UTC)
        rates = self._book.rates(request.prices, now)
        later = self._book.rates(request.prices, now + _LONGEST_UNTIL_MADE)
        if rates is None or later is None:
            return Refused(Reason.MODEL_UNPRICED, {"model": self.name})
        most = most_input_tokens(request, conversation_of(request))
        return dearest([rates, later]).bound(most)

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Make exactly one request, for at most ``max_output_tokens``; raises ``ModelFailed``."""
        rates = self._book.rates(request.prices, datetime.now(UTC))
        if rates is None:
            raise ModelFailed("the model has no price", not_sent=True, retryable=False)
        transport = OneRequest(self._tls_context)
        exchange = transport.exchange
        try:
            response = await self._ask(transport, request)
        # Whatever else ends a call proves only what the exchange proves, so the widest net is the
        # honest one; cancellation is no Exception and passes.
        except Exception as error:
            charge = self._charge(exchange, rates)
            failed = failure_of(error, exchange, self._dialect, charge, self._seconds)
            raise failed from error
        charge = self._charge(exchange, rates)
        if not self._dialect.told(exchange).is_complete:
            raise cut_short(charge)
        return reply_from(response, charge, request.max_output_tokens)

    async def _ask(self, transport: OneRequest, request: ModelRequest) -> ModelResponse:
        timeout = httpx2.Timeout(self._seconds)
        async with httpx2.AsyncClient(
            transport=transport, timeout=timeout, trust_env=False, follow_redirects=False
        ) as http:
            model = self._dialect.model(http)
            messages = _messages(conversation_of(request), request.instructions)
            settings = merge_model_settings(
                self._dialect.settings(),
                ModelSettings(max_tokens=request.max_output_tokens, timeout=self._seconds),
            )
            tools = ModelRequestParameters(function_tools=_tools(request))
            # Only now: the first request of a process still imports things.
            async with asyncio.timeout(self._seconds):
                if not self._streamed:
                    return await model_request(
                        model, messages, model_settings=settings, model_request_parameters=tools
                    )
                async with model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=tools
                ) as stream:
                    async for _ in stream:
                        pass
                    return stream.get()

    def _charge(self, exchange: Exchange, rates: Rates) -> Charge:
        usage = self._dialect.told(exchange).usage
        if usage is None:
            return Charge(None, 0 if rates.are_nothing else None)
        cost = rates.cost(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        )
        return Charge(usage, cost)


def _tools(request: ModelRequest) -> list[ToolDefinition]:
    return [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters),
            strict=False,
        )
        for tool in request.tools
    ]


def _messages(conversation: list[Piece], instructions: str) -> list[ModelMessage]:
    """Spell a conversation in pydantic-ai's messages: what we say in a row is one of them."""
    messages: list[ModelMessage] = []
    heard: list[UserPromptPart | ToolReturnPart] = []

    def say() -> None:
        if heard:
            messages.append(Said(parts=list(heard), instructions=instructions or None))
            heard.clear()

    for piece in conversation:
        match piece:
            case Heard(text):
                heard.append(UserPromptPart(content=text))
            case Result(call, text):
                heard.append(
                    ToolReturnPart(tool_name=call.name, content=text, tool_call_id=call.id)
                )
            case Spoken(text, calls):
                say()
                words = [TextPart(content=text)] if text else []
                asked = [
                    ToolCallPart(tool_name=c.name, args=dict(c.arguments), tool_call_id=c.id)
                    for c in calls
                ]
                messages.append(ModelResponse(parts=[*words, *asked]))
    say()
    return messages

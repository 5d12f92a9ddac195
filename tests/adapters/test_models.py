"""Real models against a double of each provider: what is sent, what comes of it, what it costs."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import httpx2
import pytest

from bot.sandbox.model_double import ModelDouble
from bot.sandbox.model_faults import ModelFault, PlannedFault
from executor.adapters.models import one_request
from executor.domain.policy_money import PriceSection
from executor.domain.transition import Reason, Refused
from executor.engine.ports import (
    ModelFailed,
    ModelPort,
    ToolCall,
    Usage,
)
from tests.adapters.remote_models import (
    COUNTED,
    KINDS,
    MODEL,
    ending,
    failure,
    model_at,
    request,
)


async def test_a_reply_comes_with_its_exact_cost(
    double: ModelDouble, model: ModelPort, way: tuple[str, bool]
) -> None:
    reply = await model.reply(request())
    assert reply.text == "Read it."
    assert reply.tool_calls == (ToolCall("c1", "read_ticket", {"ticket_id": "4101"}),)
    # OpenAI charges nothing extra for writing its cache, and tells no count of it.
    written = 100 if way[0] == "anthropic" else 0
    assert reply.usage == Usage(1_000, 40, 300, written)
    # 3 dollars a million tokens are 3 micro-dollars a token; a part of one counts as one.
    assert reply.cost_microusd == 1_800 + 90 + 600 + (375 if written else 300)
    assert reply.response_id
    assert double.faults.calls == 1
    [asked] = double.asked
    limit = asked.body.get("max_tokens") or asked.body.get("max_completion_tokens")
    assert limit == 1_000
    assert bool(asked.body.get("stream")) is way[1]
    assert "Be brief." in json.dumps(asked.body)


@pytest.mark.parametrize(
    ("fault", "not_sent", "retryable", "retry_after"),
    [
        (PlannedFault(ModelFault.RATE_LIMIT, retry_after=7), True, True, 7),
        (PlannedFault(ModelFault.RATE_LIMIT), True, True, None),
        (PlannedFault(ModelFault.ERROR, 400, "invalid_request_error"), True, False, None),
        (PlannedFault(ModelFault.ERROR, 404, "not_found_error"), True, False, None),
        (PlannedFault(ModelFault.ERROR, 413, "request_too_large"), True, False, None),
        (PlannedFault(ModelFault.ERROR, 429, "insufficient_quota"), True, False, None),
        (PlannedFault(ModelFault.ERROR, 409, "conflict"), False, False, None),
        (PlannedFault(ModelFault.ERROR, 500, "api_error"), False, True, None),
        (PlannedFault(ModelFault.PROXY_PAGE, 400), False, False, None),
        (PlannedFault(ModelFault.PROXY_PAGE, 502), False, True, None),
        (PlannedFault(ModelFault.REDIRECT), False, False, None),
        (PlannedFault(ModelFault.DROP), False, True, None),
        (PlannedFault(ModelFault.NOT_JSON), False, False, None),
    ],
    ids=lambda value: (
        f"{value.fault.value}-{value.status}" if isinstance(value, PlannedFault) else None
    ),
)
async def test_an_error_is_free_only_if_the_server_itself_turned_the_request_away(
    double: ModelDouble,
    model: ModelPort,
    fault: PlannedFault,
    not_sent: bool,
    retryable: bool,
    retry_after: int | None,
) -> None:
    double.fail(fault)
    failed = await failure(model)
    assert (failed.not_sent, failed.retryable) == (not_sent, retryable)
    assert failed.cost_microusd is None
    wanted = None if retry_after is None else timedelta(seconds=retry_after)
    assert failed.retry_after == wanted
    assert double.faults.calls == 1, "nothing is asked twice"
    assert not not_sent or not double.billed, "what was billed is never called free"


async def test_only_anthropic_turns_away_at_no_cost_when_it_is_overloaded(
    double: ModelDouble, model: ModelPort, way: tuple[str, bool]
) -> None:
    double.fail(PlannedFault(ModelFault.OVERLOADED, retry_after=3))
    failed = await failure(model)
    assert failed.not_sent is (way[0] == "anthropic")
    assert failed.retryable
    assert failed.retry_after == timedelta(seconds=3)
    assert double.faults.calls == 1


async def test_a_wrong_key_is_told_without_it(double: ModelDouble, way: tuple[str, bool]) -> None:
    more = {f"{way[0].upper()}_API_KEY": "sk-of-somebody-else"}
    failed = await failure(model_at(double, way[0], streamed=way[1], more=more))
    assert failed.not_sent
    assert not failed.retryable
    assert "401 authentication_error" in str(failed)
    assert "sk-" not in str(failed)


async def test_a_server_that_nobody_reaches_costs_nothing(
    double: ModelDouble, model: ModelPort
) -> None:
    double.refuse()
    failed = await failure(model)
    assert failed.not_sent
    assert failed.retryable
    assert double.faults.calls == 0


async def test_a_server_that_does_not_speak_tls_gets_nothing_to_charge_for(
    double: ModelDouble, way: tuple[str, bool]
) -> None:
    at = double.url.replace("http:", "https:") + "/v1"
    more = {f"{way[0].upper()}_BASE_URL": at}
    failed = await failure(model_at(double, way[0], streamed=way[1], more=more))
    assert failed.not_sent
    assert double.faults.calls == 0


async def test_a_second_request_never_leaves(double: ModelDouble) -> None:
    transport = one_request.OneRequest(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.post(double.url)
        with pytest.raises(one_request.AskedTwice):
            await client.post(double.url)
    assert double.faults.calls == 1


@pytest.mark.parametrize("after", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_in_the_middle_of_a_stream_may_have_been_charged(
    double: ModelDouble, kind: str, after: int
) -> None:
    double.fail(PlannedFault(ModelFault.ERROR_IN_STREAM, after=after))
    failed = await failure(model_at(double, kind, streamed=True))
    assert not failed.not_sent
    assert failed.cost_microusd is None


@pytest.mark.parametrize("fault", [ModelFault.HANG, ModelFault.HANG_IN_BODY])
async def test_a_server_that_goes_silent_may_charge(
    double: ModelDouble, way: tuple[str, bool], fault: ModelFault
) -> None:
    double.fail(fault)
    failed = await failure(model_at(double, way[0], streamed=way[1], seconds=1.0))
    assert not failed.not_sent
    assert failed.retryable
    assert failed.cost_microusd is None
    assert " 1 s" in str(failed)
    assert len(double.billed) == 1


async def test_who_gives_up_on_a_call_is_not_held_up(double: ModelDouble, model: ModelPort) -> None:
    double.fail(ModelFault.HANG)
    asking = asyncio.create_task(model.reply(request()))
    await double.faults.wait_for_hang()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert double.faults.calls == 1


@pytest.mark.filterwarnings("ignore:Failed to extract usage")
async def test_a_reply_without_its_count_has_no_known_cost(
    double: ModelDouble, model: ModelPort, way: tuple[str, bool]
) -> None:
    double.fail(ModelFault.NO_USAGE)
    ended = await ending(model)
    # Anthropic always counts, and what translates its whole answers cannot do without.
    assert isinstance(ended, ModelFailed) is (way == ("anthropic", False))
    assert ended.usage is None
    assert ended.cost_microusd is None
    assert not isinstance(ended, ModelFailed) or not ended.not_sent


@pytest.mark.parametrize("fault", [ModelFault.NO_USAGE, ModelFault.DROP])
async def test_a_free_model_costs_nothing_whatever_became_of_the_call(fault: ModelFault) -> None:
    async with ModelDouble([COUNTED]) as double:
        double.fail(fault)
        free = PriceSection(input_usd_per_million=Decimal(0), output_usd_per_million=Decimal(0))
        model = model_at(double, "openai", streamed=True)
        ended = await ending(model, replace(request(), prices={MODEL: free}))
        assert ended.cost_microusd == 0


async def test_a_body_that_breaks_off_may_have_been_charged(
    double: ModelDouble, way: tuple[str, bool]
) -> None:
    double.fail(PlannedFault(ModelFault.BREAK, after=3))
    failed = await failure(model_at(double, way[0], streamed=way[1]))
    assert not failed.not_sent
    assert failed.cost_microusd is None


@pytest.mark.parametrize("fault", [ModelFault.BREAK, ModelFault.END_EARLY])
@pytest.mark.parametrize(
    ("kind", "events", "counted_after"), [("anthropic", 10, 9), ("openai", 6, 5)]
)
async def test_a_stream_that_breaks_off_is_priced_only_by_its_final_count(
    kind: str, events: int, counted_after: int, fault: ModelFault
) -> None:
    for after in range(events):
        async with ModelDouble([COUNTED]) as double:
            double.fail(PlannedFault(fault, after=after))
            model = model_at(double, kind, streamed=True)
            ended = await ending(model)
            known = ended.cost_microusd is not None
            assert known is (after >= counted_after), f"{after} events: {ended}"
            if isinstance(ended, ModelFailed):
                assert not ended.not_sent
                assert ended.retryable, f"{after} events: {ended}"
            else:
                # Only OpenAI's count and its [DONE] come after the reply itself is over.
                assert (kind, after >= counted_after - 1) == ("openai", True)
            assert double.faults.calls == 1
            assert len(double.billed) == 1


async def test_an_endless_answer_is_not_read_to_its_end(
    double: ModelDouble, model: ModelPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_request, "MOST_ANSWER_OCTETS", 50_000)
    double.fail(ModelFault.ENDLESS)
    failed = await failure(model)
    assert not failed.not_sent
    assert "too long" in str(failed)


async def test_a_model_without_a_price_is_not_asked(double: ModelDouble, model: ModelPort) -> None:
    unpriced = replace(request(), prices={})
    assert model.cost_bound(unpriced) == Refused(Reason.MODEL_UNPRICED, {"model": MODEL})
    failed = await failure(model, unpriced)
    assert failed.not_sent
    assert double.faults.calls == 0

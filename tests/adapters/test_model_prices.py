"""What a model costs, offline: the policy's word first, then what is known of its own server."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from executor.adapters.models.anthropic_messages import ANTHROPIC_API_URL
from executor.adapters.models.openai_chat import OPENAI_API_URL
from executor.adapters.models.prices import PriceBook
from executor.domain.policy_money import PriceSection
from executor.domain.price import Rate
from tests.support.no_network import no_network

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def test_prices_are_known_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    no_network(monkeypatch)
    rates = PriceBook("claude-haiku-4-5", ANTHROPIC_API_URL, ()).rates({}, NOW)
    assert rates is not None
    assert rates.input == Rate(Decimal(1))
    assert rates.output == Rate(Decimal(5))
    assert rates.cache_write == Rate(Decimal("1.25"))
    assert rates.cache_read == Rate(Decimal("0.1"))


def test_a_long_context_has_its_price() -> None:
    rates = PriceBook("gpt-5.4", OPENAI_API_URL, ()).rates({}, NOW)
    assert rates is not None
    assert rates.input == Rate(Decimal("2.5"), ((272_000, Decimal(5)),))
    assert rates.bound(300_000).output_microusd_per_token == Decimal("22.5")
    # OpenAI prints no price for writing its cache, which is then as any input.
    assert rates.cache_write == rates.input


@pytest.mark.parametrize(
    ("model", "server"),
    [
        ("a-model-that-nobody-made", OPENAI_API_URL),
        # Whoever sells it on may ask for more than its maker.
        ("gpt-5.4", "https://gateway.example/v1"),
        ("gpt-5.4", "http://127.0.0.1:11434/v1"),
        ("gpt-4o-audio-preview-that-is-none", ANTHROPIC_API_URL),
    ],
)
def test_what_nobody_knows_has_no_price(model: str, server: str) -> None:
    assert PriceBook(model, server, (model,)).rates({}, NOW) is None


def test_the_policy_goes_first_by_either_name() -> None:
    ours = PriceSection(
        input_usd_per_million=Decimal("0.25"), output_usd_per_million=Decimal("0.5")
    )
    book = PriceBook("gpt-5.4", OPENAI_API_URL, ("gpt-5.4", "openai:gpt-5.4"))
    for name in ("gpt-5.4", "openai:gpt-5.4"):
        rates = book.rates({name: ours}, NOW)
        assert rates is not None
        assert rates.input == rates.cache_write == rates.cache_read == Rate(Decimal("0.25"))
        assert rates.output == Rate(Decimal("0.5"))
    assert book.rates({"another": ours}, NOW) != rates

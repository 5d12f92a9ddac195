"""What a model's tokens cost: what the policy says, or else what genai-prices knows of its server.

genai-prices carries its list with it; nothing here asks a network, and the list is as new as the
installed package. A server that it does not know has no prices but the policy's, even for a model
whose name it knows: who sells it there may ask for more.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice, TieredPrices

from executor.domain.policy_money import PriceSection
from executor.domain.price import Rate, Rates


class PriceBook:
    """The prices of one model at one server; ``names`` are what the policy may call it."""

    def __init__(self, model: str, base_url: str, names: tuple[str, ...]) -> None:
        self._model = model
        self._base_url = base_url
        self._names = names

    def rates(self, prices: Mapping[str, PriceSection], at: datetime) -> Rates | None:
        """Return the prices of a call made ``at`` that moment; ``None`` where nobody knows them."""
        for name in self._names:
            if name in prices:
                return of_policy(prices[name])
        return self._known(at)

    def _known(self, at: datetime) -> Rates | None:
        try:
            _, found = get_snapshot().find_provider_model(self._model, None, None, self._base_url)
        except LookupError:
            return None
        return _of_list(found.get_prices(at))


def of_policy(price: PriceSection) -> Rates:
    """Read the prices that a policy sets."""
    read, written = price.cache_read_usd_per_million, price.cache_write_usd_per_million
    fresh = price.input_usd_per_million
    return Rates(
        input=Rate(fresh),
        output=Rate(price.output_usd_per_million),
        cache_write=Rate(fresh if written is None else written),
        cache_read=Rate(fresh if read is None else read),
    )


def _of_list(price: ModelPrice) -> Rates | None:
    """Read the prices of text that a request of ours can be charged with.

    What is charged by the request as well is not priced by tokens alone, so it counts as unknown.
    """
    fresh = _rate(price.input_mtok)
    outputs = [_rate(price.output_mtok), _rate(price.output_reasoning_mtok)]
    written = [r for r in outputs if r is not None]
    if fresh is None or outputs[0] is None or price.requests_kcount is not None:
        return None
    output = max(written, key=lambda rate: rate.base)
    return Rates(
        input=fresh,
        output=output,
        cache_write=_rate(price.cache_write_mtok) or fresh,
        cache_read=_rate(price.cache_read_mtok) or fresh,
    )


def _rate(price: Decimal | TieredPrices | None) -> Rate | None:
    if price is None or isinstance(price, Decimal):
        return None if price is None else Rate(price)
    return Rate(price.base, tuple((tier.start, tier.price) for tier in price.tiers))

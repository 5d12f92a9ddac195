"""What a call of a model can cost at most, before it is made, and what it did cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class CostBound:
    """The dearest that one call can be: all that it reads, and each token that it may write."""

    input_microusd: Decimal
    output_microusd_per_token: Decimal

    def of(self, max_output_tokens: int) -> int:
        """Bound a call that may write so many tokens, rounded up."""
        return math.ceil(self.input_microusd + max_output_tokens * self.output_microusd_per_token)

    def most_output_within(self, microusd: int, wanted: int) -> int:
        """Say how many tokens, at most ``wanted``, a call may write to cost no more than this."""
        if self.of(wanted) <= microusd:
            return wanted
        if self.output_microusd_per_token == 0:
            return 0
        room = (microusd - self.input_microusd) / self.output_microusd_per_token
        return max(0, min(wanted, math.floor(room)))


@dataclass(frozen=True, slots=True)
class Rate:
    """Micro-dollars a token, which is what providers print as dollars a million tokens.

    ``steps`` are ascending: a call that reads more tokens than a step's number pays its rate for
    all of them.
    """

    base: Decimal
    steps: tuple[tuple[int, Decimal], ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """Say what a token costs in a call that reads so many."""
        rate = self.base
        for above, dearer in self.steps:
            if input_tokens > above:
                rate = dearer
        return rate

    def dearest_up_to(self, input_tokens: int) -> Decimal:
        """Say what a token can cost at most in a call that reads no more than this."""
        return max([self.base, *(rate for above, rate in self.steps if input_tokens > above)])


@dataclass(frozen=True, slots=True)
class Rates:
    """What the tokens of one model cost."""

    input: Rate
    output: Rate
    cache_write: Rate
    cache_read: Rate

    @property
    def are_nothing(self) -> bool:
        """Whether every token is free, so that nothing depends on how many there were."""
        rates = (self.input, self.output, self.cache_write, self.cache_read)
        return not any(rate.base or any(dearer for _, dearer in rate.steps) for rate in rates)

    def bound(self, most_input_tokens: int) -> CostBound:
        """Bound a call by what it reads at most: all of it at the dearest that could be charged."""
        rates = (self.input, self.cache_write, self.cache_read)
        dearest = max(rate.dearest_up_to(most_input_tokens) for rate in rates)
        return CostBound(most_input_tokens * dearest, self.output.dearest_up_to(most_input_tokens))

    def cost(
        self, input_tokens: int, output_tokens: int, cache_read: int = 0, cache_write: int = 0
    ) -> int:
        """Price a call in whole micro-dollars, rounded up; ``input_tokens`` are all that it read.

        What it read from a cache is never cheaper than nothing: counts that do not add up are
        priced as input.
        """
        fresh = input_tokens - cache_read - cache_write
        if fresh < 0:
            fresh, cache_read, cache_write = max(input_tokens, cache_read + cache_write), 0, 0
        total = (
            fresh * self.input.at(input_tokens)
            + cache_read * self.cache_read.at(input_tokens)
            + cache_write * self.cache_write.at(input_tokens)
            + output_tokens * self.output.at(input_tokens)
        )
        return math.ceil(total)


def dearest(several: Sequence[Rates]) -> Rates:
    """Take the dearest of each rate, where it is not known which of them will be charged."""
    return Rates(
        _dearest([rates.input for rates in several]),
        _dearest([rates.output for rates in several]),
        _dearest([rates.cache_write for rates in several]),
        _dearest([rates.cache_read for rates in several]),
    )


def _dearest(several: Sequence[Rate]) -> Rate:
    steps = sorted({above for rate in several for above, _ in rate.steps})
    return Rate(
        max(rate.base for rate in several),
        tuple((above, max(rate.at(above + 1) for rate in several)) for above in steps),
    )

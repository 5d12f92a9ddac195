"""What a call of a model can cost at most, before it is made, and what it did cost. Pure."""

from __future__ import annotations

import math
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

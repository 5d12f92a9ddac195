"""What runs and days may cost, what things cost, and who lets them cost more.

Amounts are whole micro-dollars; prices are as providers print them, in dollars a million tokens.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field

from executor.domain.policy_names import Who
from executor.domain.policy_section import Section

Costed = Literal["ticket.note", "ticket.close", "ticket.reopen", "email.send"]
"""Effects whose cost can be declared; what the tools of a server cost stands with the server."""

Price = Annotated[Decimal, Field(ge=0, le=1_000_000)]

Amount = Annotated[int, Field(ge=0, le=1_000_000_000_000_000)]
"""Micro-dollars, up to a billion dollars: the database can add up however many there are."""


class BudgetSection(Section):
    """The limits of one run, never reset, and of one day in the tenant's time zone.

    At ``warn_at_percent`` of a limit people are told, once. At the limit a run pauses and asks the
    ``approvers``, ``quorum`` of them, for as much again, as often as its next call needs; without
    approvers the operators, and where there are none, who may approve. Never for more than the
    ``most_…``, where they are set.
    """

    run_microusd: Amount = 2_000_000
    day_microusd: Amount = 100_000_000
    warn_at_percent: int = Field(default=80, ge=1, le=100)
    approvers: tuple[Who, ...] | None = Field(default=None, min_length=1)
    quorum: int = Field(default=1, ge=1, le=20)
    most_run_microusd: Amount | None = None
    most_day_microusd: Amount | None = None


class PriceSection(Section):
    """What a model costs; goes before what is known of it. Without its own price, what is written
    to or read from a provider's cache costs as much as any input.
    """

    input_usd_per_million: Price
    output_usd_per_million: Price
    cache_write_usd_per_million: Price | None = None
    cache_read_usd_per_million: Price | None = None

"""The soft limit: a share of a limit at which people are told of it, once, before it is reached."""

from __future__ import annotations

from executor.domain.budget import Account


def used(account: Account) -> int:
    """Say what is gone of a limit: spent, or held for calls of which nobody knows the cost.

    What is held for a call that is under way is its worst case, most of which comes back.
    """
    return account.spent_microusd + account.unknown_microusd


def is_near(account: Account, percent: int) -> bool:
    """Say whether that much of the limit is gone; of a limit of nothing there is none."""
    limit = account.limit_microusd
    return limit > 0 and used(account) * 100 >= percent * limit

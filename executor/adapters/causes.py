"""What an error came from, through whatever libraries wrapped it."""

from __future__ import annotations


def causes_of(error: BaseException) -> list[BaseException]:
    """List an error and what it came from, outermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    return chain

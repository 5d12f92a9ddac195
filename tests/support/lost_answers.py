"""Answers to COMMIT that are lost although it was done."""

from __future__ import annotations

from types import ModuleType

import pytest

from executor.domain.errors import CommitUnknown


def lose_first_answer(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[int]:
    """Do what ``module`` calls ``name``, and lose the first answer; returns the calls, counted."""
    act = getattr(module, name)
    calls: list[int] = []

    async def lost(*given: object) -> object:
        calls.append(len(calls) + 1)
        result = await act(*given)
        if len(calls) == 1:
            raise CommitUnknown("the answer was lost")
        return result

    monkeypatch.setattr(module, name, lost)
    return calls

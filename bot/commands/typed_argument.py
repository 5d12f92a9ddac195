"""Arguments of commands as people type them, each read by a function of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

T = TypeVar("T")


class Typed(click.ParamType[T]):
    """What ``read`` understands; of anything else it is said that it "is ``wanted``"."""

    def __init__(self, name: str, read: Callable[[str], T | None], wanted: str) -> None:
        self.name = name
        self._read = read
        self._wanted = wanted

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read a value."""
        found = self._read(str(value))
        if found is None:
            self.fail(f"{value!r} is {self._wanted}", param, ctx)
        return found

"""Failpoints that tests inject: one that stops a use case as a crash would, one that holds it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from executor.domain.errors import DatabaseUnavailable
from executor.engine.failpoint import ALL_POINTS


class Crashed(Exception):
    """The process died here, as far as the use case can tell."""


class Trap:
    """Raises ``Crashed`` when a point is reached for the n-th time; all else goes on."""

    def __init__(self, name: str, *, at_visit: int = 1) -> None:
        assert name in ALL_POINTS, name
        self._name = name
        self._left = at_visit
        self.sprung = False

    async def reach(self, name: str) -> None:
        """Die if this is the point and the visit."""
        if name == self._name:
            self._left -= 1
            if self._left == 0:
                self.sprung = True
                raise Crashed(name)


class Gate:
    """Holds whoever reaches a point until the gate is opened; ``reached`` tells that one waits."""

    def __init__(self, name: str) -> None:
        assert name in ALL_POINTS, name
        self._name = name
        self._opened = asyncio.Event()
        self.reached = asyncio.Event()

    async def reach(self, name: str) -> None:
        """Wait here if this is the point."""
        if name == self._name:
            self.reached.set()
            await self._opened.wait()

    def open(self) -> None:
        """Let everybody through from now on."""
        self._opened.set()


class Trace:
    """Goes on everywhere and remembers the order of the points."""

    def __init__(self) -> None:
        self.points: list[str] = []

    async def reach(self, name: str) -> None:
        """Remember the point."""
        self.points.append(name)


@dataclass
class Away:
    """The database goes away when one point is reached."""

    name: str
    reached: bool = False

    async def reach(self, name: str) -> None:
        """Go away if this is the point."""
        if name == self.name:
            self.reached = True
            raise DatabaseUnavailable("it is away")

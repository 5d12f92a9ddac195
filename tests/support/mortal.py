"""A worker's process that dies at one point of the effect path, and does nothing ever after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from executor.engine.failpoint import CALL, Commit, Side, point
from tests.support.failpoints import Crashed

EFFECT_PATH = frozenset(
    point(name, side)
    for name in (
        Commit.OPEN,
        CALL,
        Commit.REPORT,
        Commit.RECONCILE,
        Commit.RECOVER,
        Commit.RECORD_SEARCH,
    )
    for side in Side
)
"""What is passed from an approved operation to its end, both sides of every commit.

Claims are not in it: who dies holding a claim leaves what it leaves before its opening.
"""


@dataclass(frozen=True)
class Death:
    """One moment to die at: a point when it is reached for the ``visit``-th time."""

    point: str
    visit: int = 1


class Mortal:
    """Failpoints that remember what was passed and, at ``death``, stop everything as SIGKILL does.

    Whatever the engine would still do, having caught the first exception, stops as well. ``times``
    are those of ``passed``, in seconds of ``clock``.
    """

    def __init__(
        self, death: Death | None = None, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        assert death is None or death.point in EFFECT_PATH, death
        self._death = death
        self._clock = clock
        self._visits: Counter[str] = Counter()
        self.passed: list[Death] = []
        self.times: list[float] = []
        self.dead = False

    async def reach(self, name: str) -> None:
        """Go on, or die."""
        if not self.dead and name in EFFECT_PATH:
            self._visits[name] += 1
            self.passed.append(Death(name, self._visits[name]))
            self.times.append(self._clock())
            self.dead = self.passed[-1] == self._death
        if self.dead:
            raise Crashed(name)

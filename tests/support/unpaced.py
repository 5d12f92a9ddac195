"""An outside that takes calls as fast as they come, for tests that are about something else."""

from __future__ import annotations

from datetime import timedelta

from executor.domain.pace import Pace
from executor.engine.card_turns import Paces

_FREE = Pace(timedelta(microseconds=1), at_once=1_000_000)
UNPACED = Paces(post=_FREE, posts=_FREE, updates_decided=_FREE, updates=_FREE, searches=_FREE)

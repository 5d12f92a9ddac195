"""Named points at both sides of every commit of the job, and around the outside call.

Inert unless a test or the demo injects something: a process can be killed there, or held there
until it is let go. The names are made from ``Commit``, so that a new commit is in the crash matrix
at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Protocol

from executor.store.connection import Connection
from executor.store.database import Database


class Commit(StrEnum):
    """Every transaction of the job that changes something, in the order of the reference job."""

    START = "start"
    STORE_EVENT = "store_event"
    CLAIM_RUN = "claim_run"
    RESERVE = "reserve"
    RECORD_REPLY = "record_reply"
    RECORD_RESULT = "record_result"
    ACCEPT = "accept"
    WAIT = "wait"
    PAUSE = "pause"
    RESUME = "resume"
    BEGIN_POSTING = "begin_posting"
    PRESENT = "present"
    FINISH_DRAWING = "finish_drawing"
    ASK = "ask"
    WITHDRAW = "withdraw"
    DECIDE = "decide"
    CLAIM_OPERATION = "claim_operation"
    OPEN = "open"
    REPORT = "report"
    RECONCILE = "reconcile"
    RECOVER = "recover"
    RECORD_SEARCH = "record_search"
    SETTLE = "settle"
    EXPIRE = "expire"
    WAKE = "wake"
    COMPENSATE = "compensate"
    CANCEL = "cancel"
    END_RUN = "end_run"
    EDIT = "edit"
    PROPOSE_AGAIN = "propose_again"
    NUDGE = "nudge"
    GRANT = "grant"
    JUDGE_CODE = "judge_code"


class Side(StrEnum):
    """Where a process can be stopped, seen from a commit or from the outside call."""

    BEFORE = "before"
    AFTER = "after"


CALL = "call"


def point(name: str, side: Side) -> str:
    """Name a failpoint, e.g. ``open.before``."""
    return f"{name}.{side.value}"


ALL_POINTS: tuple[str, ...] = tuple(
    point(name, side) for name in (*Commit, CALL) for side in (Side.BEFORE, Side.AFTER)
)


class Failpoints(Protocol):
    """What happens when a process reaches a point."""

    async def reach(self, name: str) -> None:
        """Return to go on; or never return."""


class Inert:
    """Nothing happens at any point."""

    async def reach(self, name: str) -> None:
        """Go on."""


class KillAt:
    """The process is killed with SIGKILL when it reaches one point; nothing is cleaned up."""

    def __init__(self, name: str) -> None:
        if name not in ALL_POINTS:
            raise ValueError(f"there is no failpoint {name!r}; known are: {', '.join(ALL_POINTS)}")
        self._name = name

    async def reach(self, name: str) -> None:
        """Kill this process if this is the point."""
        if name == self._name:
            os.kill(os.getpid(), signal.SIGKILL)


def failpoints_from(setting: str | None) -> Failpoints:
    """Read ``SIGNOFF_FAILPOINT``: unset is inert, a point's name kills the process there."""
    return KillAt(setting) if setting else Inert()


@asynccontextmanager
async def committing(
    database: Database, failpoints: Failpoints, commit: Commit
) -> AsyncIterator[Connection]:
    """Open one transaction with a failpoint right before its COMMIT and one right after."""
    async with database.transaction() as conn:
        yield conn
        await failpoints.reach(point(commit, Side.BEFORE))
    await failpoints.reach(point(commit, Side.AFTER))

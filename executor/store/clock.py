"""Time is the database's, and is read in a statement of its own, after all locks are held.

``now()`` and a clock inside the locking statement are as old as the wait for the lock; a late
approval would pass. ``signoff_clock()`` is ``clock_timestamp()``, which only tests can move.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

_NOW = text("SELECT signoff_clock()")


async def now(conn: AsyncConnection) -> datetime:
    """Return the time of the database, with its time zone; call it after the last lock."""
    moment = (await conn.execute(_NOW)).scalar_one()
    if not isinstance(moment, datetime):
        raise TypeError(f"signoff_clock() returned {type(moment).__name__}")
    return moment

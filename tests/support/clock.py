"""Moves the clock of a test's own database; production code cannot do this by accident."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


async def move_clock(conn: AsyncConnection, by: timedelta) -> None:
    """Move ``signoff_clock()`` on by ``by`` from where it stands; it is seen once committed."""
    await conn.execute(text("SET LOCAL signoff.clock_may_move = 'on'"))
    await conn.execute(
        text(
            "INSERT INTO clock_offset (moved) VALUES (CAST(:by AS interval)) "
            "ON CONFLICT (only_row) DO UPDATE SET moved = clock_offset.moved + excluded.moved"
        ),
        {"by": by},
    )


async def set_clock_offset(conn: AsyncConnection, offset: timedelta) -> None:
    """Let ``signoff_clock()`` differ by ``offset`` from the server's; it is seen once committed."""
    await conn.execute(text("SET LOCAL signoff.clock_may_move = 'on'"))
    await conn.execute(
        text(
            "INSERT INTO clock_offset (moved) VALUES (CAST(:offset AS interval)) "
            "ON CONFLICT (only_row) DO UPDATE SET moved = excluded.moved"
        ),
        {"offset": offset},
    )

"""The one name under which other layers mention a connection; they never import the driver."""

from __future__ import annotations

from sqlalchemy.ext.asyncio import AsyncConnection

Connection = AsyncConnection

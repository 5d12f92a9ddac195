"""How far one request came: nothing of it can have been read before its first octet left.

The protocol's client makes a request in the context of whoever asks for it, so that whatever
carries it can note there what became of it.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Departure:
    """One request on its way: whether its first octet left, and its last one.

    ``status`` is that of its answer, where HTTP carried it; ``lost``: its connection broke.
    """

    begun: bool = False
    left: bool = False
    lost: bool = False
    status: int | None = None

    async def observe(self, event: str, _: dict[str, Any]) -> None:
        """Hear of httpx2's steps; see its trace extension."""
        if event.endswith("send_request_headers.started"):
            self.begun = True
        elif event.endswith("receive_response_headers.started"):
            self.left = True


DEPARTURE: ContextVar[Departure | None] = ContextVar("departure", default=None)

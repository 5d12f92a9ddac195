"""Which model at which server, and what a server's way of speaking has to tell us."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from executor.adapters.http_exchange import Endpoint
from executor.adapters.models.one_request import Exchange
from executor.adapters.models.told import Told

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings


@dataclass(frozen=True, slots=True)
class Server:
    """One model at one server; ``is_known`` when it is its maker's own, and not one that is like
    it. Without a ``key`` none is sent that means anything.
    """

    model: str
    endpoint: Endpoint
    is_known: bool
    key: str = field(default="", repr=False)


class Dialect(Protocol):
    """How a server speaks."""

    def model(self, http: httpx2.AsyncClient) -> Model:
        """Make pydantic-ai's model over this client."""

    def settings(self) -> ModelSettings:
        """Choose what is priced: no tier that costs more."""

    def told(self, exchange: Exchange) -> Told:
        """Read what the answer says of itself."""

    def own_error(self, exchange: Exchange) -> str | None:
        """Name the error of an answer, if it is the server's own."""

    def is_turned_away(self, status: int, code: str) -> bool:
        """Tell whether an error of 500 and more came before any work."""

"""A desk's stamp as the desk spells it: kept as text, since it is handed back, and sure to be a
time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import AfterValidator


def moment(stamp: str) -> datetime:
    """Read a stamp; raises ``ValueError`` for what is no time with an offset."""
    read = datetime.fromisoformat(stamp)
    if read.tzinfo is None:
        raise ValueError("a stamp without an offset")
    return read


def _is_moment(stamp: str) -> str:
    moment(stamp)
    return stamp


StampText: TypeAlias = Annotated[str, AfterValidator(_is_moment)]

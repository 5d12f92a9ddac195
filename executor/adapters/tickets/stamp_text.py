"""A desk's stamp as the desk spells it: kept as text, since it is handed back, and sure to be a
time."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from executor.domain.stamp import moment


def _is_moment(stamp: str) -> str:
    moment(stamp)
    return stamp


StampText: TypeAlias = Annotated[str, AfterValidator(_is_moment)]

"""What every section of a policy is: frozen and strict, and refused with where to correct it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict

from executor.domain.errors import InvalidContent


class Misplaced(ValueError):
    """A problem between settings; ``at`` is where the one stands that has to be changed."""

    def __init__(self, problem: str, *at: str | int) -> None:
        super().__init__(problem)
        self.at = at


class Section(BaseModel):
    """A section; what it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


@contextmanager
def told_now() -> Iterator[None]:
    """Refuse with the policy what would be refused in every email that is made under it."""
    try:
        yield
    except InvalidContent as error:
        raise ValueError(f"{error.problem}. {error.remedy}") from error

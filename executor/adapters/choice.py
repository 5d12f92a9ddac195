"""What choosing a provider from settings has in common: what is given, what is wrong, how long.

No problem ever repeats the value of a setting: it is a secret, or may hold one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

_LONGEST_SECONDS = 3_600.0

PortT = TypeVar("PortT")


class ChoiceInvalid(ValueError):
    """The settings do not say which provider to use, or not how; ``problems`` names all."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def given_in(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that hold something; an empty one counts as absent."""
    return {name: value.strip() for name, value in settings.items() if value.strip()}


def built(build: Callable[[Mapping[str, str]], PortT], given: Mapping[str, str]) -> PortT:
    """Build what was chosen; raises ``ChoiceInvalid`` for whatever is wrong with a setting."""
    try:
        return build(given)
    except ChoiceInvalid:
        raise
    except ValueError as error:
        raise ChoiceInvalid([str(error)]) from None


def seconds(given: Mapping[str, str], setting: str, default: float) -> float:
    """Read a duration. Raises ``ChoiceInvalid``."""
    try:
        read = float(given.get(setting, default))
    except ValueError:
        read = math.nan
    if not 0 < read <= _LONGEST_SECONDS:
        raise ChoiceInvalid([f"{setting} must be more than 0 and at most 3600 seconds"])
    return read

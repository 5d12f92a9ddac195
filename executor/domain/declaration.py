"""What an adapter declares of its provider, in one place.

From a declaration follow the terms that are recorded with each attempt, the sentence on the card,
and the row of the operators' page (``executor/engine/promises.py``), so that none of them can
promise what another one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from executor.domain.effect import Capability, EffectKind, Terms


class Guard(StrEnum):
    """What stands between a change of the target in the last moment and our own."""

    NOTHING_TO_GUARD = "nothing_to_guard"
    LOCKED = "locked"
    COMPARED = "compared"
    CHECKED_ONLY = "checked_only"


class Notices(StrEnum):
    """Whether a desk itself tells the customer about a close, besides our own email."""

    NEVER = "never"
    ALWAYS = "always"
    AS_SET = "as_set"
    """Known to the desk's administrators only, so that a setting has to say it."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """What can be promised of one provider.

    ``name`` is how people call it. ``key_window`` counts from the first attempt and stands only
    with ``keyed``; ``lookup_lag`` is how long something accepted may stay invisible and stands only
    with ``lookup``; ``lookup_retention`` is how long it can be found. ``version_resolution`` is how
    close two changes of the target may be to look like one. ``witness`` completes "… has to say
    what happened": whoever can look where no machine can.
    """

    name: str
    kind: EffectKind
    capability: Capability
    witness: str
    key_window: timedelta | None = None
    lookup_lag: timedelta | None = None
    lookup_retention: timedelta | None = None
    version_resolution: timedelta | None = None
    guard: Guard = Guard.NOTHING_TO_GUARD
    notices: Notices = Notices.NEVER
    rehearses: bool = False
    """Requests are checked and nothing is ever done, as with a provider's test credentials."""

    def __post_init__(self) -> None:
        """Refuse a declaration from which no recovery could follow."""
        if (self.key_window is not None) != (self.capability is Capability.KEYED):
            raise ValueError("a key window belongs to the capability keyed, and to no other")
        if (self.lookup_lag is not None) != (self.capability is Capability.LOOKUP):
            raise ValueError("a lookup lag belongs to the capability lookup, and to no other")

    @property
    def terms(self) -> Terms:
        """The terms that are recorded with each attempt."""
        return Terms(self.key_window, self.lookup_lag)

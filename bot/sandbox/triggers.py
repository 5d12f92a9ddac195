"""A trigger id opens one modal, once, within three seconds of the click that issued it.

Source: Slack, "Handling user interaction": 3 s, one use; views.open errors
`expired_trigger_id`, `exchanged_trigger_id`, `invalid_trigger_id`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

TRIGGER_SECONDS = 3.0
_REMEMBERED = 10_000


@dataclass
class _Trigger:
    user: str
    issued_at: float
    used: bool = False


class Triggers:
    """Issue trigger ids and exchange each once."""

    def __init__(self) -> None:
        self._issued: OrderedDict[str, _Trigger] = OrderedDict()
        self._count = 0

    def issue(self, user: str, now: float) -> str:
        self._count += 1
        trigger_id = f"{int(now * 1000)}.{self._count}.sandbox"
        self._issued[trigger_id] = _Trigger(user, now)
        while len(self._issued) > _REMEMBERED:
            self._issued.popitem(last=False)
        return trigger_id

    def exchange(self, trigger_id: str, now: float) -> str | tuple[None, str]:
        """Return the user whose screen may be used, or (None, Slack's error name)."""
        trigger = self._issued.get(trigger_id)
        if trigger is None:
            return None, "invalid_trigger_id"
        if trigger.used:
            return None, "exchanged_trigger_id"
        if now - trigger.issued_at > TRIGGER_SECONDS:
            return None, "expired_trigger_id"
        trigger.used = True
        return trigger.user

"""How long something takes, for people."""

from __future__ import annotations

from datetime import timedelta


def duration(seconds: int) -> str:
    """Spell a whole number of seconds in the largest units that express it exactly."""
    if seconds < 60:
        return f"{seconds} s"
    spelt = timedelta(seconds=seconds)
    hours, rest = divmod(spelt.seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((spelt.days, "d"), (hours, "h"), (minutes, "min"), (left, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)

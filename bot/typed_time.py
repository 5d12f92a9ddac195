"""Times as people type and read them, on the clock of their tenant. Pure.

A day alone begins with its first moment, and as an end is included. A time without a zone is one of
the tenant's; where clocks are put back it is the earlier of the two that it can mean.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from executor.engine.grant_reading import LocalTime

TIMES = "2026-12-24, 2026-12-24T17:00, 17:00, tomorrow, or how long from now, such as 8h or 2d"
"""Examples of everything that can be read as a time."""

LONGEST = timedelta(days=3660)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?", re.IGNORECASE
)
_CLOCK = re.compile(r"\d{1,2}:\d{2}")
_SPAN = re.compile(r"(?:\d{1,7}\s*[a-z]+[\s,]*)+")
_PART = re.compile(r"(\d{1,7})\s*([a-z]+)")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
    **dict.fromkeys(("w", "week", "weeks"), 604_800),
}


def moment_of(text: str, here: LocalTime, *, is_end: bool = False) -> datetime | None:
    """Read a moment, see ``TIMES``; ``None``: it cannot be read."""
    try:
        found = _moment_of(text.strip(), here, is_end=is_end)
        return None if found is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def span_of(text: str) -> timedelta | None:
    """Read how long something lasts, such as ``8h`` or ``1 day 12 hours``; ``None``: no such."""
    said = text.strip().casefold()
    if not _SPAN.fullmatch(said):
        return None
    parts = _PART.findall(said)
    if any(unit not in _SECONDS for _, unit in parts):
        return None
    span = timedelta(seconds=sum(int(count) * _SECONDS[unit] for count, unit in parts))
    return span if timedelta() < span <= LONGEST else None


def spelt(at: datetime, here: LocalTime) -> str:
    """Spell a moment on the tenant's clock, without its zone."""
    return at.astimezone(here.zone).strftime("%Y-%m-%d %H:%M")


def end_spelt(at: datetime, here: LocalTime) -> str:
    """Spell an end that is excluded: midnight is the end of the day before."""
    local = at.astimezone(here.zone)
    if (local.hour, local.minute, local.second, local.microsecond) != (0, 0, 0, 0):
        return spelt(at, here)
    return f"the end of {local.date() - timedelta(days=1)}"


def _moment_of(text: str, here: LocalTime, *, is_end: bool) -> datetime | None:
    span = span_of(text.casefold().removeprefix("in "))
    if span is not None:
        return here.now + span
    local = here.now.astimezone(here.zone)
    days = {"today": local.date(), "tomorrow": local.date() + timedelta(days=1)}
    day = days.get(text.casefold())
    if day is None and _DAY.fullmatch(text):
        day = date.fromisoformat(text)
    if day is not None:
        whole = day + timedelta(days=1) if is_end else day
        return datetime.combine(whole, time(), here.zone)
    if _CLOCK.fullmatch(text):
        hour, _, minute = text.partition(":")
        return datetime.combine(local.date(), time(int(hour), int(minute)), here.zone)
    if not _MOMENT.fullmatch(text):
        return None
    found = datetime.fromisoformat(f"{text[:10]}T{text[11:].replace(' ', '').upper()}")
    return found if found.tzinfo is not None else found.replace(tzinfo=here.zone)

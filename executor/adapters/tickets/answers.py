"""What a desk's answer to a changing request proves; the rule is the same for every desk.

``applied``: 2xx, even if its body broke off, unless it is somebody's web page. ``not_applied``: the
request provably never left, or a 4xx in the desk's own words; a stranger on the way (a proxy, a
login page) answers 4xx as well and proves nothing. ``unknown``: everything else, 408, 409 and every
5xx included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from executor.adapters.http_exchange import Answered, Ending, Exchanges, Lost, NeverLeft, Phase
from executor.domain.effect import Outcome, OutcomeKind
from executor.domain.payloads import JsonObject, storable_text
from executor.engine.desk_port import DeskUnavailable

T = TypeVar("T")

_LONGEST_QUOTE = 300
_PROVES_NOTHING = frozenset({408, 409})
_GONE = frozenset({404, 410})
_PAGES = frozenset({"text/html", "application/xhtml+xml"})

LARGEST_ANSWER = 16 * 1024 * 1024
"""Octets of an answer that are read: a page of a hundred comments of the greatest length."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal in the desk's own words, shortened."""

    words: JsonObject
    retryable: bool = False
    retry_after: timedelta | None = None


ReadRefusal: TypeAlias = Callable[[Answered], Refusal | None]
"""Recognises a desk's own refusal; ``None`` for an answer that the desk would not have written."""


def conclude(desk: str, ending: Ending, read_refusal: ReadRefusal) -> Outcome:
    """Conclude from the end of one changing request."""
    if not isinstance(ending, Answered):
        return _unanswered(desk, ending)
    evidence: JsonObject = {"desk": desk, "phase": Phase.ANSWER.value, "status": ending.status}
    if 200 <= ending.status < 300:
        if ending.media_type in _PAGES:
            problem = "a page was answered, not the desk's JSON"
            return Outcome(OutcomeKind.UNKNOWN, {**evidence, "problem": problem})
        return Outcome(OutcomeKind.APPLIED, evidence)
    refusal = read_refusal(ending)
    if refusal is not None:
        evidence = {**evidence, **refusal.words}
    if 400 <= ending.status < 500 and ending.status not in _PROVES_NOTHING:
        if refusal is not None:
            return Outcome(
                OutcomeKind.NOT_APPLIED,
                evidence,
                retryable=refusal.retryable,
                retry_after=refusal.retry_after,
            )
        evidence = {**evidence, "problem": "the refusal is not in the desk's own form"}
    return Outcome(OutcomeKind.UNKNOWN, evidence, retry_after=ending.retry_after)


def _unanswered(desk: str, ending: NeverLeft | Lost) -> Outcome:
    if isinstance(ending, NeverLeft):
        return Outcome(
            OutcomeKind.NOT_APPLIED,
            {"desk": desk, "phase": Phase.CONNECT.value, "problem": ending.problem},
            retryable=ending.retryable,
        )
    return Outcome(
        OutcomeKind.UNKNOWN,
        {"desk": desk, "phase": ending.phase.value, "problem": ending.problem},
    )


async def fetch(
    exchanges: Exchanges,
    path: str,
    headers: Mapping[str, str],
    query: Mapping[str, str],
    shape: TypeAdapter[T],
    read_refusal: ReadRefusal,
) -> T | None:
    """Read once; ``None`` when the desk itself says that there is no such thing.

    Raises ``DeskUnavailable`` for every other answer and for none.
    """
    ending = await exchanges.get(path, headers, query)
    if not isinstance(ending, Answered):
        raise DeskUnavailable(ending.problem)
    if ending.status == 200 and ending.body is not None:
        try:
            return shape.validate_json(ending.body)
        except ValidationError:
            # Its words would repeat the customer's; where the fault lies does not help anybody.
            raise DeskUnavailable("the answer is not of the desk's form") from None
    refusal = read_refusal(ending)
    if refusal is not None and ending.status in _GONE:
        return None
    wait = ending.retry_after if refusal is None else refusal.retry_after
    broken = "" if ending.body is not None else ", and the answer broke off"
    raise DeskUnavailable(f"the desk answered {ending.status}{broken}", wait)


def json_object(answer: Answered) -> Mapping[str, object] | None:
    """Read an answer's JSON object; ``None`` for everything else, however hostile."""
    if answer.body is None:
        return None
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def quote(text: str) -> str:
    """Shorten the words of a desk for the evidence."""
    return storable_text(text)[:_LONGEST_QUOTE]

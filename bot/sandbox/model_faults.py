"""What can go wrong with a call of a language model's double."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModelFault(StrEnum):
    """What can go wrong with one call."""

    RATE_LIMIT = "rate_limit"
    """Turn the request away, with the provider's own 429."""
    OVERLOADED = "overloaded"
    """Turn it away with 529 as Anthropic does, 503 as others do."""
    ERROR = "error"
    """Answer with an error in the provider's own shape."""
    PROXY_PAGE = "proxy_page"
    """Answer with somebody else's HTML."""
    REDIRECT = "redirect"
    """Send the caller on to itself."""
    DROP = "drop"
    """Work, and hang up without an answer."""
    HANG = "hang"
    """Work, and say nothing until released."""
    HANG_AFTER_HEADERS = "hang_after_headers"
    """Work, answer with no more than a status and headers, and stop until released."""
    HANG_IN_BODY = "hang_in_body"
    """Work, begin to answer, and stop until released: after ``after`` events, or the first part."""
    BREAK = "break"
    """Work, begin to answer, and hang up: after ``after`` events, or in the middle of a body."""
    END_EARLY = "end_early"
    """As ``break``, but end the answer as if that were all of it; streams only."""
    ERROR_IN_STREAM = "error_in_stream"
    """Work, begin to answer, and tell of an error after ``after`` events; streams only."""
    NO_USAGE = "no_usage"
    """Answer without saying what it took."""
    NOT_JSON = "not_json"
    """Answer 200 with something that is no JSON."""
    ENDLESS = "endless"
    """Answer 200 and go on and on."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One failure; ``code`` and ``status`` are for ``error``, ``after`` for streams."""

    fault: ModelFault
    status: int = 500
    code: str = "api_error"
    retry_after: int | None = None
    after: int = 0

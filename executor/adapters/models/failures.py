"""What the end of a call that gave no reply proves of its charge.

Nothing was charged where no octet left, and where the server itself turned the request away before
any work. Everything else is unknown, unless the answer still told what it took: a server may work
on for a client that has gone, and charges for it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import httpx2

from executor.adapters.causes import causes_of
from executor.adapters.models.one_request import AnswerTooLong, Exchange
from executor.adapters.models.server import Dialect
from executor.engine.ports import ModelFailed, Usage

_REFUSALS = frozenset({400, 401, 402, 403, 404, 405, 413, 415, 422})
_TOO_MANY = 429
_OUT_OF_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""What 429 says as well: waiting does not help."""
_BROKE_OFF = "the model's answer broke off"


@dataclass(frozen=True, slots=True)
class Charge:
    """What a call took, as far as it was told."""

    usage: Usage | None
    cost_microusd: int | None


def failure_of(
    error: Exception, exchange: Exchange, dialect: Dialect, charge: Charge, seconds: float
) -> ModelFailed:
    """Judge a call that ended with an error."""
    if not exchange.has_left:
        retryable = exchange.phase is not None and not _certificate_refused(error)
        return ModelFailed(_before(error, exchange), not_sent=True, retryable=retryable)
    if exchange.status is not None and exchange.status >= 300:
        return _answered_with(exchange.status, exchange, dialect)
    # A stream that ends as if all of it had come may still lack its own end.
    is_whole = exchange.is_whole and dialect.told(exchange).is_complete
    problem = _during(error, exchange, seconds, is_whole=is_whole)
    # An answer that a library cannot read would come again, and be charged again.
    return _after_it_left(problem, charge, retryable=not is_whole)


def cut_short(charge: Charge) -> ModelFailed:
    """Judge a stream that ended before its own end, which a library may take for one."""
    return _after_it_left(_BROKE_OFF, charge, retryable=True)


def without_words(problem: str, charge: Charge) -> ModelFailed:
    """Judge an answer that came whole and is of no use."""
    return _after_it_left(problem, charge, retryable=False)


def _after_it_left(problem: str, charge: Charge, *, retryable: bool) -> ModelFailed:
    return ModelFailed(
        problem,
        not_sent=False,
        retryable=retryable,
        usage=charge.usage,
        cost_microusd=charge.cost_microusd,
    )


def _answered_with(status: int, exchange: Exchange, dialect: Dialect) -> ModelFailed:
    """Judge an error's status, which counts only with the server's own words for it."""
    code = dialect.own_error(exchange)
    if code is None:
        return ModelFailed(
            f"somebody in between answered {status}", not_sent=False, retryable=status >= 500
        )
    problem = f"the model's server answered {status} {code}"
    if status == _TOO_MANY:
        return ModelFailed(
            problem,
            not_sent=True,
            retryable=code not in _OUT_OF_MONEY,
            retry_after=exchange.retry_after,
        )
    if status in _REFUSALS:
        return ModelFailed(problem, not_sent=True, retryable=False)
    if dialect.is_turned_away(status, code):
        return ModelFailed(problem, not_sent=True, retryable=True, retry_after=exchange.retry_after)
    return ModelFailed(
        problem, not_sent=False, retryable=status >= 500, retry_after=exchange.retry_after
    )


def _before(error: Exception, exchange: Exchange) -> str:
    """Say in our own words why nothing left; a library's words may hold what was to be sent."""
    if exchange.phase is None:
        return f"the request could not be made ({type(error).__name__})"
    if _certificate_refused(error):
        return "the certificate of the model's server was not accepted"
    return "the model's server was not reached"


def _during(error: Exception, exchange: Exchange, seconds: float, *, is_whole: bool) -> str:
    causes = causes_of(error)
    if any(isinstance(cause, AnswerTooLong) for cause in causes):
        return "the model's answer was too long to read"
    if any(isinstance(cause, TimeoutError | httpx2.TimeoutException) for cause in causes):
        return f"the model did not answer within {seconds:g} s"
    if is_whole:
        return f"the model's answer could not be read ({type(error).__name__})"
    if exchange.is_whole:
        return _BROKE_OFF
    return "the connection to the model's server was lost"


def _certificate_refused(error: Exception) -> bool:
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes_of(error))

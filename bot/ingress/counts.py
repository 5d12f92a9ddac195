"""What was turned away or left unanswered since the process started, for the health check."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counts:
    """Requests by what became of them; a stale timestamp is not a wrong signature.

    ``unnamed_bots`` are mentions by bots that the policy does not name.
    """

    accepted: int = 0
    bad_signature: int = 0
    other_app: int = 0
    stale_timestamp: int = 0
    malformed_headers: int = 0
    malformed_body: int = 0
    too_large: int = 0
    too_slow: int = 0
    unavailable: int = 0
    unnamed_bots: int = 0

    def as_json(self) -> dict[str, int]:
        """Spell the counts for the health check."""
        return asdict(self)

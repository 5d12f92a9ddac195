"""What the ingress has turned away since the process started, for the health check."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counts:
    """Requests by what became of them; a stale timestamp is not a wrong signature."""

    accepted: int = 0
    bad_signature: int = 0
    stale_timestamp: int = 0
    malformed_headers: int = 0
    malformed_body: int = 0
    too_large: int = 0
    unavailable: int = 0

    def as_json(self) -> dict[str, int]:
        """Spell the counts for the health check."""
        return asdict(self)

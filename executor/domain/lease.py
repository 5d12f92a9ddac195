"""The lease: a time-limited right to drive something, fenced by an epoch that grows at each claim.

The database is authoritative: every write under a lease locks the row and compares the epoch. The
trust window only stops a worker sooner: it ends a margin before the lease does and is measured on a
clock that goes on while the machine sleeps, from before the claim was sent, so that a slow round
trip or a suspended machine cannot stretch it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a lease lasts and how early trust in it ends, in seconds."""

    ttl_seconds: float
    margin_seconds: float
    heartbeat_seconds: float

    def __post_init__(self) -> None:
        """Refuse terms under which a healthy worker would lose its lease."""
        if self.margin_seconds >= self.ttl_seconds:
            raise ValueError("the lease margin must be shorter than the lease")
        if self.heartbeat_seconds * 3 > self.ttl_seconds:
            raise ValueError("a lease must last at least three heartbeats")


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its holder knows it; ``trusted_until`` is on the host's boot-time clock."""

    owner: str
    epoch: int
    trusted_until: float

    def trusted(self, boottime: float) -> bool:
        """Say whether the holder may still start something new."""
        return boottime < self.trusted_until


def trust_from(asked_at_boottime: float, terms: LeaseTerms) -> float:
    """Compute where trust ends for a claim or renewal that was sent at ``asked_at_boottime``."""
    return asked_at_boottime + terms.ttl_seconds - terms.margin_seconds

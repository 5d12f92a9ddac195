"""Whether what somebody clicked on is a drawing of ours.

A message is ours when it is the card's stored place, or when its nonce is that of a recorded
posting of this card: one whose answer was lost, or that was delivered twice, may stand in Slack
beside the one we know. Pure.
"""

from __future__ import annotations

from uuid import UUID

from executor.store.cards import CardPlace, Posting, PostingOutcome


def clicked_view(
    place: CardPlace | None, posting: Posting | None, subject: UUID, channel: str, ts: str
) -> bytes | None:
    """Return the digest of the view that was clicked, or ``None`` if it is no message of ours.

    ``posting`` is the one whose nonce the button carries.
    """
    if place is not None and (place.channel, place.ts) == (channel, ts):
        return place.view_digest
    if (
        posting is not None
        and posting.subject_id == subject
        and posting.channel == channel
        and posting.outcome is not PostingOutcome.REFUSED
    ):
        return posting.view_digest
    return None

"""Who has voted on what waits, and whose votes are still needed. Pure.

What is still needed was worked out when the record was read, by the rights of that moment; a vote
counts by those of the moment in which it is cast.
"""

from __future__ import annotations

from dataclasses import replace

from bot.card_parts import Item, Piece, Words, paragraph, person
from bot.terms_text import whose_votes
from executor.domain.approval import Vote
from executor.domain.ids import TenantId
from executor.domain.terms import Terms
from executor.engine.approval_record import ApprovalRecord, VoteRecord
from executor.engine.card_record import OperationRecord

MOST_VOTERS = 10
"""Voters that a card names; so many are never needed where fewer may decide."""


def votes_of(record: OperationRecord) -> tuple[Item, ...]:
    """Say who has approved so far, and whose approvals are needed beside theirs."""
    approval = record.approval
    voters = [cast for cast in approval.votes if cast.vote is Vote.APPROVE]
    if not voters and _is_plain(approval.terms):
        return ()
    pieces: list[Piece | str] = []
    if voters:
        pieces += ["Approved so far by ", *_named(voters, record.tenant_id), ". "]
    return (paragraph(*pieces, _needed(approval, is_more=bool(voters))),)


def _is_plain(terms: Terms) -> bool:
    """Tell whether one approval of the usual people is enough, as everybody expects."""
    return len(terms.requirements) < 2 and terms.quorum == 1 and not terms.step_up


def _needed(approval: ApprovalRecord, *, is_more: bool) -> str:
    """Say what is lacking; without that knowledge, what was asked for at first."""
    if approval.lacking == ():
        return "By the rights of now that is enough: the next vote decides it."
    lacking = approval.terms.requirements if approval.lacking is None else approval.lacking
    told = whose_votes(replace(approval.terms, requirements=lacking))
    return told.replace(" approval", " more approval", 1) if is_more else told


def _named(voters: list[VoteRecord], tenant: TenantId) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for cast in voters[:MOST_VOTERS]:
        if pieces:
            pieces.append(Words(", "))
        pieces.append(person(cast.principal, tenant))
        if cast.on_behalf_of is not None:
            pieces += [Words(" for "), person(cast.on_behalf_of, tenant)]
    if len(voters) > MOST_VOTERS:
        pieces.append(Words(f" and {len(voters) - MOST_VOTERS} others"))
    return tuple(pieces)

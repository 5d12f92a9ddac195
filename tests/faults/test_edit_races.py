"""Two votes against a person's edit of what they are about.

Two hundred rounds, see ``tests.support.racing``. The votes count for the text that was shown, or
the edit takes its place and asks for votes of its own; never both, and never the votes on the one
for the other. Whatever is sent is, byte for byte, what the last of them approved.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain.approval import Vote
from executor.domain.operation import OperationStatus, refusal_for
from executor.domain.transition import Reason, Refused
from executor.engine.click import Recorded
from executor.engine.replacement import EditResult, Replaced
from executor.store.database import Database
from tests.support import invariants
from tests.support.office import OTTO, RENE, SAM, Office, policy
from tests.support.race_clicks import approve, approve_too
from tests.support.race_record import DONE, Round
from tests.support.race_track import Prize, revisions_of, show
from tests.support.racing import Case, Gun, Racer, race
from tests.support.replacing import edit_for, press_edit

# Otto may edit, and could approve as well what somebody else has written.
TWO_VOTES = policy(
    people={
        "requesters": ["U0REQUESTER"],
        "approvers": ["U0REVIEWER", "U0SECOND", "U0OUTSIDER"],
        "editors": ["U0OUTSIDER"],
    },
    approval={"quorum": 2},
)


def text_of(prize: Prize) -> str:
    return f"Dear Pat,\n\nround {prize.round} is corrected.\n\nAcme Support\n"


async def edit(racer: Racer, prize: Prize, gun: Gun) -> EditResult:
    asked = await edit_for(racer.office, prize.operation, OTTO, text=text_of(prize))
    await gun()
    return await press_edit(racer.office, asked)


async def decide_the_revisions(office: Office, prizes: Sequence[Prize]) -> None:
    """Show what was edited; whoever edited it tries to approve it, then the others do."""
    edited = list((await revisions_of(office, prizes)).values())
    await show(office, edited)
    for who in (OTTO, RENE, SAM):
        await office.decide(*(prize.click(who) for prize in edited))


def edited_or_done(one: Round) -> str:
    one.check_told(RENE, one.told["rene"])
    one.check_told(SAM, one.told["sam"])
    _check_votes(one)
    told = one.told["edit"]
    if one.status == DONE:
        assert one.revision is None
        assert isinstance(told, Refused)
        [refused] = one.notes("decision_refused")
        assert (refused.actor, refused.detail["reason"]) == (OTTO, told.reason.value)
        stood = OperationStatus(one.status_at("operation", refused))
        assert told.reason is refusal_for(stood), f"it was {stood}"
        return "approve"
    replaced, revision = one.move("operation", "superseded"), one.revision
    assert replaced is not None
    assert revision is not None
    assert isinstance(told, Replaced)
    assert (told.number, told.content_revision) == (revision.prize.number, revision.prize.revision)
    assert one.move("approval", "granted") is None, "what was approved was replaced"
    assert all(e.at < replaced.at for e in one.notes("voted")), "a vote on what is void"
    reasons = {e.detail["reason"] for e in one.notes("decision_refused")}
    assert reasons <= {Reason.SUPERSEDED.value}
    _check_revision(revision)
    born = revision.move("operation", "awaiting")
    assert born is not None
    assert born.at == replaced.at, "two lived at once, or neither"
    return "edit after a vote" if one.notes("voted") else "edit before any vote"


def _check_revision(revision: Round) -> None:
    """It was decided anew by the others, and what they approved is what was written and sent."""
    revision.check()
    assert revision.status == DONE
    assert revision.standing.email["email"]["text"] == text_of(revision.prize)
    [refused] = revision.notes("decision_refused")
    assert (refused.actor, refused.detail["reason"]) == (OTTO, Reason.OWN_EDIT.value)
    _check_votes(revision)
    revision.check_told(RENE, Recorded(Vote.APPROVE, 1, decided=False))
    revision.check_told(SAM, Recorded(Vote.APPROVE, 0, decided=True))


def _check_votes(one: Round) -> None:
    for vote in one.notes("voted"):
        about = (vote.detail["digest"], vote.detail["revision"])
        assert about == (one.prize.digest.hex(), one.prize.revision), "a vote for another text"


EDIT = Case(
    {"rene": approve, "sam": approve_too, "edit": edit},
    edited_or_done,
    ("approve", "edit before any vote", "edit after a vote"),
    granted_half=False,
    after=decide_the_revisions,
)


async def test_an_edit_comes_before_the_votes_and_voids_them_or_after_them_and_is_refused(
    database: Database, database_url: str
) -> None:
    office = await Office.open(database, active=TWO_VOTES)
    await race(office, database_url, EDIT)
    await invariants.check(database)

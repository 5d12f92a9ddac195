"""T3: a click is looked up, judged and recorded in one commit, whatever was clicked before it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime

import pytest

from executor.adapters.host_clock import mint_id
from executor.domain.approval import Vote
from executor.domain.ids import ApprovalId, OperationId, TenantId
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import ClickResult, NotConfirmed, Recorded
from executor.engine.decisions import read_back
from executor.engine.presenting import Shown, begin_posting
from executor.engine.setup import activate_policy
from tests.support.office import CHANNEL, OTTO, RENE, RIKO, SAM, Office, policy


async def _two_votes_needed(office: Office) -> OperationId:
    await activate_policy(office.engine, policy(approval={"quorum": 2}))
    return await office.proposed()


def _reason(result: ClickResult) -> Reason | None:
    assert isinstance(result, Refused), result
    return result.reason


async def _votes(office: Office) -> list[tuple[str, str]]:
    rows = await office.rows("SELECT principal, vote FROM decisions ORDER BY principal")
    return [(who, vote) for who, vote in rows]


async def test_one_vote_grants_and_the_operation_is_due(office: Office) -> None:
    operation = await office.proposed()
    assert await office.click(operation) == Recorded(Vote.APPROVE, 0, decided=True)
    [row] = await office.rows(
        "SELECT o.status, o.due_at IS NOT NULL, a.status, a.use_by - d.decided_at = "
        "make_interval(secs => a.use_within_seconds) FROM operations o "
        "JOIN approvals a ON a.operation_id = o.id JOIN decisions d ON d.approval_id = a.id"
    )
    assert row == ("approved", True, "granted", True)


async def test_two_people_in_one_commit_reach_a_quorum_of_two(office: Office) -> None:
    operation = await _two_votes_needed(office)
    results = await office.decide(
        await office.click_for(operation, RENE), await office.click_for(operation, SAM)
    )
    assert results == [
        Recorded(Vote.APPROVE, 1, decided=False),
        Recorded(Vote.APPROVE, 0, decided=True),
    ]
    assert await office.status(operation) == "approved"


async def test_one_person_counts_once(office: Office) -> None:
    operation = await _two_votes_needed(office)
    clicks = [await office.click_for(operation) for _ in range(3)]
    assert (await office.decide(*clicks[:2]))[1] == NoChange(Reason.ALREADY_VOTED)
    assert await office.decide(clicks[2]) == [NoChange(Reason.ALREADY_VOTED)]
    assert await office.status(operation) == "awaiting"
    assert len(await _votes(office)) == 1


@pytest.mark.parametrize("in_one_commit", [True, False])
async def test_a_rejection_after_ones_own_approval_ends_it(
    office: Office, in_one_commit: bool
) -> None:
    operation = await _two_votes_needed(office)
    yes = await office.click_for(operation)
    no = await office.click_for(operation, vote=Vote.REJECT, note="Wait.")
    if in_one_commit:
        results = await office.decide(yes, no)
    else:
        results = [*await office.decide(yes), *await office.decide(no)]
    assert results[1] == Recorded(Vote.REJECT, 2, decided=True)
    assert await office.status(operation) == "rejected"
    assert await _votes(office) == [(RENE, "reject")]


async def test_an_approval_after_a_rejection_is_told_who_rejected(office: Office) -> None:
    operation = await office.proposed()
    results = await office.decide(
        await office.click_for(operation, SAM, Vote.REJECT), await office.click_for(operation, RENE)
    )
    refused = results[1]
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.detail["by"]) == (Reason.ALREADY_DENIED, [SAM])
    assert await office.status(operation) == "rejected"


async def test_the_requester_may_reject_but_not_approve(office: Office) -> None:
    operation = await office.proposed()
    assert _reason(await office.click(operation, RIKO)) is Reason.OWN_REQUEST
    assert isinstance(await office.click(operation, RIKO, Vote.REJECT), Recorded)
    assert await office.status(operation) == "rejected"


@pytest.mark.parametrize("vote", list(Vote))
async def test_an_outsider_decides_nothing(office: Office, vote: Vote) -> None:
    operation = await office.proposed()
    assert _reason(await office.click(operation, OTTO, vote)) is Reason.NOT_PERMITTED
    assert await office.status(operation) == "awaiting"
    assert await _votes(office) == []


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_guest": True}, Reason.IDENTITY_REFUSED),
        ({"is_bot": True}, Reason.IDENTITY_REFUSED),
        ({"deleted": True}, Reason.IDENTITY_REFUSED),
        ({"is_stranger": True}, Reason.OTHER_WORKSPACE),
        ({"team_id": "T0OTHER"}, Reason.OTHER_WORKSPACE),
    ],
)
async def test_people_who_are_not_full_members_decide_nothing(
    office: Office, facts: dict[str, bool | str], reason: Reason
) -> None:
    operation = await office.proposed()
    await office.look_at(RENE, **facts)
    assert _reason(await office.click(operation)) is reason
    assert await _votes(office) == []


async def test_nobody_decides_on_an_old_look_at_them(office: Office) -> None:
    operation = await office.proposed()
    await office.later_unseen(seconds=61)
    assert _reason(await office.click(operation)) is Reason.IDENTITY_UNKNOWN
    await office.look_at(RENE)
    assert isinstance(await office.click(operation), Recorded)


@pytest.mark.parametrize("vote", list(Vote))
async def test_a_click_after_the_deadline_finds_it_expired_though_nobody_swept(
    office: Office, vote: Vote
) -> None:
    operation = await office.proposed()
    await office.later(days=1)
    assert _reason(await office.click(operation, vote=vote, note="No!")) is Reason.EXPIRED
    assert (await office.status(operation), await office.reason(operation)) == (
        "expired",
        "expired",
    )
    assert await _votes(office) == []
    run_id = await office.run_of(operation)
    events = await office.events(run_id)
    assert ("time_passed", "clock", "expired") in events
    assert ("decision_refused", RENE, None) in events


async def test_the_time_to_decide_starts_when_the_card_is_shown(office: Office) -> None:
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    await office.later(days=2)
    await office.show()
    await office.later(hours=23)
    assert isinstance(await office.click(operation), Recorded)


async def test_a_signed_request_is_handled_once_in_sequence_and_in_one_group(
    office: Office,
) -> None:
    operation = await _two_votes_needed(office)
    click = await office.click_for(operation)
    again = replace(click, vote=Vote.REJECT)
    assert (await office.decide(click, click))[1] == NoChange(Reason.ALREADY_VOTED)
    assert await office.decide(again) == [NoChange(Reason.ALREADY_VOTED)]
    assert await office.status(operation) == "awaiting"
    assert len(await office.rows("SELECT 1 FROM notices")) == 1


async def test_a_refused_request_stays_refused_when_it_is_replayed(office: Office) -> None:
    operation = await office.proposed()
    click = await office.click_for(operation, OTTO)
    await office.decide(click)
    people = {"requesters": ["U0REQUESTER"], "approvers": ["U0OUTSIDER"]}
    await activate_policy(office.engine, policy(people=people))
    assert await office.decide(click) == [NoChange(Reason.ALREADY_VOTED)]
    assert await office.status(operation) == "awaiting"


async def test_what_was_shown_must_be_what_is_asked(office: Office) -> None:
    operation = await office.proposed()
    click = await office.click_for(operation)
    wrong = {
        Reason.CONTENT_CHANGED: [
            replace(click, content_revision=2),
            replace(click, digest=hashlib.sha256(b"other").digest()),
            replace(click, approval_id=ApprovalId(mint_id())),
            replace(click, operation_id=OperationId(mint_id())),
            replace(click, tenant_id=TenantId("T0OTHER")),
        ],
        Reason.NOT_SHOWN: [
            replace(click, channel="C0ELSEWHERE"),
            replace(click, message_ts="1.2"),
        ],
    }
    for reason, clicks in wrong.items():
        for one in clicks:
            fresh = replace(one, request_hash=hashlib.sha256(mint_id().bytes).digest())
            [result] = await office.decide(fresh)
            assert _reason(result) is reason
    assert await office.status(operation) == "awaiting"


async def test_a_click_on_a_message_whose_answer_was_lost_presents_and_decides_at_once(
    office: Office,
) -> None:
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    [due] = await office.due_cards()
    nonce = mint_id()
    view = hashlib.sha256(b"posted").digest()
    await begin_posting(office.engine, due.card, nonce, CHANNEL, Shown(view, [], 1))
    click = await office.click_for(operation)
    stranger = replace(click, request_hash=hashlib.sha256(b"1").digest())
    assert _reason((await office.decide(stranger))[0]) is Reason.NOT_SHOWN
    assert await office.decide(replace(click, nonce=nonce)) == [
        Recorded(Vote.APPROVE, 0, decided=True)
    ]
    [row] = await office.rows(
        "SELECT c.ts, c.channel, p.outcome, a.presented_at IS NOT NULL, d.view_digest "
        "FROM cards c JOIN card_postings p ON p.subject_id = c.subject_id "
        "JOIN approvals a ON a.operation_id = c.subject_id "
        "JOIN decisions d ON d.approval_id = a.id"
    )
    assert row == (click.message_ts, CHANNEL, "posted", True, view)


async def test_a_nonce_of_another_card_is_no_pass(office: Office) -> None:
    other = await office.proposed("4102")
    [(nonce,)] = await office.rows("SELECT nonce FROM card_postings WHERE subject_id = :o", o=other)
    run_id = await office.start_run()
    operation = await office.propose(run_id, await office.claim_run(run_id))
    click = replace(await office.click_for(operation), nonce=nonce)
    assert _reason((await office.decide(click))[0]) is Reason.NOT_SHOWN


async def test_every_click_gets_a_private_answer_in_the_same_commit(office: Office) -> None:
    operation = await office.proposed()
    await office.decide(
        await office.click_for(operation, OTTO), await office.click_for(operation, RENE)
    )
    answers = await office.rows(
        "SELECT user_id, answer ->> 'kind', answer ->> 'reason' FROM notices ORDER BY user_id"
    )
    assert answers == [
        ("U0OUTSIDER", "refused", "not_permitted"),
        ("U0REVIEWER", "recorded", None),
    ]


async def test_a_late_click_on_what_is_being_sent_is_told_so(office: Office) -> None:
    claimed, _ = await office.opened()
    assert _reason(await office.click(claimed.claim.key[1], SAM)) is Reason.ALREADY_SENDING


async def test_reading_back_tells_only_of_the_own_request(office: Office) -> None:
    operation = await _two_votes_needed(office)
    click = await office.click_for(operation)
    assert await read_back(office.engine, click) == NotConfirmed()
    await office.decide(click)
    assert await read_back(office.engine, click) == Recorded(Vote.APPROVE, 1, decided=False)
    another = await office.click_for(operation)
    assert await read_back(office.engine, another) == NotConfirmed()


async def test_a_vote_keeps_what_its_voter_was_shown(office: Office) -> None:
    operation = await office.proposed()
    await office.click(operation, note="Fine\0 with me")
    [row] = await office.rows(
        "SELECT note, shown_at ->> 'ts', digest, content_revision, view_digest, decided_at "
        "FROM decisions"
    )
    [(digest,)] = await office.rows("SELECT digest FROM operations")
    view = hashlib.sha256(b"view").digest()
    assert row[:5] == ("Fine\ufffd with me", f"ts-{operation}", digest, 1, view)
    assert isinstance(row[5], datetime)

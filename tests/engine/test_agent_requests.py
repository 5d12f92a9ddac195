"""An agent asks for something in one message: it comes to one thing, by the rules for proposals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from executor.domain.agent_request import Unreadable
from executor.domain.approval import Vote
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason, Refused
from executor.engine import requesting
from executor.engine.click import Recorded
from executor.engine.events import store_event
from executor.engine.failpoint import Commit, Side, point
from executor.engine.opening import NotOpened, Opened
from executor.engine.records import read_operation
from executor.engine.requesting import CameTo, Outcome, handle_by_asking, is_named
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.agent_scene import (
    AGENT,
    OTHER_AGENT,
    accepted,
    admit,
    answers,
    ask,
    closing_of,
    event_of,
    people,
    policy_with_agents,
    run_of,
    wish_for,
)
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied, not_applied
from tests.support.office import OTTO, RENE, RIKO, SAM, TENANT, Office
from tests.support.outside import at_zendesk
from tests.support.replacing import edited
from tests.support.waiting import another_pool


@pytest.fixture
async def office(office: Office) -> Office:
    await admit(office)
    return office


def refusal(came: CameTo | None) -> tuple[Reason, Any]:
    assert came is not None
    assert came.outcome is Outcome.REFUSED, came
    return Reason(str(came.answer["reason"])), came.answer["detail"]


async def under_way(office: Office) -> list[tuple[Any, ...]]:
    return await office.rows(
        "SELECT r.status, r.driven, r.requester, r.origin_key, o.status FROM runs r "
        "LEFT JOIN proposals p ON p.run_id = r.id LEFT JOIN operations o ON o.id = p.operation_id "
        "ORDER BY r.number"
    )


async def test_a_closing_waits_for_people_in_a_run_that_nobody_drives(office: Office) -> None:
    run_id, operation = await accepted(office, closing_of())
    assert await under_way(office) == [
        ("waiting", False, AGENT, f"agent-key:{AGENT}:key-1", "awaiting")
    ]
    assert await office.claim_run_if_any() == []
    [answer] = await answers(office)
    assert answer.operation is not None
    assert (answer.operation.status, answer.refused) == (OperationStatus.AWAITING, None)
    events = [event for event, _, _ in await office.events(run_id)]
    assert events[:3] == ["born", "claimed", "waits"], "a run begins before what it waits for"
    await office.show()
    assert isinstance(await office.click(operation, RENE), Recorded)


async def test_a_run_is_started_as_for_a_person(office: Office) -> None:
    came = await ask(office, run_of("close 4102"))
    assert came is not None
    assert came.run_id is not None
    [claimed] = await office.claim_run_if_any()
    assert claimed.key == (TENANT, came.run_id)
    goals = await office.rows("SELECT goal, requester, reply_to ->> 'channel' FROM runs")
    assert goals == [("close 4102", AGENT, "C0APPROVALS")]


# Once


async def test_the_same_message_asks_once_under_whatever_event(office: Office) -> None:
    event = await event_of(office)
    first = await ask(office, closing_of(), ts="1.1", event=event)
    assert first is not None
    assert await ask(office, closing_of(), ts="1.1", event=event) is None
    assert await ask(office, closing_of("4102", key="other"), ts="1.1") is None
    assert len(await under_way(office)) == 1
    assert len(await answers(office)) == 1


async def test_the_same_key_names_the_same_operation_however_it_stands(office: Office) -> None:
    run_id, operation = await accepted(office, closing_of())
    again = await ask(office, closing_of())
    assert again == CameTo(Outcome.REPEATED, run_id)
    await office.show()
    await office.click(operation, RENE, Vote.REJECT, "not yet")
    await wake(office.engine)
    assert await ask(office, closing_of()) == CameTo(Outcome.REPEATED, run_id)
    last = (await answers(office))[-1]
    assert last.again
    assert last.operation is not None
    assert (last.operation.status, last.operation.note) == (OperationStatus.REJECTED, "not yet")
    assert len(await under_way(office)) == 1


async def test_the_same_key_with_other_content_is_refused(office: Office) -> None:
    await accepted(office, closing_of())
    for other in (closing_of(message="Otherwise."), closing_of("4102"), run_of()):
        reason, detail = refusal(await ask(office, other))
        assert reason is Reason.ALREADY_STARTED
        assert "run" in detail
    assert len(await under_way(office)) == 1


async def test_the_same_key_of_another_agent_is_another_key(office: Office) -> None:
    await accepted(office, closing_of())
    await accepted(office, closing_of("4102"), agent=OTHER_AGENT)
    assert len(await under_way(office)) == 2


async def test_a_key_that_came_to_nothing_is_still_free(office: Office) -> None:
    assert refusal(await ask(office, closing_of("9999")))[0] is Reason.TICKET_UNKNOWN
    await accepted(office, closing_of())


async def test_equal_keys_at_two_processes_come_to_one_operation(
    office: Office, database_url: str
) -> None:
    async with another_pool(database_url) as pool:
        colleague = office.colleague(pool)
        came = await asyncio.gather(
            *(ask(one, closing_of()) for one in (office, colleague) for _ in range(5))
        )
    outcomes = sorted(one.outcome for one in came if one is not None)
    assert outcomes == [Outcome.ACCEPTED, *[Outcome.REPEATED] * 9]
    assert len({one.run_id for one in came if one is not None}) == 1
    assert len(await under_way(office)) == 1


@pytest.mark.parametrize("side", list(Side))
@pytest.mark.parametrize("commit", [Commit.ACCEPT, Commit.START])
async def test_a_crash_loses_nothing_and_repeats_nothing(
    office: Office, commit: Commit, side: Side
) -> None:
    asked = closing_of() if commit is Commit.ACCEPT else run_of()
    event = await event_of(office)
    dying = office.colleague(failpoints=Trap(point(commit, side)))
    with pytest.raises(Crashed):
        await ask(dying, asked, ts="1.1", event=event)
    assert len(await under_way(office)) == (side is Side.AFTER)
    again = await ask(office, asked, ts="1.1", event=event)
    assert (again is None) is (side is Side.AFTER)
    assert len(await under_way(office)) == len(await answers(office)) == 1


@pytest.mark.parametrize("side", list(Side))
async def test_a_crash_while_an_event_is_stored_leaves_it_to_the_redelivery(
    office: Office, side: Side
) -> None:
    dying = office.colleague(failpoints=Trap(point(Commit.STORE_EVENT, side)))
    with pytest.raises(Crashed):
        await store_event(dying.engine, TENANT, "Ev1", {"event": {}})
    assert await store_event(office.engine, TENANT, "Ev1", {"event": {}}) is (side is Side.BEFORE)


# By the rules for proposals


async def test_an_agent_without_a_right_is_refused(office: Office) -> None:
    await admit(office, people=people(requesters="everyone"))
    assert refusal(await ask(office, closing_of()))[0] is Reason.NOT_PERMITTED
    assert refusal(await ask(office, run_of()))[0] is Reason.NOT_PERMITTED
    assert await under_way(office) == []


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"is_bot": True, "deleted": True}, Reason.IDENTITY_REFUSED),
        ({"is_bot": True, "team_id": "T0OTHER"}, Reason.OTHER_WORKSPACE),
        ({"is_bot": True, "is_stranger": True}, Reason.OTHER_WORKSPACE),
        ({"is_guest": True}, Reason.IDENTITY_REFUSED),
    ],
)
async def test_an_agent_that_is_not_one_of_ours_is_refused(
    office: Office, facts: dict[str, Any], reason: Reason
) -> None:
    await office.look_at(AGENT, **facts)
    assert refusal(await ask(office, closing_of()))[0] is reason
    assert refusal(await ask(office, run_of()))[0] is reason


async def test_a_bot_that_the_policy_does_not_name_asks_for_nothing(office: Office) -> None:
    await office.look_at(RIKO, is_bot=True)
    assert not await is_named(office.engine, TENANT, RIKO)
    assert await is_named(office.engine, TENANT, AGENT)
    for asked in (closing_of(), run_of()):
        assert refusal(await ask(office, asked, agent=RIKO)) == (
            Reason.IDENTITY_REFUSED,
            {"is": "bot"},
        )


async def test_an_agent_never_decides_even_where_the_policy_says_so(office: Office) -> None:
    approvers = ["U0REVIEWER", "U0ROBOT"]
    await activate_policy(office.engine, policy_with_agents(people=people(approvers=approvers)))
    operation = await office.proposed()
    for facts in ({"is_bot": True}, {"is_bot": False}):
        await office.look_at(OTHER_AGENT, **facts)
        assert isinstance(await office.click(operation, OTHER_AGENT), Refused)
    assert await office.status(operation) == "awaiting"


@pytest.mark.parametrize("version", [1, 3, "2026-03-02T09:30:00Z"])
async def test_another_version_than_the_tickets_is_refused_with_what_it_is_now(
    office: Office, version: int | str
) -> None:
    reason, detail = refusal(await ask(office, closing_of(version=version)))
    assert (reason, detail["version"]) == (Reason.VERSION_CHANGED, 2)


@pytest.mark.parametrize("version", [2, None])
async def test_the_tickets_version_or_none_is_proposed_as_it_stands(
    office: Office, version: int | None
) -> None:
    _, operation = await accepted(office, closing_of(version=version))
    proposed = "SELECT ticket_version FROM operations WHERE tenant_id = :t AND id = :id"
    assert await office.value(proposed, operation) == "2"


async def test_the_version_of_an_outside_ticket_is_when_it_was_updated(office: Office) -> None:
    async with at_zendesk(office) as outside:
        reason, detail = refusal(await ask(office, closing_of(version="2020-01-01T00:00:00Z")))
        assert reason is Reason.VERSION_CHANGED
        assert refusal(await ask(office, closing_of(version=2)))[0] is Reason.VERSION_CHANGED
        await accepted(outside.office, closing_of(version=detail["updated_at"]))


async def test_what_cannot_be_sent_is_refused_with_the_field(office: Office) -> None:
    reason, detail = refusal(await ask(office, closing_of(to=["nobody"])))
    assert reason is Reason.CONTENT_INVALID
    assert detail["field"] == "to[0]"
    assert await under_way(office) == []


async def test_what_cannot_be_read_is_answered(office: Office) -> None:
    reason, detail = refusal(await ask(office, Unreadable("goal is missing.")))
    assert (reason, detail) == (Reason.ARGUMENTS_INVALID, {"problem": "goal is missing."})
    [answer] = await answers(office)
    assert (answer.kind, answer.request_key) == (None, None)


async def test_an_equal_closing_links_and_no_requester_may_approve_it(office: Office) -> None:
    operation = await office.proposed()
    run_id, linked = await accepted(office, closing_of())
    assert linked == operation
    assert isinstance(await office.click(operation, RENE, Vote.REJECT, "no"), Recorded)
    await wake(office.engine)
    assert await office.run_status(run_id) == "failed"


async def test_another_closing_of_a_ticket_that_waits_conflicts(office: Office) -> None:
    await office.proposed()
    reason, detail = refusal(await ask(office, closing_of(message="Otherwise.")))
    assert reason is Reason.CONFLICTS_WITH
    assert detail["status"] == "awaiting"


async def test_what_is_done_or_was_rejected_is_answered_without_asking_anybody(
    office: Office,
) -> None:
    _, rejected = await accepted(office, closing_of())
    await office.show()
    await office.click(rejected, RENE, Vote.REJECT, "say sorry first")
    again = await ask(office, closing_of(key="key-2"))
    assert again is not None
    assert again.outcome is Outcome.ANSWERED
    assert again.answer["rejected_because"] == "say sorry first"
    claimed, opened = await office.opened("4102")
    await office.report(claimed, opened, applied())
    done = await ask(office, closing_of("4102", key="key-3"))
    assert done is not None
    assert (done.outcome, done.answer["status"]) == (Outcome.ANSWERED, "succeeded")
    last = (await answers(office))[-1]
    assert last.operation is not None
    assert last.run is None


# Its end


async def _approved(office: Office) -> tuple[Any, Any]:
    run_id, operation = await accepted(office, closing_of())
    await office.show()
    await office.click(operation, RENE)
    return run_id, operation


async def test_a_run_succeeds_with_its_operation_and_says_so(office: Office) -> None:
    run_id, operation = await _approved(office)
    held = await office.claim_operation(operation)
    opened = await office.open_one(held)
    assert isinstance(opened, Opened)
    await office.report(held, opened, applied())
    await wake(office.engine)
    assert await office.run_status(run_id) == "succeeded"
    cards = await office.rows("SELECT subject_kind FROM cards WHERE subject_id = :r", r=run_id)
    assert cards == [("run",)]


async def test_what_a_person_edits_is_what_the_agent_is_told_of(office: Office) -> None:
    run_id, operation = await accepted(office, closing_of())
    await office.show()
    new = await edited(office, operation)
    [answer] = await answers(office)
    assert answer.operation is not None
    assert (answer.operation.status, answer.operation.edited) == (OperationStatus.AWAITING, True)
    assert await office.run_status(run_id) == "waiting"
    assert isinstance(await office.click(new, SAM), Recorded)
    held = await office.claim_operation(new)
    opened = await office.open_one(held)
    assert isinstance(opened, Opened)
    await office.report(held, opened, applied())
    await wake(office.engine)
    assert await office.run_status(run_id) == "succeeded"


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("reject", "rejected", "already_denied"),
        ("expire", "expired", "expired"),
        ("not_sent", "partial", "refused_by_provider"),
    ],
)
async def test_a_run_fails_for_its_operations_reason(
    office: Office, end: str, status: str, reason: str
) -> None:
    if end == "not_sent":
        run_id, operation = await _approved(office)
        held = await office.claim_operation(operation)
        opened = await office.open_one(held)
        assert isinstance(opened, Opened)
        await office.report(held, opened, not_applied(retryable=False))
    else:
        run_id, operation = await accepted(office, closing_of())
        await office.show()
        if end == "reject":
            await office.click(operation, RENE, Vote.REJECT, "no")
        else:
            await office.later(days=2)
            await sweep(office.engine)
    await wake(office.engine)
    assert await office.status(operation) == status
    [found] = await office.rows("SELECT status, reason FROM runs WHERE id = :r", r=run_id)
    assert found == ("failed", reason)


async def test_an_agent_whose_right_was_taken_sends_nothing_more(office: Office) -> None:
    run_id, operation = await _approved(office)
    await activate_policy(
        office.engine, policy_with_agents(people=people(requesters=["U0REQUESTER"]))
    )
    held = await office.claim_operation(operation)
    assert isinstance(await office.open_one(held), NotOpened)
    assert (await office.status(operation), await office.reason(operation)) == (
        "stale",
        "not_permitted",
    )
    await wake(office.engine)
    assert await office.run_status(run_id) == "failed"


@pytest.mark.parametrize("facts", [{"deleted": True, "is_bot": True}, {"team_id": "T9"}])
async def test_an_agent_that_was_switched_off_sends_nothing_more(
    office: Office, facts: dict[str, Any]
) -> None:
    _, operation = await _approved(office)
    await office.look_at(AGENT, **facts)
    assert isinstance(await office.open_one(await office.claim_operation(operation)), NotOpened)
    assert await office.status(operation) == "stale"


async def test_a_bot_that_is_no_agent_any_more_sends_nothing_more(office: Office) -> None:
    _, operation = await _approved(office)
    await activate_policy(office.engine, policy_with_agents(people=people(agents=[])))
    assert isinstance(await office.open_one(await office.claim_operation(operation)), NotOpened)
    assert await office.reason(operation) == "identity_refused"


async def test_a_cancelled_run_takes_its_operation_back(office: Office) -> None:
    run_id, operation = await accepted(office, closing_of())
    await office.cancel(run_id, RENE)
    assert (await office.status(operation), await office.run_status(run_id)) == (
        "withdrawn",
        "cancelled",
    )


# Bounds


async def test_an_agent_has_so_much_under_way_and_no_more(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requesting, "MOST_UNDER_WAY", 2)
    _, operation = await accepted(office, closing_of())
    await ask(office, run_of(key="key-2"))
    for asked in (closing_of("4102", key="key-3"), run_of(key="key-4")):
        assert refusal(await ask(office, asked))[0] is Reason.QUEUE_FULL
    await accepted(office, closing_of("4102"), agent=OTHER_AGENT)
    await office.show()
    await office.click(operation, RENE, Vote.REJECT)
    await wake(office.engine)
    again = await ask(office, run_of(key="key-4"))
    assert again is not None
    assert again.outcome is Outcome.ACCEPTED


async def test_two_programs_that_answer_each_other_fall_silent(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requesting, "MOST_IN_VAIN", 3)
    for _ in range(3):
        assert refusal(await ask(office, Unreadable("no")))[0] is Reason.ARGUMENTS_INVALID
    assert refusal(await ask(office, Unreadable("no"))) == (Reason.QUEUE_FULL, {"in_vain": 3})
    for _ in range(3):
        assert await ask(office, closing_of()) is None
    assert len(await answers(office)) == 4
    assert await office.rows("SELECT event_id FROM inbox WHERE handled_at IS NULL") == []
    await office.later(hours=1, seconds=1)
    await office.look_at(AGENT, is_bot=True)
    await accepted(office, closing_of())


async def test_without_settings_of_mail_nothing_is_proposed_and_runs_are_started(
    office: Office,
) -> None:
    for asked, outcome in ((closing_of(), Outcome.REFUSED), (run_of(), Outcome.ACCEPTED)):
        event = await event_of(office)
        came = await handle_by_asking(office.engine, None, event, wish_for(asked))
        assert came is not None
        assert came.outcome is outcome
    assert await office.rows("SELECT answer ->> 'reason' FROM agent_requests ORDER BY ts") == [
        ("not_configured",),
        (None,),
    ]


async def test_a_person_is_not_an_agent(office: Office) -> None:
    run_id = await office.start_run(requester=RIKO)
    operation = await office.propose(run_id, await office.claim_run(run_id))
    assert not await is_named(office.engine, TENANT, OTTO)
    async with office.database.transaction() as conn:
        assert (await read_operation(conn, TENANT, operation)).agents == frozenset()
    _, theirs = await accepted(office, closing_of("4102"))
    async with office.database.transaction() as conn:
        assert (await read_operation(conn, TENANT, theirs)).agents == {AGENT}

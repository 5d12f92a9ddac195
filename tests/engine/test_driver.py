"""The driver works from the record alone: a crash anywhere and a resume repeat nothing recorded."""

from __future__ import annotations

import asyncio

import pytest

from executor.domain.approval import Vote
from executor.domain.errors import StaleEpoch
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.engine.failpoint import Commit, Side, point
from executor.engine.ports import ModelFailed, ModelReply
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep
from executor.engine.waking import wake
from tests.support.failpoints import Crashed, Trap
from tests.support.fake_mail import applied
from tests.support.fake_model import FakeModel, calls, says
from tests.support.office import Office, policy
from tests.support.working import Working

PROPOSAL: JsonObject = {
    "ticket_id": "4101",
    "language": "en",
    "subject": "Ticket 4101 closed",
    "message": "Your invoice is corrected.",
}
READ = says("", calls("read_ticket", {"ticket_id": "4101"}))
PROPOSE = says("", calls("propose_closing", PROPOSAL))


def _model(*more: ModelReply) -> FakeModel:
    return FakeModel([READ, PROPOSE, *more])


async def _status(working: Working) -> str:
    return await working.office.run_status(working.run_id)


async def _to_the_end(working: Working) -> None:
    """Approve what was proposed, do it, and let the run go on."""
    office = working.office
    await office.show()
    [operation] = await working.operations()
    await office.click(operation)
    claimed = await office.claim_operation(operation)
    opened = await office.open_one(claimed)
    await office.report(claimed, opened, applied())  # type: ignore[arg-type]
    await wake(office.engine)
    await working.drive()


async def test_the_job_is_driven_to_its_end_over_a_wait(office: Office) -> None:
    model = _model(says("Ticket 4101 is closed."))
    working = await Working.start(office, model)
    await working.drive()
    assert await _status(working) == "waiting"
    [row] = await office.rows("SELECT lease_owner, due_at FROM runs")
    assert row == (None, None)
    await _to_the_end(working)
    assert await _status(working) == "succeeded"
    assert model.called == 3
    told = await working.told()
    assert [result.get("status") for result in told] == ["open", "succeeded"]
    shown = model.requests[2].turns
    assert [turn.results[0].result["status"] for turn in shown] == ["open", "succeeded"]


DRIVING = (
    Commit.RESERVE,
    Commit.RECORD_REPLY,
    Commit.RECORD_RESULT,
    Commit.ACCEPT,
    Commit.WAIT,
    Commit.END_RUN,
)
CRASHES = [
    (commit, side, visit)
    for commit in DRIVING
    for side in Side
    for visit in ((1, 2) if commit in (Commit.RESERVE, Commit.RECORD_REPLY) else (1,))
    if commit is not Commit.END_RUN
]


@pytest.mark.parametrize(("commit", "side", "visit"), CRASHES)
async def test_a_crash_at_any_commit_and_a_new_driver_come_to_the_same(
    office: Office, commit: Commit, side: Side, visit: int
) -> None:
    lost = commit is Commit.RECORD_REPLY and side is Side.BEFORE
    script = [READ, PROPOSE]
    if lost:
        # A reply that was never recorded is asked for again, under a new reservation.
        script.insert(visit - 1, script[visit - 1])
    model = FakeModel(script)
    working = await Working.start(office, model)
    trap = Trap(point(commit, side), at_visit=visit)
    with pytest.raises(Crashed):
        await working.drive(office.colleague(failpoints=trap))
    await office.later(seconds=31)
    if not (commit is Commit.WAIT and side is Side.AFTER):
        await working.drive(owner="w2")
    assert await _status(working) == "waiting"
    assert model.called == 2 + lost
    steps = await office.rows("SELECT kind FROM steps ORDER BY number")
    assert steps == [("model",), ("tool",), ("model",)]
    assert len(await working.operations()) == 1
    await office.later(minutes=3)
    await sweep(office.engine)
    counts = await office.rows("SELECT status, count(*) FROM reservations GROUP BY 1 ORDER BY 1")
    leaked = lost or (commit is Commit.RESERVE and side is Side.AFTER)
    assert counts == [("settled", 2), *([("unknown", 1)] if leaked else [])]


@pytest.mark.parametrize("side", list(Side))
async def test_a_crash_at_the_end_ends_it_once(office: Office, side: Side) -> None:
    model = FakeModel([says("Nothing to do.")])
    working = await Working.start(office, model)
    with pytest.raises(Crashed):
        await working.drive(office.colleague(failpoints=Trap(point(Commit.END_RUN, side))))
    if side is Side.BEFORE:
        await office.later(seconds=31)
        await working.drive(owner="w2")
    assert (await _status(working), model.called) == ("succeeded", 1)


async def test_a_read_in_the_same_reply_does_not_count_as_read_also_after_a_crash(
    office: Office,
) -> None:
    both = says("", calls("read_ticket", {"ticket_id": "4101"}), calls("propose_closing", PROPOSAL))
    working = await Working.start(office, FakeModel([both, says("I give up.")]))
    dying = office.colleague(failpoints=Trap("record_result.after"))
    with pytest.raises(Crashed):
        await working.drive(dying)
    await office.later(seconds=31)
    await working.drive(owner="w2")
    assert [result.get("error") for result in await working.told()] == [None, "version_not_read"]


async def test_a_driver_that_lost_its_lease_writes_nothing(office: Office) -> None:
    model = FakeModel([READ, READ], held=True)
    working = await Working.start(office, model)
    claimed = await office.claim_run(working.run_id, "w1")
    await office.later(seconds=31)
    await office.claim_run(working.run_id, "w2")
    office.claims[working.run_id] = claimed
    with pytest.raises(StaleEpoch):
        await working.drive()
    assert model.called == 0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (calls("delete_everything", {}), "tool_unknown"),
        (calls("propose_closing", {"ticket_id": "4101"}), "arguments_invalid"),
        (calls("propose_closing", {**PROPOSAL, "bcc": "eve@evil.example"}), "arguments_invalid"),
        (calls("read_ticket", {"ticket_id": ["4101"]}), "arguments_invalid"),
        (calls("read_ticket", {"ticket_id": "9999"}), "ticket_unknown"),
        (calls("propose_closing", PROPOSAL), "version_not_read"),
    ],
)
async def test_whatever_is_wrong_with_a_call_is_the_models_answer(
    office: Office, call: object, error: str
) -> None:
    model = FakeModel([says("", call), says("I could not.")])  # type: ignore[arg-type]
    working = await Working.start(office, model)
    await working.drive()
    assert [result["error"] for result in await working.told()] == [error]
    assert await _status(working) == "succeeded"


async def _ends_with(office: Office, model: FakeModel, reason: Reason) -> None:
    working = await Working.start(office, model)
    await working.drive()
    found = "SELECT reason FROM runs WHERE tenant_id = :t AND id = :id"
    assert (await _status(working), await office.value(found, working.run_id)) == (
        "failed",
        reason.value,
    )


async def test_a_silent_model_ends_the_run(office: Office) -> None:
    await _ends_with(office, FakeModel([says("  ")]), Reason.MODEL_SILENT)


async def test_the_number_of_steps_is_limited(office: Office) -> None:
    await activate_policy(office.engine, policy(run={"max_steps": 4}))
    await _ends_with(office, FakeModel([READ, READ]), Reason.STEP_LIMIT)


async def test_errors_in_a_row_are_limited(office: Office) -> None:
    await activate_policy(office.engine, policy(run={"max_tool_errors_in_a_row": 2}))
    wrong = says("", calls("delete_everything", {}))
    await _ends_with(office, FakeModel([wrong, wrong]), Reason.TOOL_ERROR_LIMIT)


@pytest.mark.parametrize(
    ("failures", "calls_made", "statuses"),
    [
        ([("not sent", True, True)] * 2, 2, ["voided", "voided"]),
        ([("lost", False, True)] * 2, 2, ["unknown", "unknown"]),
        ([("refused", True, False)], 1, ["voided"]),
    ],
)
async def test_a_model_that_fails_is_asked_again_only_where_that_can_help(
    office: Office,
    failures: list[tuple[str, bool, bool]],
    calls_made: int,
    statuses: list[str],
) -> None:
    model = FakeModel([ModelFailed(p, not_sent=n, retryable=r) for p, n, r in failures])
    await _ends_with(office, model, Reason.MODEL_FAILED)
    assert model.called == calls_made
    rows = await office.rows("SELECT status FROM reservations ORDER BY reserved_at")
    assert [status for (status,) in rows] == statuses


async def test_rejections_in_a_row_are_limited(office: Office) -> None:
    await activate_policy(office.engine, policy(run={"max_rejections_in_a_row": 2}))
    again = says("", calls("propose_closing", {**PROPOSAL, "message": "Other words."}))
    working = await Working.start(office, FakeModel([READ, PROPOSE, again]))
    for _ in range(2):
        await working.drive()
        await office.show()
        await office.click((await working.operations())[-1], vote=Vote.REJECT, note="No.")
        await wake(office.engine)
    await working.drive()
    reason = "SELECT reason FROM runs WHERE tenant_id = :t AND id = :id"
    assert await office.value(reason, working.run_id) == "rejection_limit"
    told = await working.told()
    assert [result.get("rejected_because") for result in told] == [None, "No.", "No."]


async def test_the_same_proposal_after_its_rejection_is_answered_from_the_record_and_limited(
    office: Office,
) -> None:
    working = await Working.start(office, FakeModel([READ, PROPOSE, PROPOSE, PROPOSE]))
    await working.drive()
    await office.show()
    await office.click((await working.operations())[-1], vote=Vote.REJECT, note="No.")
    await wake(office.engine)
    await working.drive()
    reason = "SELECT reason FROM runs WHERE tenant_id = :t AND id = :id"
    assert await office.value(reason, working.run_id) == "repeated_proposal"
    told = (await working.told())[1:]
    assert [(t["status"], t["rejected_because"]) for t in told] == [("rejected", "No.")] * 3
    assert len(await working.operations()) == 1


async def test_a_call_id_that_repeats_in_one_reply_names_two_calls(office: Office) -> None:
    second = {**PROPOSAL, "ticket_id": "4102"}
    model = FakeModel(
        [
            says("", *(calls("read_ticket", {"ticket_id": t}, "call_9") for t in ("4101", "4102"))),
            says("", *(calls("propose_closing", p, "call_9") for p in (PROPOSAL, second))),
        ]
    )
    working = await Working.start(office, model)
    await working.drive()
    assert len(set(await working.operations())) == 2


async def test_a_stop_between_two_steps_hands_the_run_back_at_once(office: Office) -> None:
    stop = asyncio.Event()

    def last_reply(_: object) -> ModelReply:
        stop.set()
        return READ

    working = await Working.start(office, FakeModel([last_reply, PROPOSE]))
    await working.drive(stop=stop)
    [row] = await office.rows("SELECT status, lease_owner, due_at <= signoff_clock() FROM runs")
    assert row == ("running", None, True)
    await working.drive(owner="w2")
    assert await _status(working) == "waiting"


async def test_a_run_whose_wall_time_is_over_ends_with_its_unopened_operations(
    office: Office,
) -> None:
    working = await Working.start(office, _model())
    await working.drive()
    await office.later(days=8)
    await sweep(office.engine)
    [operation] = await working.operations()
    found = "SELECT reason FROM runs WHERE tenant_id = :t AND id = :id"
    assert await office.value(found, working.run_id) == "time_limit"
    assert await office.status(operation) == "withdrawn"

"""What people rejected is not put before them again unchanged, whoever has it proposed."""

from __future__ import annotations

import pytest

from executor.domain.approval import Vote
from executor.domain.ids import OperationId, PrincipalId
from executor.domain.payloads import JsonObject
from executor.engine.converging import Accepted, AcceptResult, Answered
from tests.support.office import RENE, RIKO, SAM, Office, closing
from tests.support.replacing import edited


def _told(results: list[AcceptResult]) -> JsonObject:
    [result] = results
    assert isinstance(result, Answered), result
    return result.result


async def _rejected(office: Office) -> OperationId:
    operation = await office.proposed()
    await office.click(operation, RENE, Vote.REJECT, "Say sorry first.")
    return operation


@pytest.mark.parametrize("requester", [RIKO, SAM])
async def test_any_run_is_answered_from_the_record_with_the_reason_and_no_card(
    office: Office, requester: PrincipalId
) -> None:
    await _rejected(office)
    other = await office.start_run(requester=requester)
    told = _told(await office.ask(other, await office.claim_run(other), closing()))
    assert (told["status"], told["again"]) == ("rejected", True)
    assert told["rejected_because"] == "Say sorry first."
    assert "nobody was asked again" in str(told["message"])
    assert await office.rows("SELECT status FROM operations") == [("rejected",)]
    kinds = await office.rows("SELECT subject_kind FROM cards ORDER BY 1")
    assert kinds == [("operation",), ("run",), ("run",)], "none for it, and one for each run"


async def test_other_words_are_put_before_people(office: Office) -> None:
    await _rejected(office)
    other = await office.start_run()
    [result] = await office.ask(
        other, await office.claim_run(other), closing(message="Sorry. It is corrected.")
    )
    assert isinstance(result, Accepted)


async def test_the_same_words_count_as_new_when_the_ticket_has_moved(office: Office) -> None:
    await _rejected(office)
    await office.customer_writes()
    other = await office.start_run()
    [result] = await office.ask(other, await office.claim_run(other), closing(), version=3)
    assert isinstance(result, Accepted)


async def test_what_only_expired_may_be_proposed_again(office: Office) -> None:
    operation = await office.proposed()
    await office.cancel(await office.run_of(operation))
    other = await office.start_run()
    [result] = await office.ask(other, await office.claim_run(other), closing())
    assert isinstance(result, Accepted)


async def test_a_rejected_wording_does_not_take_the_place_of_what_waits(office: Office) -> None:
    run_id = await office.start_run()
    claimed = await office.claim_run(run_id)
    first = await office.propose(run_id, claimed)
    await office.show()
    await office.click(first, RENE, Vote.REJECT, "No.")
    second = await office.propose(run_id, claimed, message="Better words.", step=2)
    told = _told(await office.ask(run_id, claimed, closing(), step=3))
    assert told["again"] is True
    assert await office.status(second) == "awaiting"


async def test_the_agents_words_are_not_those_that_a_person_had_written(office: Office) -> None:
    """The rejection was of the edited revision, so the agent's own may still be judged."""
    new = await edited(office, await office.proposed())
    await office.click(new, SAM, Vote.REJECT, "No.")
    other = await office.start_run()
    [result] = await office.ask(other, await office.claim_run(other), closing())
    assert isinstance(result, Accepted)

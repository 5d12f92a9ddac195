"""Second factors and links: a code counts once, guessing ends soon, and a link decides once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyotp

from executor.adapters.sealing import FernetSealer, new_key
from executor.domain.approval import Vote
from executor.domain.ids import operator_principal
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.click import Recorded
from executor.engine.decision_links import Shown, click_by_link, issue, look
from executor.engine.second_factor import (
    MOST_FAILURES,
    Enrolled,
    Passed,
    enrol,
    judge_code,
    list_factors,
    withdraw,
)
from executor.engine.setup import activate_policy
from executor.store import clock
from tests.support.office import RENE, TENANT, Office, policy

ADA = operator_principal("ada")
SEALER = FernetSealer([new_key()])


async def _enrolled(office: Office) -> pyotp.TOTP:
    given = await enrol(office.engine, SEALER, TENANT, RENE, ADA)
    assert isinstance(given, Enrolled)
    return pyotp.TOTP(given.secret)


async def _code(office: Office, totp: pyotp.TOTP, off: int = 0) -> str:
    async with office.database.transaction() as conn:
        now = await clock.now(conn)
    return totp.at(now + timedelta(seconds=30 * off))


async def _judged(office: Office, code: str) -> Passed | Reason:
    result = await judge_code(office.engine, SEALER, TENANT, RENE, code)
    return result.reason if isinstance(result, Refused) else result


async def test_a_code_counts_once_and_within_a_step_of_now(office: Office) -> None:
    totp = await _enrolled(office)
    await office.later_unseen(seconds=30 - (await _now(office)) % 30)
    code = await _code(office, totp)
    assert await _judged(office, await _code(office, totp, -2)) is Reason.SECOND_FACTOR_WRONG
    assert await _judged(office, f" {code[:3]} {code[3:]} ") == Passed()
    assert await _judged(office, code) is Reason.SECOND_FACTOR_WRONG
    assert await _judged(office, await _code(office, totp, -1)) is Reason.SECOND_FACTOR_WRONG
    assert await _judged(office, await _code(office, totp, 1)) == Passed()


async def _now(office: Office) -> float:
    async with office.database.transaction() as conn:
        return (await clock.now(conn)).timestamp()


async def test_whoever_guesses_is_kept_out_for_a_while(office: Office) -> None:
    totp = await _enrolled(office)
    for _ in range(MOST_FAILURES):
        assert await _judged(office, "nonsense") is Reason.SECOND_FACTOR_WRONG
    right = await _code(office, totp)
    assert await _judged(office, right) is Reason.SECOND_FACTOR_BLOCKED
    await office.later_unseen(minutes=15)
    assert await _judged(office, await _code(office, totp)) == Passed()
    events = await office.rows("SELECT event FROM journal WHERE event LIKE 'second_factor%'")
    assert events == [("second_factor_given",), ("second_factor_blocked",)]


async def test_the_secret_is_kept_sealed_and_useless_without_its_key(office: Office) -> None:
    totp = await _enrolled(office)
    [(sealed,)] = await office.rows("SELECT sealed FROM second_factors")
    assert totp.secret not in sealed
    other = FernetSealer([new_key()])
    refused = await judge_code(office.engine, other, TENANT, RENE, await _code(office, totp))
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NO_SECOND_FACTOR
    key = new_key()
    both = FernetSealer([key, new_key()])
    assert FernetSealer([new_key(), key]).unseal(both.seal("s")) == "s"


async def test_a_second_factor_that_was_taken_away_lets_nobody_in(office: Office) -> None:
    totp = await _enrolled(office)
    assert [line.principal for line in await list_factors(office.engine, TENANT)] == [RENE]
    assert await withdraw(office.engine, TENANT, RENE, ADA)
    assert not await withdraw(office.engine, TENANT, RENE, ADA)
    assert await _judged(office, await _code(office, totp)) is Reason.NO_SECOND_FACTOR


async def test_a_link_shows_what_was_shown_and_decides_it_once(office: Office) -> None:
    await activate_policy(office.engine, policy(approval={"step_up": True}))
    operation = await office.proposed()
    token = await issue(office.engine, await office.click_for(operation))
    for _ in range(3):
        shown = await look(office.engine, TENANT, token)
        assert isinstance(shown, Shown)
        assert shown.is_what_was_shown
    assert isinstance(shown, Shown)
    without = replace(click_by_link(shown.link, Vote.APPROVE, "", second_factor=False))
    # What was refused used the link up as well: whoever goes on clicks the card again.
    [refused] = await office.decide(without)
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.SECOND_FACTOR_NEEDED
    fresh = await look(
        office.engine, TENANT, await issue(office.engine, await office.click_for(operation))
    )
    assert isinstance(fresh, Shown)
    click = click_by_link(fresh.link, Vote.APPROVE, "", second_factor=True)
    first, second = await office.decide(click, click)
    assert first == Recorded(Vote.APPROVE, 0, decided=True)
    assert isinstance(second, NoChange)


async def test_a_link_ends_after_minutes_and_another_token_opens_nothing(office: Office) -> None:
    operation = await office.proposed()
    token = await issue(office.engine, await office.click_for(operation))
    assert isinstance(await look(office.engine, TENANT, token + "x"), Refused)
    await office.later_unseen(minutes=10)
    ended = await look(office.engine, TENANT, token)
    assert isinstance(ended, Refused)
    assert ended.reason is Reason.LINK_ENDED

"""Recovery survives its own death at every commit: nothing is sent twice, and the truth is found.

A search that was recorded and not made is lost, never made twice; a repeat that was decided and not
opened is opened by whoever claims it.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from pydantic import SecretStr

from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import ResendDouble
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.engine.reconciler import reconcile
from executor.engine.recovering import recover_due
from tests.support.doubt import Doubt
from tests.support.failpoints import Crashed, Trap
from tests.support.office import Office

LOST = PlannedFault(Fault.DROP, after_accepting=True)


async def _die_in_recovery(doubt: Doubt, trap: Trap) -> None:
    """Work as a process that dies when the trap springs; the living go on later."""
    dying = doubt.office.colleague(failpoints=trap)
    for _ in range(10):
        with suppress(Crashed):
            await reconcile(dying.engine)
            await recover_due(dying.engine, dying.providers)
            for claimed in await dying.claim_operations("w2"):
                await doubt.execute(claimed, dying)
        if trap.sprung:
            return
        wait = await doubt.next_due()
        assert wait is not None, "it ended without reaching the failpoint"
        await doubt.pass_time(max(wait, 0.0) + 0.01)
    raise AssertionError("the failpoint was not reached")


@pytest.mark.parametrize(
    "point",
    [
        f"{name}.{side}"
        for name in ("recover", "claim_operation", "open", "call", "report")
        for side in ("before", "after")
    ],
)
async def test_a_keyed_repeat_survives_a_death_anywhere(office: Office, point: str) -> None:
    clock = VirtualClock()
    async with ResendDouble(clock=clock) as double:
        mail = ResendMail(SecretStr("re_sandbox"), api_url=double.url, longest_request_seconds=5.0)
        doubt = Doubt(office, mail, clock)
        double.fail(LOST, call=1)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        await _die_in_recovery(doubt, Trap(point))
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == "succeeded"
        assert double.accepted == 1
        assert double.faults.calls <= 3


@pytest.mark.parametrize(
    ("point", "searches"),
    [
        ("recover.before", 1),
        # Recorded and not made: the next one is made instead.
        ("recover.after", 1),
        ("record_search.before", 2),
        ("record_search.after", 1),
    ],
)
async def test_a_search_survives_a_death_anywhere(
    office: Office, point: str, searches: int
) -> None:
    clock = VirtualClock()
    async with PostmarkDouble(clock=clock) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=5.0
        )
        doubt = Doubt(office, mail, clock)
        double.fail(LOST, call=1)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        await _die_in_recovery(doubt, Trap(point))
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == "succeeded"
        assert (double.accepted, double.faults.calls) == (1, 1)
        assert double.search_faults.calls == searches


@pytest.mark.parametrize("point", ["record_search.before", "record_search.after"])
async def test_what_a_search_did_not_find_survives_a_death_as_well(
    office: Office, point: str
) -> None:
    clock = VirtualClock()
    async with PostmarkDouble(clock=clock) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=5.0
        )
        doubt = Doubt(office, mail, clock)
        double.fail(PlannedFault(Fault.DROP), call=1)
        claimed = await doubt.claimed()
        await doubt.execute(claimed)
        await _die_in_recovery(doubt, Trap(point))
        await doubt.until_nothing_is_due()
        assert await office.status(claimed.claim.key[1]) == "unknown"
        assert (double.accepted, double.faults.calls) == (0, 1)
        assert double.search_faults.calls == 6


async def test_two_processes_that_recover_at_once_take_one_step(office: Office) -> None:
    clock = VirtualClock()
    async with PostmarkDouble(clock=clock) as double:
        mail = PostmarkMail(
            SecretStr("sandbox-token"), api_url=double.url, longest_request_seconds=5.0
        )
        doubt = Doubt(office, mail, clock)
        double.fail(PlannedFault(Fault.DROP), call=1)
        await doubt.execute(await doubt.claimed())
        await doubt.pass_time(301)
        other = office.colleague()
        await recover_due(office.engine, doubt.office.providers)
        assert await recover_due(other.engine, doubt.office.providers) == 0
        assert double.search_faults.calls == 1

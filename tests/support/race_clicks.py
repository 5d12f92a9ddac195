"""What the approvers of a race do, and what they have to be told."""

from __future__ import annotations

from functools import partial

from executor.domain.ids import PrincipalId
from executor.engine.click import ClickResult, Recorded
from tests.support.office import RENE, SAM
from tests.support.race_record import Round
from tests.support.race_track import Prize
from tests.support.racing import Gun, Racer


async def approve(
    racer: Racer, prize: Prize, gun: Gun, who: PrincipalId = RENE
) -> ClickResult | None:
    """Click, unless that was done before the race; what is approved then is opened and sent."""
    await racer.take_over()
    await gun()
    told: ClickResult | None = None
    if not prize.granted:
        [told] = await racer.office.decide(prize.click(who))
        if not isinstance(told, Recorded) or not told.decided:
            return told
    await racer.carry_out(prize)
    return told


approve_too = partial(approve, who=SAM)


def check_told(one: Round, *, quorum: int = 0) -> None:
    """Whoever approved before the race was told before it."""
    if one.told["approve"] is not None:
        one.check_told(RENE, one.told["approve"], quorum=quorum)

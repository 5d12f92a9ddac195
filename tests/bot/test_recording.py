"""What somebody says is recorded in time, read back, or truthfully not confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bot.identity import IdentityWatch
from bot.kept_work import KeptWork
from bot.listeners.recording import Recording
from bot.whisper import Whisperer
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import PrincipalId, slack_principal
from executor.domain.transition import Reason, Refused
from executor.engine.click import NotConfirmed

RENE = slack_principal("T1", "U0REVIEWER")


@dataclass(frozen=True)
class Said:
    """Something that somebody says."""

    what: str
    principal: PrincipalId = RENE
    channel: str = "C1"
    user_id: str = "U1"


@dataclass
class Outside:
    """Everything around a recording: who is known, what was whispered, what the engine does."""

    kept: KeptWork = field(default_factory=KeptWork)
    known: bool = True
    whispered: list[str] = field(default_factory=list)
    back: str | Exception = "read back"

    async def acting(self, claimed: PrincipalId) -> PrincipalId | None:
        return claimed if self.known else None

    def say(self, channel: str, user: str, text: str) -> None:
        assert (channel, user) == ("C1", "U1")
        self.whispered.append(text)

    async def read_back(self, said: Said) -> str:
        if isinstance(self.back, Exception):
            raise self.back
        return self.back

    def recording(
        self, record: Callable[[Sequence[Said]], Awaitable[Sequence[str]]]
    ) -> Recording[Said, Any]:
        people, whisperer = cast("IdentityWatch", self), cast("Whisperer", self)
        return Recording(record, self.read_back, people, whisperer, self.kept)


@pytest.fixture
async def outside() -> AsyncIterator[Outside]:
    made = Outside()
    yield made
    await made.kept.close()


def failing(error: Exception) -> Callable[[Sequence[Said]], Awaitable[Sequence[str]]]:
    async def record(sayings: Sequence[Said]) -> Sequence[str]:
        raise error

    return record


async def echo(sayings: Sequence[Said]) -> Sequence[str]:
    return [said.what for said in sayings]


async def test_what_is_recorded_is_told_by_its_notice_alone(outside: Outside) -> None:
    recording = outside.recording(echo)
    results = await asyncio.gather(*(recording.record(Said(str(n))) for n in range(5)))
    assert results == ["0", "1", "2", "3", "4"]
    await recording.idle()
    assert outside.whispered == []


async def test_nobody_is_recorded_whom_slack_does_not_vouch_for(outside: Outside) -> None:
    outside.known = False
    result = await outside.recording(echo).record(Said("x"))
    assert result == Refused(Reason.IDENTITY_UNKNOWN)
    assert [told.partition(":")[0] for told in outside.whispered] == ["Nothing was recorded"]


async def test_after_a_lost_commit_the_record_tells(outside: Outside) -> None:
    recording = outside.recording(failing(CommitUnknown("lost")))
    assert await recording.record(Said("x")) == "read back"
    assert outside.whispered == []


@pytest.mark.parametrize("back", [DatabaseUnavailable("away"), NotConfirmed()])
async def test_what_cannot_be_read_back_is_not_confirmed(outside: Outside, back: Any) -> None:
    outside.back = back
    recording = outside.recording(failing(CommitUnknown("lost")))
    assert await recording.record(Said("x")) == NotConfirmed()
    assert [told.partition(":")[0] for told in outside.whispered] == ["Not confirmed"]


async def test_what_takes_too_long_goes_on_and_is_not_confirmed(outside: Outside) -> None:
    let_go = asyncio.Event()
    recorded: list[str] = []

    async def slow(sayings: Sequence[Said]) -> Sequence[str]:
        await let_go.wait()
        recorded.extend(said.what for said in sayings)
        return await echo(sayings)

    recording = outside.recording(slow)
    assert await recording.record(Said("x"), within=0.01) == NotConfirmed()
    assert [told.partition(":")[0] for told in outside.whispered] == ["Not confirmed"]
    told = "Nothing was recorded: the form did not open."
    again = await recording.record(Said("y"), within=0.01, unconfirmed=told)
    assert (again, outside.whispered[1:]) == (NotConfirmed(), [told])
    let_go.set()
    await recording.idle()
    assert recorded == ["x", "y"]


async def test_where_the_database_is_away_nothing_is_recorded_and_both_are_told(
    outside: Outside,
) -> None:
    recording = outside.recording(failing(DatabaseUnavailable("away")))
    with pytest.raises(DatabaseUnavailable):
        await recording.record(Said("x"))
    assert [told.partition(":")[0] for told in outside.whispered] == ["Nothing was recorded"]

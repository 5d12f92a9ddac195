"""What people say is recorded within the time that a click has, and each gets the truth about it.

Who it is comes first, then one call to the engine, in a group with whatever came meanwhile. After a
COMMIT whose answer was lost the record is read back. What was recorded or refused is told by the
notice that is queued in the same commit; what could not be recorded is whispered from here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import Field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from bot import replies
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.whisper import Whisperer
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import PrincipalId
from executor.domain.transition import Reason, Refused
from executor.engine.click import NotConfirmed
from executor.engine.group import Group

RECORD_BY_SECONDS = 2.2
READ_SECONDS = 0.25
"""Counted from the click's arrival; with a grace for each, an answer leaves within Slack's 3 s."""

MOST_TOGETHER = 200
"""Sayings that are recorded in one commit."""

T = TypeVar("T")


class Saying(Protocol):
    """Something that one person says, and where that person can be answered; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def principal(self) -> PrincipalId: ...

    @property
    def channel(self) -> str: ...

    @property
    def user_id(self) -> str: ...


SayingT = TypeVar("SayingT", bound=Saying)
ResultT = TypeVar("ResultT")


class Recording(Generic[SayingT, ResultT]):
    """Records the sayings of one process, at most ``most`` in one commit.

    ``record`` takes sayings and returns one result each, from one transaction; ``read_back`` says
    after ``CommitUnknown`` what one came to.
    """

    def __init__(
        self,
        record: Callable[[Sequence[SayingT]], Awaitable[Sequence[ResultT]]],
        read_back: Callable[[SayingT], Coroutine[Any, Any, ResultT]],
        people: IdentityWatch,
        whisperer: Whisperer,
        kept: KeptWork,
        *,
        most: int = MOST_TOGETHER,
    ) -> None:
        self._group: Group[SayingT, ResultT] = Group(record, most=most)
        self._read_back = read_back
        self._people = people
        self._whisperer = whisperer
        self._kept = kept

    async def record(
        self, saying: SayingT, *, within: float = RECORD_BY_SECONDS, unconfirmed: str | None = None
    ) -> ResultT | Refused | NotConfirmed:
        """Record one saying, as that of whoever really acts, and say what it came to.

        ``unconfirmed`` is what the person is told where it cannot be confirmed. Raises
        ``DatabaseUnavailable`` when nothing was recorded, after saying so to the person.
        """
        loop = asyncio.get_running_loop()
        record_by = loop.time() + within
        try:
            acting = await self._people.acting(saying.principal)
            if acting is None:
                self.whisper(saying, replies.identity_unverified())
                return Refused(Reason.IDENTITY_UNKNOWN)
            theirs = replace(saying, principal=acting)
            result = await self._submit(theirs, record_by - loop.time())
        except DatabaseUnavailable:
            self.whisper(saying, replies.database_away())
            raise
        if isinstance(result, NotConfirmed):
            self.whisper(saying, unconfirmed or replies.not_confirmed())
        return result

    async def read(self, work: Coroutine[Any, Any, T]) -> T:
        """Read what a click needs; raises ``DatabaseUnavailable`` also when it is slow."""
        try:
            return await self._kept.within(READ_SECONDS, work)
        except (TimeoutError, TooMuchAtOnce) as error:
            raise DatabaseUnavailable("what a click needs could not be read in time") from error

    def whisper(self, saying: SayingT, text: str) -> None:
        """Tell the person something that is not stored."""
        self._whisperer.say(saying.channel, saying.user_id, text)

    async def idle(self) -> None:
        """Wait until everything that was taken has been answered."""
        await self._group.idle()

    async def _submit(self, saying: SayingT, seconds: float) -> ResultT | NotConfirmed:
        try:
            return await self._kept.within(max(0.0, seconds), self._group.submit(saying))
        except TooMuchAtOnce as error:
            raise DatabaseUnavailable("too many clicks are waiting") from error
        except TimeoutError:
            # The group goes on without us; whether it commits is not known here.
            return NotConfirmed()
        except CommitUnknown:
            return await self._look(saying)

    async def _look(self, saying: SayingT) -> ResultT | NotConfirmed:
        try:
            return await self.read(self._read_back(saying))
        except DatabaseUnavailable:
            return NotConfirmed()

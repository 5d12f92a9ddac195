"""``/signoff``: parsed, one call to the engine, answered in the acknowledgement itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, assert_never

from pydantic import ValidationError
from slack_bolt.async_app import AsyncAck

from bot import command_replies, replies
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.listeners.command_line import (
    CancelRun,
    Incomplete,
    NoSuchRun,
    ShowHelp,
    ShowStatus,
    StartRun,
    UnknownWord,
    parse_command,
)
from bot.listeners.payload import SlashCommand
from bot.notice_text import refusal_text
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import PrincipalId, TenantId, operation_label, slack_principal
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason, Refused
from executor.engine.endings import Stopped, cancel
from executor.engine.engine import Engine
from executor.engine.repeats import start_unless_repeated
from executor.engine.start import Started, StartRequest, StartResult
from executor.engine.status import RunStatusLine, newest_runs, one_run

_log = logging.getLogger(__name__)

COMMAND = "/signoff"
ANSWER_SECONDS = 2.0


class Commands:
    """Answers the slash command for one tenant."""

    def __init__(
        self, engine: Engine, tenant: TenantId, people: IdentityWatch, kept: KeptWork
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._tenant = tenant
        self._people = people

    async def signoff(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Carry out one command and answer privately."""
        await ack(text=await self._answer(body), response_type="ephemeral")

    async def _answer(self, body: dict[str, Any]) -> str:
        try:
            command = SlashCommand.model_validate(body)
        except ValidationError:
            _log.warning("a command could not be read")
            return command_replies.help_text()
        if command.team_id != self._tenant:
            return replies.sentence(Reason.OTHER_WORKSPACE, {})
        try:
            return await self._kept.within(ANSWER_SECONDS, self._carry_out(command))
        except (DatabaseUnavailable, TooMuchAtOnce):
            return command_replies.command_not_recorded()
        except (CommitUnknown, TimeoutError):
            return command_replies.command_not_confirmed()

    async def _carry_out(self, command: SlashCommand) -> str:
        principal = slack_principal(self._tenant, command.user_id)
        match parse_command(command.text):
            case StartRun(goal=goal):
                return await self._start(command, principal, goal)
            case ShowStatus(run=None):
                return _listed(await newest_runs(self._engine, self._tenant))
            case ShowStatus(run=int() as number):
                line = await one_run(self._engine, self._tenant, number)
                return command_replies.run_unknown() if line is None else _status(line)
            case CancelRun(run=number):
                return await self._cancel(principal, number)
            case ShowHelp():
                return command_replies.help_text()
            case Incomplete(verb=verb):
                return command_replies.run_wanted(verb)
            case NoSuchRun():
                return command_replies.run_unknown()
            case UnknownWord(word=word):
                return command_replies.unknown_command(word)
            case ShowStatus():
                raise AssertionError("a run's number is an integer")
            case other:
                assert_never(other)

    async def _start(self, command: SlashCommand, principal: PrincipalId, goal: str) -> str:
        if not await self._people.ensure_fresh([principal]):
            return replies.identity_unverified()
        request = StartRequest(
            tenant_id=self._tenant,
            requester=principal,
            goal=goal,
            origin_key=f"slash:{self._tenant}:{command.trigger_id}",
            reply_to={"channel": command.channel_id},
        )
        return started_text(await _start_surely(self._engine, request))

    async def _cancel(self, principal: PrincipalId, number: int) -> str:
        if not await self._people.ensure_fresh([principal]):
            return replies.identity_unverified()
        result = await cancel(self._engine, self._tenant, number, principal)
        match result:
            case Refused():
                return refusal_text(result.reason, result.detail)
            case Stopped(sending=()):
                return command_replies.cancelled(result.number)
            case Stopped():
                names = ", ".join(operation_label(n) for n in result.sending)
                return f"{command_replies.cancelled_too_late(result.number)} ({names})"
            case _:
                assert_never(result)


async def _start_surely(engine: Engine, request: StartRequest) -> StartResult:
    """Start; after a lost answer to COMMIT ask again: the origin tells whether it was stored."""
    try:
        return await start_unless_repeated(engine, request)
    except CommitUnknown:
        return await start_unless_repeated(engine, request)


def started_text(result: StartResult) -> str:
    """Say what a wish for a run came to."""
    match result:
        case Started(again=True):
            return command_replies.still_running(result.number)
        case Started():
            return command_replies.started(result.number)
        case Refused():
            return refusal_text(result.reason, result.detail)
        case _:
            assert_never(result)


def _status(line: RunStatusLine) -> str:
    waiting = [n for n, status in line.operations if status is OperationStatus.AWAITING]
    return command_replies.status_line(line.number, line.status, waiting)


def _listed(lines: list[RunStatusLine]) -> str:
    return "\n".join(map(_status, lines)) if lines else command_replies.no_runs()

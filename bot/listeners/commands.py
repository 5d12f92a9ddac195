"""``/signoff``: parsed, one call to the engine, answered in the acknowledgement itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, assert_never

from pydantic import ValidationError
from slack_bolt.async_app import AsyncAck

from bot import budget_text, command_replies, grant_text, replies
from bot.identity import IdentityWatch
from bot.ingress.handler import REQUEST_HASH
from bot.kept_work import KeptWork, TooMuchAtOnce
from bot.listeners.budget_commands import BudgetCommands
from bot.listeners.budget_line import BudgetCommand, SettleCharge, ShowBudget, UnclearBudget
from bot.listeners.cancelling import cancel_run
from bot.listeners.command_line import (
    CancelRun,
    Command,
    Incomplete,
    NoSuchOperation,
    NoSuchRun,
    ShowHelp,
    ShowPending,
    ShowStatus,
    StartRun,
    UnknownWord,
    parse_command,
)
from bot.listeners.grant_commands import GrantCommands
from bot.listeners.grant_line import GiveRole, GrantCommand, ListGrants, RevokeGrant, UnclearGrant
from bot.listeners.payload import SlashCommand
from bot.listeners.pending import Listed, PendingList
from bot.notice_text import refusal_text
from bot.reason_text import sentence
from executor.domain.errors import CommitUnknown, DatabaseUnavailable
from executor.domain.ids import TenantId
from executor.domain.operation import OperationStatus
from executor.domain.transition import Reason, Refused
from executor.engine.engine import Engine
from executor.engine.people import objection_to_member
from executor.engine.repeats import start_unless_repeated
from executor.engine.start import Started, StartRequest, StartResult
from executor.engine.status import RunStatusLine, newest_runs, one_run

_log = logging.getLogger(__name__)

COMMAND = "/signoff"
Answer = str | Listed | None
"""What a person is answered privately; ``None``: all that there is to see has opened already."""
ANSWER_SECONDS = 2.0


class Commands:
    """Answers the slash command for one tenant."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        people: IdentityWatch,
        pending: PendingList,
        kept: KeptWork,
    ) -> None:
        self._engine = engine
        self._pending = pending
        self._kept = kept
        self._tenant = tenant
        self._people = people
        self._grants = GrantCommands(engine, tenant, people)
        self._budget = BudgetCommands(engine, tenant, people)

    async def signoff(
        self, ack: AsyncAck, body: dict[str, Any], context: Mapping[str, Any]
    ) -> None:
        """Carry out one command and answer privately."""
        said = await self._answer(body, context[REQUEST_HASH])
        match said:
            case None:
                await ack()
            case Listed():
                blocks = [dict(block) for block in said.blocks]
                await ack(text=said.text, blocks=blocks, response_type="ephemeral")
            case _:
                await ack(text=said, response_type="ephemeral")

    async def _answer(self, body: dict[str, Any], request: bytes) -> Answer:
        try:
            command = SlashCommand.model_validate(body)
        except ValidationError:
            _log.warning("a command could not be read")
            return command_replies.help_text()
        if not command.is_for(self._tenant):
            return sentence(Reason.OTHER_WORKSPACE, {})
        asked = parse_command(command.text)
        try:
            return await self._kept.within(ANSWER_SECONDS, self._carry_out(command, asked, request))
        except (DatabaseUnavailable, TooMuchAtOnce):
            return command_replies.command_not_recorded()
        except (CommitUnknown, TimeoutError):
            if isinstance(asked, GrantCommand):
                return grant_text.not_confirmed()
            if isinstance(asked, BudgetCommand):
                return budget_text.not_confirmed()
            return command_replies.command_not_confirmed()

    async def _carry_out(self, command: SlashCommand, asked: Command, request: bytes) -> Answer:
        match asked:
            case StartRun(goal=goal):
                return await self._start(command, goal)
            case ShowStatus(run=number):
                return await self._show(command, number)
            case CancelRun(run=number):
                return await self._cancel(command, number)
            case ShowPending(operation=number):
                return await self._pending.answer(command, number)
            case NoSuchOperation():
                return command_replies.operation_unknown()
            case ShowHelp():
                return command_replies.help_text()
            case Incomplete(verb=verb):
                return command_replies.run_wanted(verb)
            case NoSuchRun():
                return command_replies.run_unknown()
            case UnknownWord(word=word):
                return command_replies.unknown_command(word)
            case ListGrants() | GiveRole() | RevokeGrant() | UnclearGrant():
                return await self._grants.carry_out(command.principal(), asked, request)
            case ShowBudget() | SettleCharge() | UnclearBudget():
                return await self._budget.carry_out(command.principal(), asked)
            case other:
                assert_never(other)

    async def _show(self, command: SlashCommand, number: int | None) -> str:
        principal = await self._people.acting(command.principal())
        if principal is None:
            return replies.identity_unverified()
        # A command works also where somebody only shares a channel with us.
        objection = await objection_to_member(self._engine, self._tenant, principal)
        if objection is not None:
            return refusal_text(objection.reason, objection.detail)
        if number is None:
            return _listed(await newest_runs(self._engine, self._tenant))
        line = await one_run(self._engine, self._tenant, number)
        return command_replies.run_unknown() if line is None else _status(line)

    async def _start(self, command: SlashCommand, goal: str) -> str:
        principal = await self._people.acting(command.principal())
        if principal is None:
            return replies.identity_unverified()
        request = StartRequest(
            tenant_id=self._tenant,
            requester=principal,
            goal=goal,
            origin_key=f"slash:{self._tenant}:{command.trigger_id}",
            reply_to={"channel": command.channel_id},
        )
        return started_text(await _start_surely(self._engine, request))

    async def _cancel(self, command: SlashCommand, number: int) -> str:
        principal = await self._people.acting(command.principal())
        if principal is None:
            return replies.identity_unverified()
        return await cancel_run(self._engine, self._tenant, number, principal)


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
    return command_replies.status_line(line.number, line.status, waiting, line.at_work)


def _listed(lines: list[RunStatusLine]) -> str:
    return "\n".join(map(_status, lines)) if lines else command_replies.no_runs()

"""``/signoff budget``: how money stands, and what calls have cost that nobody knew.

After a COMMIT whose answer was lost the same is asked once more: a charge is settled once, and
whoever comes later is told by whom and to what.
"""

from __future__ import annotations

from typing import assert_never

from bot import budget_text, command_replies, replies
from bot.grant_text import named
from bot.identity import IdentityWatch
from bot.listeners.budget_line import (
    LONGEST_NOTE,
    BudgetCommand,
    SettleCharge,
    ShowBudget,
    UnclearBudget,
    UnclearMoney,
)
from executor.domain.errors import CommitUnknown
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.transition import Refused
from executor.engine.accounts import see_accounts, see_run
from executor.engine.engine import Engine
from executor.engine.grant_reading import local_time
from executor.engine.invoice import Invoiced, KnownBefore, SettledNow, settle_invoiced


class BudgetCommands:
    """Carries out what one tenant's people say about money."""

    def __init__(self, engine: Engine, tenant: TenantId, people: IdentityWatch) -> None:
        self._engine = engine
        self._tenant = tenant
        self._people = people

    async def carry_out(self, claimed: PrincipalId, command: BudgetCommand) -> str:
        """Do what was asked and say what it came to.

        ``claimed`` names the sender as the request has it. Raises ``DatabaseUnavailable``, and
        ``CommitUnknown`` where asking again did not help.
        """
        if isinstance(command, UnclearBudget):
            return _unclear(command.what)
        who = await self._people.acting(claimed)
        if who is None:
            return replies.identity_unverified()
        match command:
            case ShowBudget(run=number):
                return await self._show(who, number)
            case SettleCharge():
                return await self._settle(who, command)
            case _:
                assert_never(command)

    async def _show(self, who: PrincipalId, number: int | None) -> str:
        if number is None:
            found = await see_accounts(self._engine, self._tenant, who)
            if isinstance(found, Refused):
                return budget_text.refused_text(found)
            return budget_text.accounts_text(found)
        one = await see_run(self._engine, self._tenant, who, number)
        if isinstance(one, Refused):
            return budget_text.refused_text(one)
        return budget_text.run_text(one)

    async def _settle(self, who: PrincipalId, command: SettleCharge) -> str:
        said = Invoiced(command.charge, command.microusd, command.note)
        try:
            result = await settle_invoiced(self._engine, self._tenant, who, said)
        except CommitUnknown:
            result = await settle_invoiced(self._engine, self._tenant, who, said)
        match result:
            case SettledNow():
                return budget_text.settled_text(result)
            case KnownBefore():
                here = await local_time(self._engine, self._tenant)
                return budget_text.known_before(result, here.zone, named)
            case Refused():
                return budget_text.refused_text(result)
            case _:
                assert_never(result)


def _unclear(what: UnclearMoney) -> str:
    match what:
        case UnclearMoney.SETTLE:
            return budget_text.settle_wanted()
        case UnclearMoney.AMOUNT:
            return budget_text.amount_unclear()
        case UnclearMoney.NOTE:
            return budget_text.note_wanted()
        case UnclearMoney.LONG_NOTE:
            return budget_text.note_too_long(LONGEST_NOTE)
        case UnclearMoney.VOID:
            return budget_text.never_voided()
        case UnclearMoney.WORDS:
            return budget_text.words_unclear()
        case UnclearMoney.RUN:
            return command_replies.run_unknown()
        case _:
            assert_never(what)

"""What people type as a note is kept without the secrets in it, wherever a note is taken."""

from __future__ import annotations

import hashlib

import pytest

from executor.adapters.host_clock import mint_id
from executor.domain.charge_name import parse_charge
from executor.domain.ids import operator_principal
from executor.domain.secret_text import HIDDEN
from executor.engine.granting import Given, Wish, give
from executor.engine.invoice import Invoiced, SettledNow, settle_invoiced
from executor.engine.opening import Opened
from executor.engine.settling import settle
from executor.engine.setup import activate_policy
from executor.engine.word import Said, Word
from tests.support.fake_mail import unknown
from tests.support.money import CENT, lose
from tests.support.office import CHANNEL, OTTO, RENE, SAM, TENANT, Office, policy

ADA = operator_principal("Ada")
SECRET = "sk-proj-FAKE0123456789abcdef"
NOTE = f"It is paid with {SECRET}."
KEPT = f"It is paid with {HIDDEN}."


async def _kept(office: Office) -> str:
    """Read every place where a note may have gone."""
    rows = await office.rows(
        "SELECT CAST(detail AS text) FROM journal UNION ALL "
        "SELECT CAST(evidence AS text) FROM attempts UNION ALL "
        "SELECT note FROM decisions UNION ALL SELECT note FROM grants"
    )
    return "\n".join(str(row) for (row,) in rows)


async def _check(office: Office) -> None:
    kept = await _kept(office)
    assert KEPT in kept
    assert SECRET not in kept


async def test_a_note_to_a_grant(office: Office) -> None:
    given = await give(office.engine, TENANT, ADA, Wish(OTTO, "approver", note=NOTE))
    assert isinstance(given, Given)
    await _check(office)


async def test_what_a_charge_rests_on(office: Office) -> None:
    claimed = await office.claim_run(await office.start_run())
    name = parse_charge(await lose(office.engine, claimed, 5 * CENT))
    assert name is not None
    said = Invoiced(name, CENT, NOTE)
    assert isinstance(await settle_invoiced(office.engine, TENANT, ADA, said), SettledNow)
    await _check(office)


@pytest.mark.parametrize("said", [Said.SENT, Said.SEND_AGAIN])
async def test_a_word_about_what_nobody_knows(office: Office, said: Said) -> None:
    """Where two have to say it, the first one's is a decision as well."""
    two = policy(approval={"quorum": 2, "decide_within_seconds": 600})
    await activate_policy(office.engine, two)
    operation = await office.proposed()
    await office.click(operation, RENE)
    await office.click(operation, SAM)
    claimed = await office.claim_operation(operation)
    opened = await office.open_one(claimed)
    assert isinstance(opened, Opened)
    assert await office.report(claimed, opened, unknown()) == "unknown"
    request = hashlib.sha256(mint_id().bytes).digest()
    place = (CHANNEL, f"ts-{operation}")
    word = Word(
        TENANT, operation, opened.attempt.id, said, RENE, NOTE, *place, request, "U0REVIEWER"
    )
    await settle(office.engine, [word])
    await _check(office)

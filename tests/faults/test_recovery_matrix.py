"""Every adapter through every fault of its provider, and through our own deaths, to the true end.

The page ``docs/recovery-matrix.md`` is what these stories came to. To write it anew:
``RECOVERY_MATRIX=write pytest -n 0 tests/faults/test_recovery_matrix.py``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from executor.store.address import asyncpg_dsn
from tests.faults.desk_scenarios import DESKS
from tests.faults.mail_scenarios import MAIL
from tests.support.desk_scene import desk_scene
from tests.support.mail_scene import mail_scene
from tests.support.matrix import Page, check, line, moments
from tests.support.mortal import Death
from tests.support.office import Office
from tests.support.story import Ending, Play, Scenario, Scene

MATRIX = Path(__file__).parents[2] / "docs" / "recovery-matrix.md"
WRITE = os.environ.get("RECOVERY_MATRIX") == "write"
TITLES = {
    "resend": "Mail: Resend (keyed)",
    "postmark": "Mail: Postmark (lookup)",
    "smtp": "Mail: SMTP (opaque)",
    "zendesk": "Desk: Zendesk (conditional)",
    "github": "Desk: GitHub Issues (lookup, checked and not guarded)",
}
HEAD = """# What recovery comes to

Each line is one thing that goes wrong, at the first attempt unless it says otherwise, played by
`tests/faults/test_recovery_matrix.py`: the real adapter against a double of its provider over HTTP
or SMTP, and then everything that our machines do by themselves until nothing is due any more. This
page is what they came to; the test fails where it differs.

"accepted" and "mails" count the mails that a provider took responsibility for, "closes" and "notes"
what a desk has taken from us. A mail or a close is never taken twice, and no mail before its close.
An operation is `succeeded` only where the ticket was closed and the mail accepted; `partial` (the
ticket is closed, the mail was not sent) only where no mail was; `failed`, `stale`, `expired` and
`withdrawn` only where neither was done (a note may stand); and `unknown` wherever nobody could find
out: then a person is asked.

"with one death" is the same story told again, once for each moment at which the worker can be
killed: before its first opening, and after each thing that it stores or sends (an opening, the
request, the report of its outcome, a conclusion, a decision of recovery, a search). Another worker
goes on from the record. Between two of these moments nothing is stored and nothing is sent, so that
one stands for both sides; three lines of each table play the near and the far side apart, and both
must end alike. Of what is done again and again, it dies in the first four times; of recovery's
steps in the first and the last. For GitHub's close, deaths begin after its note, and a
mail's own deaths are in the tables of mail and in the line "nothing". The desks' mails go to a
provider that takes keys and never fails, so that whatever stays unknown is the desk's. Not all of
these stories end as the undisturbed one: a death can turn an answer into a doubt, and time goes on
meanwhile.

**Tickets at the built-in desk** are closed in the transaction that records it: there is nothing to
be lost, and no line for it. The tables of mail close theirs there.
"""
_ENDING = "how that is learnt | with one death |"
MAIL_COLUMNS = f"| what goes wrong | accepted | ends as | attempts | searches | {_ENDING}"
DESK_COLUMNS = (
    f"| what goes wrong | notes | closes | mails | ends as | attempts | readings | {_ENDING}"
)
SCENARIOS: dict[str, list[Scenario[Any]]] = {**MAIL, **DESKS}
PAGE = Page(
    MATRIX,
    HEAD,
    {
        title: (
            MAIL_COLUMNS if section in MAIL else DESK_COLUMNS,
            [scenario.name for scenario in SCENARIOS[section]],
        )
        for section, title in TITLES.items()
    },
)
BOTH_SIDES = frozenset(
    {
        "nothing",
        "the connection drops after accepting",
        "a worker has died after recording the attempt",
    }
)
ROWS_OF_A_TEST = 6


def _shares() -> list[tuple[str, int]]:
    return [
        (section, first)
        for section, scenarios in SCENARIOS.items()
        for first in range(0, len(scenarios), ROWS_OF_A_TEST)
    ]


@pytest.fixture
async def raw(database_url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection for what is asked again and again."""
    connection = await asyncpg.connect(asyncpg_dsn(database_url))
    yield connection
    await connection.close()


def _scene(
    section: str, office: Office, raw: asyncpg.Connection[asyncpg.Record]
) -> AbstractAsyncContextManager[Scene]:
    if section in MAIL:
        return mail_scene(section, office, raw)
    return desk_scene(section, office, raw)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("section", "first"), _shares())
async def test_every_fault_and_every_death_ends_in_the_truth_and_in_the_checked_in_page(
    section: str, first: int, office: Office, raw: asyncpg.Connection[asyncpg.Record]
) -> None:
    stored = {} if WRITE else PAGE.lines()[TITLES[section]]
    for place, scenario in enumerate(SCENARIOS[section][first : first + ROWS_OF_A_TEST]):
        async with _scene(section, office, raw) as scene:
            row = await _told(scene, scenario, 10_000 + 1_000 * place)
        if WRITE:
            PAGE.keep(TITLES[section], scenario.name, row)
        else:
            assert stored[scenario.name] == row


async def _told(scene: Scene, scenario: Scenario[Any], first_number: int) -> str:
    """Play a scenario without a death and with each; returns its line."""
    play = Play(scene, scenario, first_number)
    told, passed = await play.untouched()
    check(scene, scenario, told, None)
    both = scenario.name in BOTH_SIDES
    deaths = moments(scene, scenario, told, passed, both_sides=both)
    endings = await play.killed(deaths)
    for death, ending in zip(deaths, endings, strict=True):
        check(scene, scenario, ending, death)
    if both:
        _assert_that_sides_agree(passed, dict(zip(deaths, endings, strict=True)))
    return line(scene, scenario, told, endings)


def _assert_that_sides_agree(passed: list[Death], endings: dict[Death, Ending]) -> None:
    """What lies between two points stores nothing and sends nothing: it may stand for both."""
    for far, near in zip(passed[1::2], passed[2::2], strict=False):
        if far in endings and near in endings:
            assert endings[far].truth == endings[near].truth, (far, near)


def test_the_checked_in_page_holds_these_stories_and_nothing_else() -> None:
    assert PAGE.text() == PAGE.spelled(PAGE.lines())
    for section, title in TITLES.items():
        assert list(PAGE.lines()[title]) == [scenario.name for scenario in SCENARIOS[section]]

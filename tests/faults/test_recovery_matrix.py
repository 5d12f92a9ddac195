"""Every adapter through every fault of its provider, and through our own deaths, to the true end.

The page ``docs/recovery-matrix.md`` is what these stories came to. To write it anew:
``RECOVERY_MATRIX=write pytest -n 0 tests/faults/test_recovery_matrix.py``; ``RECOVERY_MATRIX=all``
tells with deaths also what is alike without one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from executor.store.address import asyncpg_dsn
from tests.faults.desk_scenarios import DESKS, DESKS_ALIKE
from tests.faults.mail_scenarios import MAIL, MAIL_ALIKE
from tests.support.desk_scene import desk_scene
from tests.support.mail_scene import mail_scene
from tests.support.matrix import Page, Told, assert_alike, check, line, moments
from tests.support.office import Office
from tests.support.story import Play, Scenario, Scene

MATRIX = Path(__file__).parents[2] / "docs" / "recovery-matrix.md"
WRITE = os.environ.get("RECOVERY_MATRIX") == "write"
ALL = os.environ.get("RECOVERY_MATRIX") == "all"
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
mail's own deaths are in the tables of mail and in the line "nothing". Lines that nobody can tell
apart without a death (the same moments passed at the same times, the same recorded of each attempt,
the same taken outside; the test compares them) leave the same to whoever goes on after one, so that
one of them is told with deaths and the others say "as in"; `RECOVERY_MATRIX=all` tells those too,
and compares every ending. The desks' mails go to a
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
ALIKE: Mapping[str, Mapping[str, tuple[str, ...]]] = {**MAIL_ALIKE, **DESKS_ALIKE}
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


def _shares() -> list[tuple[str, tuple[str, ...]]]:
    """Share the scenarios out: by the names of those that are told with deaths."""
    shares: list[tuple[str, tuple[str, ...]]] = []
    for section, scenarios in SCENARIOS.items():
        alike = ALIKE[section]
        elsewhere = {name for names in alike.values() for name in names}
        names: tuple[str, ...] = ()
        for name in [s.name for s in scenarios if s.name not in elsewhere]:
            names += (name,)
            if sum(1 + len(alike.get(first, ())) for first in names) >= ROWS_OF_A_TEST:
                shares.append((section, names))
                names = ()
        if names:
            shares.append((section, names))
    return shares


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
@pytest.mark.parametrize(
    ("section", "names"), _shares(), ids=lambda share: share if isinstance(share, str) else share[0]
)
async def test_every_fault_and_every_death_ends_in_the_truth_and_in_the_checked_in_page(
    section: str, names: tuple[str, ...], office: Office, raw: asyncpg.Connection[asyncpg.Record]
) -> None:
    stored = {} if WRITE else PAGE.lines()[TITLES[section]]
    scenarios = {scenario.name: scenario for scenario in SCENARIOS[section]}
    numbers = itertools.count(10_000, 1_000)
    for first in names:
        told: Told | None = None
        for name in (first, *ALIKE[section].get(first, ())):
            async with _scene(section, office, raw) as scene:
                play = Play(scene, scenarios[name], next(numbers))
                other = await _told(play, with_deaths=told is None or ALL)
            deaths = list(other.deaths.values()) if told is None else first
            row = line(scene, scenarios[name], other.ending, deaths)
            if told is None:
                told = other
            else:
                assert_alike(told, other)
            if WRITE:
                PAGE.keep(TITLES[section], name, row)
            else:
                assert stored[name] == row


async def _told(play: Play[Any], *, with_deaths: bool) -> Told:
    """Play a scenario without a death and, if wanted, with each."""
    scene, scenario = play.scene, play.scenario
    ending, witness = await play.untouched()
    check(scene, scenario, ending, None)
    told = Told(ending, witness.passed, witness.times, {})
    if with_deaths:
        both = scenario.name in BOTH_SIDES
        deaths = moments(scene, scenario, ending, witness.passed, both_sides=both)
        for death, ended in zip(deaths, await play.killed(deaths), strict=True):
            check(scene, scenario, ended, death)
            told.deaths[death] = ended
        if both:
            _assert_that_sides_agree(told)
    return told


def _assert_that_sides_agree(told: Told) -> None:
    """What lies between two points stores nothing and sends nothing: it may stand for both."""
    endings = told.deaths
    for far, near in zip(told.passed[1::2], told.passed[2::2], strict=False):
        if far in endings and near in endings:
            assert endings[far].truth == endings[near].truth, (far, near)


def test_the_checked_in_page_holds_these_stories_and_nothing_else() -> None:
    assert PAGE.text() == PAGE.spelled(PAGE.lines())
    for section, title in TITLES.items():
        assert list(PAGE.lines()[title]) == [scenario.name for scenario in SCENARIOS[section]]


def test_what_is_alike_is_a_scenario_that_is_told_once() -> None:
    for section, alike in ALIKE.items():
        elsewhere = [name for names in alike.values() for name in names]
        assert len(set(elsewhere)) == len(elsewhere)
        assert not set(elsewhere) & set(alike)
        assert {*alike, *elsewhere} <= {scenario.name for scenario in SCENARIOS[section]}

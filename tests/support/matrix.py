"""The recovery matrix: where a worker may die in a story, what must hold of each, and its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executor.domain.effect import Capability
from executor.engine.failpoint import CALL, Commit, Side, point
from tests.support.mortal import Death
from tests.support.story import Ending, Scenario, Scene

ENDS = ("succeeded", "partial", "failed", "stale", "expired", "withdrawn", "unknown")
LOSE_AN_ANSWER = frozenset(
    {
        point(Commit.OPEN, Side.AFTER),
        point(CALL, Side.BEFORE),
        point(CALL, Side.AFTER),
        point(Commit.REPORT, Side.BEFORE),
    }
)
"""Where a death leaves an attempt of which nobody has reported anything."""

MOST_TIMES = 4
"""How often deaths are played at one point that is passed again and again."""

MOST_APART_SECONDS = 1.5
"""How far two times may lie apart that count as one: machines take moments of real time, too."""

POINTS_OF_A_PART = 6
"""What a part that nothing troubles passes: both sides of its opening, its call, its report."""


def moments(
    scene: Scene,
    scenario: Scenario[Any],
    told: Ending,
    passed: Sequence[Death],
    *,
    both_sides: bool,
) -> list[Death]:
    """Choose where workers die: once after each thing that was stored or sent, and at the start.

    Between the far side of one point and the near side of the next nothing is stored and nothing
    is sent, so that a death at either is the same; ``both_sides`` plays both. Of what is done again
    and again, the first times; of recovery's steps, which are counted, the first and the last.
    """
    if not both_sides:
        mailed = scene.outside_desk and told.parts["email.send"] == "applied"
        passed = passed[scenario.skips : -POINTS_OF_A_PART if mailed else None]
    last = {death.point: death.visit for death in passed}
    return [
        death
        for place, death in enumerate(passed)
        if (both_sides or place == 0 or death.point.endswith(Side.AFTER))
        and death.visit
        in ((1, last[death.point]) if _recovers(death) else range(1, MOST_TIMES + 1))
    ]


def _recovers(death: Death) -> bool:
    return death.point.startswith((Commit.RECOVER, Commit.RECORD_SEARCH))


def check(scene: Scene, scenario: Scenario[Any], ending: Ending, death: Death | None) -> None:
    """Assert what holds of every story: nothing twice, nothing false, and nobody left unasked."""
    done = {
        "email.send": ending.accepted,
        "ticket.close": ending.closes,
        "ticket.note": ending.notes,
    }
    about = f"{scenario.name}, death at {death}: {ending}"
    assert ending.status in ENDS, about
    assert ending.accepted <= min(ending.closes, 1), about
    assert max(ending.closes, ending.notes) <= 1 + scenario.repeats, about
    for kind, status in ending.parts.items():
        if status == "applied":
            assert done[kind] >= 1, about
        elif status != "unknown":
            assert status in ("planned", "skipped", "not_applied"), about
            assert done[kind] == 0, about
    match ending.status:
        case "succeeded":
            assert set(ending.parts.values()) == {"applied"}, about
        case "partial":
            assert (ending.closes > 0, ending.accepted) == (True, 0), about
        case "failed" | "stale" | "expired" | "withdrawn":
            assert (ending.closes, ending.accepted) == (0, 0), about
        case _:
            _check_doubt(scene, scenario, ending, death, done, about)


def _check_doubt(
    scene: Scene,
    scenario: Scenario[Any],
    ending: Ending,
    death: Death | None,
    done: dict[str, int],
    about: str,
) -> None:
    """Unknown is only what the provider could not tell, and then a person is asked."""
    doubtful = [kind for kind, status in ending.parts.items() if status == "unknown"]
    assert len(doubtful) == 1, about
    if scene.capability is Capability.OPAQUE:
        deaths = [d.point for d in (death, scenario.killed_at) if d is not None]
        assert scenario.loses or LOSE_AN_ANSWER & set(deaths), about
        return
    assert ending.asked is not None, about
    if scenario.learnable:
        assert done[doubtful[0]] == 0, about


@dataclass(frozen=True)
class Told:
    """A scenario as it was told: undisturbed, what was passed and when, and with each death."""

    ending: Ending
    passed: list[Death]
    times: list[float]
    deaths: dict[Death, Ending]


def assert_alike(first: Told, other: Told) -> None:
    """What nobody can tell apart without a death leaves the same to whoever goes on after one.

    Stored were the same moments at the same times, and of each attempt the same; the outside has
    taken the same. Where ``other`` was told with deaths too, each has ended as in ``first``.
    """
    assert other.ending == first.ending
    assert other.passed == first.passed
    for ours, theirs in zip(_since_the_first(other), _since_the_first(first), strict=True):
        assert abs(ours - theirs) < MOST_APART_SECONDS, (first.times, other.times)
    for death, ending in other.deaths.items():
        assert ending == first.deaths[death], death


def _since_the_first(told: Told) -> list[float]:
    return [time - told.times[0] for time in told.times]


def line(
    scene: Scene, scenario: Scenario[Any], told: Ending, deaths: Sequence[Ending] | str
) -> str:
    """Spell a scenario's line of the matrix; ``deaths`` may name the line that has them."""
    cells = [scenario.name]
    if scene.outside_desk:
        cells += [str(told.notes), str(told.closes)]
    cells += [
        str(told.accepted),
        told.status,
        str(len(told.tries)),
        str(told.lookups),
        _learnt(scene, told),
        f"as in “{deaths}”" if isinstance(deaths, str) else _summed(deaths),
    ]
    return f"| {' | '.join(cells)} |"


def _summed(deaths: Sequence[Ending]) -> str:
    ended = Counter(ending.status for ending in deaths)
    return ", ".join(f"{ended[status]} {status}" for status in ENDS if ended[status])


_REASONS = {
    "refused_by_provider": "the provider's refusal",
    "version_changed": "the ticket has changed",
    "desk_unavailable": "the desk did not tell for as long as it could be waited for",
    "time_to_use_over": "the desk did not tell for as long as the approval held",
    "cancelled": "the run was cancelled",
    "ticket_closed": "the ticket is closed",
}
_AGAIN = {
    Capability.KEYED: "the repeat under its key",
    Capability.CONDITIONAL: "the repeat at the same version",
}


def _learnt(scene: Scene, told: Ending) -> str:
    if told.status == "unknown":
        return f"a person is asked: {told.asked or 'the provider tells nothing afterwards'}"
    if told.status != "succeeded":
        assert told.reason is not None
        return _REASONS.get(told.reason, told.reason)
    if any(t.found_by_search and t.status == "applied" for t in told.tries):
        return "a reading" if scene.outside_desk else "a search"
    if any(t.status == "unknown" for t in told.tries):
        return _AGAIN[scene.capability]
    tried = Counter(t.kind for t in told.tries)
    return "the retry" if max(tried.values()) > 1 else "the answer"


class Page:
    """The checked-in matrix: a head, and for each section a title, its columns and its lines."""

    def __init__(self, path: Path, head: str, sections: dict[str, tuple[str, list[str]]]) -> None:
        """``sections`` hold, by title, the columns and the names of their lines, in order."""
        self._path, self._head, self._sections = path, head, sections

    def lines(self) -> dict[str, dict[str, str]]:
        """Read the lines of each section by what goes wrong."""
        text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        found: dict[str, dict[str, str]] = {}
        for section in text.split("\n## ")[1:]:
            title, _, rest = section.partition("\n")
            table = [row for row in rest.splitlines() if row.startswith("| ")][1:]
            found[title] = {row.split(" | ")[0].removeprefix("| "): row for row in table}
        return found

    def keep(self, title: str, name: str, row: str) -> None:
        """Write one line anew, with all others as they are."""
        lines = self.lines()
        lines.setdefault(title, {})[name] = row
        self._path.write_text(self.spelled(lines), encoding="utf-8")

    def spelled(self, lines: dict[str, dict[str, str]]) -> str:
        """Spell the page with these lines, in its own order."""
        parts = [self._head]
        for title, (columns, names) in self._sections.items():
            known = lines.get(title, {})
            table = [columns, _ruler(columns), *(known[n] for n in names if n in known)]
            parts.append(f"## {title}\n\n" + "\n".join(table) + "\n")
        return "\n".join(parts)

    def text(self) -> str:
        """Read the page as it is."""
        return self._path.read_text(encoding="utf-8")


def _ruler(columns: str) -> str:
    return "|---" * (columns.count("|") - 1) + "|"

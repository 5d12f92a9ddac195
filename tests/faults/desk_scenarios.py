"""What goes wrong at the outside desks, fault by fault.

Changes are counted as the desk gets them: Zendesk's first is the close; GitHub's first is the note,
its second the close.
"""

from __future__ import annotations

from collections.abc import Callable

from bot.sandbox.desk_faults import DeskFault
from tests.support.desk_scene import DeskScene
from tests.support.matrix import POINTS_OF_A_PART
from tests.support.mortal import Death
from tests.support.story import Scenario

Row = Scenario[DeskScene]

FOR_GOOD = 400
_POINTS_OF_THE_NOTE = POINTS_OF_A_PART - 1
"""What is told of the untroubled note before GitHub's close; the last is where its own begins."""


class _At:
    """Rows about one change, named after it."""

    def __init__(self, change: int, what: str) -> None:
        self._change, self._what = change, what

    def row(
        self,
        name: str,
        plan: Callable[[DeskScene, int], None],
        *,
        learnable: bool = True,
        repeats: bool = False,
        hangs: bool = False,
        killed_at: Death | None = None,
    ) -> Row:
        """Plan something for this change."""
        return Row(
            f"{self._what}: {name}" if self._what else name,
            lambda scene: plan(scene, self._change),
            learnable=learnable,
            repeats=repeats,
            hangs=hangs,
            killed_at=killed_at,
            skips=0 if killed_at else (self._change - 1) * _POINTS_OF_THE_NOTE,
        )

    def fails(
        self, name: str, fault: DeskFault, *, hangs: bool = False, repeats: bool = False
    ) -> Row:
        """Let it fail once."""
        return self.row(name, lambda scene, at: scene.fail(fault, at), hangs=hangs, repeats=repeats)

    def faults(self) -> list[Row]:
        """Whatever can happen to the request."""
        return [
            self.fails("403 in the desk's own words", DeskFault.REFUSED),
            self.fails("a stranger's 403", DeskFault.STRANGER),
            self.fails("409 although nothing has changed", DeskFault.COLLISION),
            self.fails("429 with Retry-After", DeskFault.LIMITED),
            self.fails("429 without Retry-After", DeskFault.LIMITED_BARE),
            self.row(
                "429, for good",
                lambda scene, at: scene.fail_always(DeskFault.LIMITED, at),
            ),
            self.fails("a proxy's 502 before accepting", DeskFault.ERROR_BEFORE),
            self.fails("500 after accepting", DeskFault.ERROR_AFTER),
            self.fails("the connection drops before accepting", DeskFault.RESET_BEFORE),
            self.fails("the connection drops after accepting", DeskFault.RESET_AFTER),
            self.fails("no answer, never accepted", DeskFault.HANGS_BEFORE, hangs=True),
            self.fails("no answer after accepting", DeskFault.HANGS_AFTER, hangs=True),
            self.row("no answer, accepted after we gave up", _lands_in_time, hangs=True),
            self.row("lost, and accepted after a reading", _lands_late),
            self.fails("2xx with a cut body", DeskFault.CUT_BODY),
            self.fails("sent twice by somebody on the way", DeskFault.REPEATED, repeats=True),
        ]

    def faults_of_repeats(self) -> list[Row]:
        """Whatever can happen to it again and again, where it is sent again in doubt."""
        return [
            self.row(
                "409 although nothing has changed, every time",
                lambda scene, at: scene.fail_always(DeskFault.COLLISION, at),
            ),
            self.row(
                "the connection drops before accepting, every time",
                lambda scene, at: scene.fail_always(DeskFault.RESET_BEFORE, at),
            ),
        ]

    def people(self) -> list[Row]:
        """Whatever somebody else does around it."""
        return [
            self.row("somebody changes the ticket while it is on its way", _changed_in_flight),
            self.row(
                "somebody closes the ticket while it is on its way",
                _closed_in_flight,
                # GitHub takes the close of a closed issue, and shows who closed it: somebody else.
                learnable=self._change == 1,
            ),
            self.row("lost after accepting, then somebody changes the ticket", _lost_and_changed),
            self.row("lost before accepting, then somebody changes the ticket", _never_and_changed),
            self.row("lost before accepting, then somebody closes the ticket", _never_and_closed),
            self.row("somebody changes the ticket after it was done", _changed_after),
        ]

    def absences(self) -> list[Row]:
        """Whatever a desk that is away does to it."""
        return [
            self.row("done, then the desk is away for a while", _done_and_away),
            self.row(
                "done, then the desk is away for good", _done_and_away_for_good, learnable=False
            ),
            self.row("lost after accepting, then it cannot be read twice", _lost_and_away),
            self.row(
                "lost after accepting, then it can never be read",
                _lost_and_away_for_good,
                learnable=False,
            ),
        ]

    def deaths(self) -> list[Row]:
        """A worker that has died before the story begins to be told."""
        return [
            self.row(f"a worker has died {words}", _nothing, killed_at=Death(at, self._change))
            for words, at in (
                ("after recording the attempt", "open.after"),
                ("after the answer", "call.after"),
            )
        ]


def _nothing(scene: DeskScene, at: int) -> None:
    return None


def _lands_in_time(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.HANGS_BEFORE, at, then=lambda: scene.release_after(0.5))


def _lands_late(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.LATE, at, then=lambda: scene.land_after(3.0))


def _changed_in_flight(scene: DeskScene, at: int) -> None:
    scene.fail(None, at, then=scene.somebody_writes)


def _closed_in_flight(scene: DeskScene, at: int) -> None:
    scene.fail(None, at, then=scene.somebody_closes)


def _lost_and_changed(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.RESET_AFTER, at, then=lambda: scene.later(0.5, scene.somebody_writes))


def _never_and_changed(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.RESET_BEFORE, at, then=lambda: scene.later(0.5, scene.somebody_writes))


def _never_and_closed(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.RESET_BEFORE, at, then=lambda: scene.later(0.5, scene.somebody_closes))


def _changed_after(scene: DeskScene, at: int) -> None:
    scene.fail(None, at, then=lambda: scene.later(0.0, scene.somebody_writes))


def _done_and_away(scene: DeskScene, at: int) -> None:
    scene.fail(None, at, then=lambda: scene.away(3))


def _done_and_away_for_good(scene: DeskScene, at: int) -> None:
    scene.fail(None, at, then=lambda: scene.away(FOR_GOOD))


def _lost_and_away(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.RESET_AFTER, at, then=lambda: scene.away(2))


def _lost_and_away_for_good(scene: DeskScene, at: int) -> None:
    scene.fail(DeskFault.RESET_AFTER, at, then=lambda: scene.away(FOR_GOOD))


def _lost_and_cancelled(fault: DeskFault) -> Callable[[DeskScene], None]:
    return lambda scene: scene.fail(fault)


BEFORE = [
    Row("nothing"),
    Row("somebody changes the ticket before the opening", lambda scene: scene.somebody_writes()),
    Row("somebody closes the ticket before the opening", lambda scene: scene.somebody_closes()),
    Row("the desk is away for a while before the opening", lambda scene: scene.away(3)),
    Row("the desk is away for good before the opening", lambda scene: scene.away(FOR_GOOD)),
]
CANCELLED = [
    Row(
        "lost after accepting, and then the run is cancelled",
        _lost_and_cancelled(DeskFault.RESET_AFTER),
        DeskScene.cancel,
        alone=True,
    ),
    Row(
        "lost before accepting, and then the run is cancelled",
        _lost_and_cancelled(DeskFault.RESET_BEFORE),
        DeskScene.cancel,
        alone=True,
    ),
]
_CLOSE, _NOTE, _AFTER_THE_NOTE = _At(1, ""), _At(1, "note"), _At(2, "close")
ZENDESK = [
    *BEFORE,
    *_CLOSE.faults(),
    *_CLOSE.faults_of_repeats(),
    *_CLOSE.people(),
    *_CLOSE.absences(),
    *CANCELLED,
    *_CLOSE.deaths(),
]
GITHUB = [
    *BEFORE,
    *CANCELLED,
    *_NOTE.faults(),
    *_NOTE.people(),
    *_NOTE.absences(),
    *_NOTE.deaths(),
    *_AFTER_THE_NOTE.faults(),
    *_AFTER_THE_NOTE.people(),
    *_AFTER_THE_NOTE.absences(),
    *_AFTER_THE_NOTE.deaths(),
]
DESKS = {"zendesk": ZENDESK, "github": GITHUB}

# By the scenario that is told with deaths: those that nobody can tell apart from it without one.
DESKS_ALIKE = {
    "zendesk": {
        "nothing": ("2xx with a cut body",),
        "the connection drops before accepting": (
            "a stranger's 403",
            "409 although nothing has changed",
            "429 without Retry-After",
            "a proxy's 502 before accepting",
            "no answer, never accepted",
        ),
        "the connection drops after accepting": (
            "500 after accepting",
            "no answer after accepting",
        ),
    },
    "github": {
        "note: the connection drops before accepting": (
            "note: a proxy's 502 before accepting",
            "note: no answer, never accepted",
        ),
        "note: the connection drops after accepting": (
            "note: 500 after accepting",
            "note: no answer after accepting",
        ),
        "close: the connection drops before accepting": (
            "close: a stranger's 403",
            "close: 409 although nothing has changed",
            "close: a proxy's 502 before accepting",
        ),
        "close: the connection drops after accepting": ("close: 500 after accepting",),
    },
}

"""The one tree of errors that the executor raises; refusals that a person reads are values, not
errors.

    ExecutorError
    ├── Conflict                another transaction was first, or we cannot know whether ours was
    │   ├── StaleEpoch          the lease was lost: somebody else drives this now
    │   ├── LostRace            a row was not in the state that the decision was made on
    │   ├── DuplicateKey        the database refused a second row where at most one may be
    │   └── CommitUnknown       COMMIT was sent and its answer was lost
    ├── DatabaseUnavailable     nothing was committed; try again
    ├── InvalidContent          content that cannot be frozen into an intent
    └── Corrupt                 a stored record breaks an invariant
        └── ForbiddenByDatabase a rule of the schema refused the change

Database errors become these by constraint name or SQLSTATE in ``executor.store.database``, nowhere
else. Sentences for people are made in ``bot/reason_text.py``.
"""

from __future__ import annotations


class ExecutorError(Exception):
    """The root of every error that the executor raises on purpose."""


class Conflict(ExecutorError):
    """Another transaction was first, or may have been."""


class StaleEpoch(Conflict):
    """The lease that this work was claimed under is no longer ours."""

    def __init__(self, held: int, current: int) -> None:
        super().__init__(f"the lease was lost: epoch {held} was held, {current} is current")
        self.held = held
        self.current = current


class LostRace(Conflict):
    """A row was not in the state that the decision was made on, so nothing was changed."""

    def __init__(self, statement: str, missing: int) -> None:
        super().__init__(f"{statement}: {missing} row(s) had moved on")
        self.statement = statement
        self.missing = missing


class DuplicateKey(Conflict):
    """The database refused a second row where at most one may be."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f"refused by {constraint}")
        self.constraint = constraint


class CommitUnknown(Conflict):
    """COMMIT was sent and its answer was lost: read each item back before doing anything."""


class DatabaseUnavailable(ExecutorError):
    """The database could not be reached or went away before COMMIT; nothing was committed."""


class InvalidContent(ExecutorError):
    """A field holds something that cannot be shown, approved and sent unchanged.

    ``field`` names the field as the proposer wrote it, ``remedy`` says what to write instead.
    """

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}. {remedy}")
        self.field = field
        self.problem = problem
        self.remedy = remedy


class Corrupt(ExecutorError):
    """A stored record breaks an invariant; somebody has to look before work goes on."""


class ForbiddenByDatabase(Corrupt):
    """A rule of the schema (a CHECK, an edge, a reference) refused the change; nothing was kept."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f"forbidden by {constraint}")
        self.constraint = constraint

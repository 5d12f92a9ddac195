"""An exported journal is checked with nothing but its file: to the first line that does not fit.

Whoever controls the file can write another one that fits. Its fingerprint, kept elsewhere, tells
the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from executor.domain.audit_file import ChainEnd, Header, Misspelt, Unusable, read_entry, read_header
from executor.domain.audit_rules import Story
from executor.domain.ids import RunId
from executor.domain.journal import FIRST_HASH, JournalEntry


@dataclass(frozen=True, slots=True)
class Whole:
    """Every line fits."""

    header: Header
    entries: int


@dataclass(frozen=True, slots=True)
class Broken:
    """The first line that does not fit, which entry of whose chain belongs there, and why not.

    Without a subject it is the header.
    """

    line: int
    subject: RunId | None
    position: int | None
    problem: str


def audit(lines: Iterable[bytes]) -> Whole | Broken:
    """Check a file line by line; raises ``Unusable`` for what is no file of an audit."""
    numbered = enumerate(lines, start=1)
    _, first = next(numbered, (1, b""))
    if not first:
        raise Unusable("it is empty")
    try:
        header = read_header(first)
    except Misspelt as error:
        return Broken(1, None, None, str(error))
    walk, last = _Walk(header), 1
    for number, line in numbered:
        last = number
        problem = walk.take(line)
        if problem is not None:
            return walk.broken(number, problem)
    problem = walk.finish()
    if problem is not None:
        return walk.broken(last + 1, problem)
    return Whole(header, last - 1)


@dataclass(slots=True)
class _Walk:
    """Where the reading stands: in which chain, and after which of its entries."""

    header: Header
    place: int = -1
    position: int = 0
    previous: bytes = FIRST_HASH
    story: Story | None = field(default=None, repr=False)

    @property
    def chain(self) -> ChainEnd | None:
        """The chain that is read; ``None`` before the first."""
        return self.header.chains[self.place] if self.place >= 0 else None

    @property
    def following(self) -> ChainEnd | None:
        """The chain that comes after it, if any."""
        return next(iter(self.header.chains[self.place + 1 : self.place + 2]), None)

    @property
    def complete(self) -> bool:
        """Whether the chain has been read to its head."""
        return self.chain is None or self.position >= self.chain.position

    def broken(self, line: int, problem: str) -> Broken:
        """Say which entry belongs into a line."""
        if self.complete and self.following is not None:
            return Broken(line, self.following.subject, 1, problem)
        subject = None if self.chain is None else self.chain.subject
        return Broken(line, subject, self.position + 1, problem)

    def take(self, line: bytes) -> str | None:
        """Read the next line; says why it does not fit here."""
        try:
            entry, stored = read_entry(line)
        except Misspelt as error:
            return str(error)
        if entry.hash != stored:
            return "what it says does not give its hash: one of them was changed"
        if entry.tenant_id != self.header.tenant_id:
            return "it is of another tenant"
        problem = self._enter(entry) or self._follow(entry, stored)
        if problem is not None:
            return problem
        assert self.story is not None
        problem = self.story.problem(entry)
        if problem is None:
            self.position, self.previous = entry.position, stored
        return problem

    def finish(self) -> str | None:
        """Say what is missing after the last line."""
        if self.complete and self.following is None:
            return None
        return f"the file ends here, and {self._missing()}"

    def _enter(self, entry: JournalEntry) -> str | None:
        """Go on to the next chain where this one is read; says why the entry is of neither."""
        if not self.complete:
            assert self.chain is not None
            if entry.subject == self.chain.subject:
                return None
            if self.following is not None and entry.subject == self.following.subject:
                return f"another chain begins, and {self._missing()}"
            return "it is of another subject"
        if self.following is None or entry.subject != self.following.subject:
            if self.chain is not None and entry.subject == self.chain.subject:
                return f"it is one too many: the stored head ends the chain at {self.position}"
            return "it is of another subject"
        self.place += 1
        self.position, self.previous = 0, FIRST_HASH
        self.story = Story(self.header.tenant_id, entry.subject)
        return None

    def _follow(self, entry: JournalEntry, stored: bytes) -> str | None:
        """Say why this is not the next entry of its chain."""
        assert self.chain is not None
        wanted = self.position + 1
        if entry.position > wanted:
            return f"entry {wanted} is missing before it, or they were put in another order"
        if entry.position < wanted:
            return f"entry {wanted} belongs here, and it is entry {entry.position} once more"
        if entry.previous_hash != self.previous:
            return "it does not follow the entry before it: one of them was changed"
        if wanted == self.chain.position and stored != self.chain.hash:
            return "it is not the entry with which the stored head ends the chain"
        return None

    def _missing(self) -> str:
        end = self.following if self.complete else self.chain
        assert end is not None
        done = 0 if self.complete else self.position
        return f"entries {done + 1} to {end.position} of {end.subject} are missing"

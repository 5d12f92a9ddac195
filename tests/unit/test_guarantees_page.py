"""The page of guarantees names only what exists, and promises what the adapters declare.

``GUARANTEES=write pytest tests/unit/test_guarantees_page.py`` writes its table of providers anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from executor.domain.declaration import Declaration
from executor.domain.effect import Capability
from executor.engine.promises import LONGEST_SENTENCE, guard, promise, tell
from tests.support.declarations import DECLARATIONS, table

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "guarantees.md"
BEGIN, END = "<!-- providers: begin -->\n", "\n<!-- providers: end -->"
PAGE = FILE.read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| G\d", line)]


def _defined_tests() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        found |= set(re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE))
    return found


def test_every_guarantee_has_a_row_in_order() -> None:
    assert [row.split("|")[1].strip() for row in ROWS] == [f"G{n}" for n in range(1, 23)]


def test_every_guarantee_names_a_test_that_exists() -> None:
    defined = _defined_tests()
    for row in ROWS:
        proofs = re.findall(r"`(test_\w+)`", row)
        assert proofs, row
        assert not set(proofs) - defined, set(proofs) - defined


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`((?:bot|executor|templates|tests)/[\w/.]+)`", PAGE)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_table_of_providers_says_what_the_adapters_declare() -> None:
    head, _, rest = FILE.read_text(encoding="utf-8").partition(BEGIN)
    written, _, tail = rest.partition(END)
    assert tail, "the page has its two markers"
    if os.environ.get("GUARANTEES") == "write":
        FILE.write_text(f"{head}{BEGIN}{table()}{END}{tail}", encoding="utf-8")
        return
    assert written == table()


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda d: d.name)
def test_a_card_has_room_for_the_whole_promise(declaration: Declaration) -> None:
    assert 0 < len(promise(declaration)) <= LONGEST_SENTENCE
    assert declaration.name in promise(declaration)
    assert declaration.name in guard(declaration)


def test_what_is_declared_otherwise_is_promised_otherwise() -> None:
    keyed = next(d for d in DECLARATIONS if d.capability is Capability.KEYED)
    searched = next(d for d in DECLARATIONS if d.capability is Capability.LOOKUP)
    assert "24 h" in promise(keyed)
    shorter = tell(replace(keyed, key_window=timedelta(minutes=90)))
    assert "90 minutes" in shorter.card
    assert "90 minutes" in shorter.limit
    assert "after about 5 minutes" in promise(searched)
    slow = replace(searched, lookup_lag=timedelta(hours=2))
    assert "after about 2 h" in promise(slow)
    at_once = replace(searched, lookup_lag=timedelta(0))
    assert ("at once" in promise(at_once), tell(at_once).limit[:9]) == (True, "lag: none")


@pytest.mark.parametrize("capability", [Capability.OPAQUE, Capability.LOOKUP])
def test_a_window_without_keys_is_no_declaration(capability: Capability) -> None:
    keyed = next(d for d in DECLARATIONS if d.capability is Capability.KEYED)
    with pytest.raises(ValueError, match="belongs to"):
        replace(keyed, capability=capability)

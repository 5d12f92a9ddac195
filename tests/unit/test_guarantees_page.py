"""The page of guarantees names only what exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| G")]


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

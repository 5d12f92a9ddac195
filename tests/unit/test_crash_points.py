"""Every commit is killed at somewhere: in the crash matrix, or in a test that is named for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.sandbox import crash_points
from bot.sandbox.crash_points import CRASH_PLANS, UNREACHED
from executor.engine.failpoint import CALL, Commit, Side, point

ROOT = Path(__file__).resolve().parents[2]
PLANNED = {plan.point for plan in CRASH_PLANS}


@pytest.mark.parametrize("commit", Commit)
def test_a_commit_is_either_in_the_crash_matrix_on_both_sides_or_said_to_be_unreached(
    commit: Commit,
) -> None:
    planned = [point(commit, side) in PLANNED for side in Side]
    assert planned == [commit not in UNREACHED] * len(Side)


def test_the_outside_call_is_in_the_crash_matrix_on_both_sides() -> None:
    assert all(point(CALL, side) in PLANNED for side in Side)


@pytest.mark.parametrize("commit", UNREACHED)
def test_a_commit_that_no_demo_reaches_has_a_reason_and_a_test_among_those_named(
    commit: Commit,
) -> None:
    assert UNREACHED[commit]
    source = Path(crash_points.__file__).read_text(encoding="utf-8")
    named = [ROOT / name for name in re.findall(r"``(tests/[a-z_/]+\.py)``", source)]
    assert named
    dies = re.compile(rf"Commit\.{commit.name}\b|\"{commit.value}[.\"]")
    assert any(dies.search(file.read_text(encoding="utf-8")) for file in named), commit

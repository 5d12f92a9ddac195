"""However a run went, its message fits into Slack and says nothing in others' words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.card_progress import MOST_STEPS
from bot.cards import CardPainter, card_environment, text_length
from bot.sandbox.blocks import over_budget, validate_message
from executor.domain.effect import EffectKind, EffectStatus
from executor.domain.operation import OperationStatus
from executor.domain.policy import ProgressStyle
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from executor.engine import tools
from executor.engine.card_record import RunRecord
from executor.engine.last_account import AccountedOperation
from executor.engine.progress_record import (
    FailedCallStep,
    Money,
    Progress,
    QuestionStep,
    Step,
    ToolStep,
)
from tests.support.card_reading import OWN_TYPES, nodes, outside_literals, types
from tests.support.hostile import texts
from tests.support.records import NONCE, NOW, U_APP, run_record

PAINTER = CardPainter(card_environment())
MARK = "§§"
TIMES = st.integers(0, 10_000).map(lambda minutes: NOW + timedelta(minutes=minutes))
NUMBERS = st.integers(1, 10**18)
WRITTEN = texts.map(lambda text: f"{MARK}{text}")
OPERATIONS = st.tuples(NUMBERS, st.sampled_from(OperationStatus))

STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        ToolStep,
        tool=st.sampled_from([t.name for t in tools.TOOLS]) | WRITTEN,
        at=TIMES,
        ticket=st.from_regex(r"[0-9]{4}", fullmatch=True) | WRITTEN,
        is_answered=st.booleans(),
        refused=st.none() | st.sampled_from(Reason),
        found=st.none() | st.tuples(st.integers(0, 10), st.booleans()),
        operation=st.none() | OPERATIONS,
    ),
    st.builds(
        QuestionStep,
        operation=NUMBERS,
        by=st.just(U_APP),
        at=TIMES,
        is_answered=st.none() | st.booleans(),
    ),
    st.builds(FailedCallStep, at=TIMES),
)
ACCOUNTED = st.builds(
    AccountedOperation,
    number=NUMBERS,
    status=st.sampled_from(OperationStatus),
    ticket=st.from_regex(r"[0-9]{0,40}", fullmatch=True) | WRITTEN,
    effects=st.lists(
        st.tuples(st.sampled_from(EffectKind), st.sampled_from(EffectStatus)), max_size=4
    ).map(tuple),
    of_run=st.none() | NUMBERS,
)
RUNS = st.builds(
    lambda steps, spent, status, reason, operations, accounted, style: run_record(
        progress=Progress(tuple(steps), Money(spent, 2_000_000)),
        status=status,
        reason=reason,
        operations=tuple(operations),
        accounted=tuple(accounted),
        style=style,
    ),
    st.lists(STEPS, max_size=2 * MOST_STEPS),
    st.integers(0, 10**12),
    st.sampled_from(RunStatus),
    st.none() | st.sampled_from(Reason),
    st.lists(OPERATIONS, max_size=15),
    st.lists(ACCOUNTED, max_size=40),
    st.sampled_from(ProgressStyle),
)


@given(RUNS)
def test_any_run_is_drawn_whole_within_what_slack_takes(record: RunRecord) -> None:
    for style in ProgressStyle:
        drawing = PAINTER.draw(replace(record, style=style), render_no=1, nonce=NONCE)
        blocks = [dict(block) for block in drawing.blocks]
        assert validate_message(blocks) == []
        assert not over_budget(blocks)
        assert text_length(drawing.blocks) <= 9_000
        assert types(blocks) <= OWN_TYPES
        assert MARK not in outside_literals(blocks)
        shown = [n for n in nodes(blocks) if n.get("type") == "task_card"]
        assert len(shown) <= MOST_STEPS + 1
        assert drawing.holds_plan == bool(shown)


@given(RUNS)
def test_drawn_plain_no_run_needs_what_a_workspace_may_not_know(record: RunRecord) -> None:
    drawing = PAINTER.draw(record, render_no=1, nonce=NONCE, plain=True)
    assert not drawing.holds_plan
    assert validate_message([dict(block) for block in drawing.blocks]) == []

"""Cards: what is stored about an operation or a run, drawn as Slack's blocks.

A card is a view of the record and never the record. It shows everything that an approval would
bind, or Approve is not on it. What others wrote stands in literal text alone; ``mrkdwn`` is not
used at all. One record drawn twice gives one view digest. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import cast
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bot.agent_answers import end_items, request_items, request_text
from bot.ask_origin import AskOrigin
from bot.button_value import ButtonValue
from bot.card_buttons import About, ButtonSpec, Extent, buttons_of, in_a_row, may_approve
from bot.card_compensation import DECIDE, Verbs
from bot.card_content import (
    IN_BRIEF,
    IN_FULL,
    ON_A_CARD,
    OperationView,
    content,
    in_chunks,
    in_room,
    shortened,
    title_of,
)
from bot.card_nudge import nudge_items, nudge_text
from bot.card_parts import Item, length
from bot.card_question import answer_text, answer_view
from bot.card_run import run_view
from bot.card_warning import warning_items, warning_text
from bot.edit_form import EditForm
from bot.edit_origin import EditOrigin
from bot.home import HomeView
from bot.operation_value import choice_value, operation_value
from bot.pending_list import pending_view
from bot.settle_value import SettleValue
from bot.state_text import operation_state, run_state
from bot.word_form import word_form
from bot.word_origin import WordOrigin
from executor.domain.ids import TenantId, operation_label, run_label
from executor.domain.payloads import JsonObject, JsonValue, digest
from executor.engine.card_record import CardRecord, OperationRecord, RunRecord, WarningRecord
from executor.engine.nudge_record import NudgeRecord
from executor.engine.pending import Pending
from executor.engine.question_record import QuestionRecord
from executor.engine.request_record import RequestRecord

MOST_TEXT = 9_000
"""Characters of all blocks of one message. Slack refuses somewhere above 11,000 (undocumented)."""

MOST_VIEW_BLOCKS = 100
MOST_VIEW_BYTES = 240_000
"""Bytes of a modal; Slack refuses 250 kB (``view_too_large``)."""

_NOT_SEEN = frozenset({"block_id", "value"})
_SEEN_TEXTS = frozenset({"text", "fallback", "title", "confirm", "deny"})

_IN_FULL_VIEW = frozenset({"reject", "ask"})
"""What a full view offers beside the approval that submitting it is."""

_TOO_LONG_FOR_A_CARD = (
    "This is too long for a card: parts are left out above. Read all of it before you approve."
)
_TOO_LONG_FOR_SLACK = (
    "This is too long to be shown in full in Slack, so it cannot be approved here. "
    "Follow the link in our direct message, if one came; else reject it and ask for a shorter one."
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawing of a card; ``text`` is the notification that stands in for the blocks."""

    blocks: list[JsonObject]
    text: str
    view_digest: bytes
    approvable: bool
    needs_full_view: bool

    @property
    def holds_plan(self) -> bool:
        """Whether it has a block that not every workspace knows."""
        return any(block.get("type") == "plan" for block in self.blocks)


@cache
def card_environment() -> Environment:
    """Return the environment that cards are drawn in; its templates are compiled once."""
    return ImmutableSandboxedEnvironment(
        loader=PackageLoader("templates", "slack"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def view_digest(blocks: Sequence[JsonObject]) -> bytes:
    """Digest what a person sees of some blocks: without their ids and the buttons' values."""
    return digest([_seen(block) for block in blocks])


def text_length(node: JsonValue) -> int:
    """Count the characters of everything that can be read in some blocks."""
    if isinstance(node, Mapping):
        own = sum(
            length(value)
            for key, value in node.items()
            if key in _SEEN_TEXTS and isinstance(value, str)
        )
        return own + sum(text_length(v) for v in node.values() if not isinstance(v, str))
    if isinstance(node, Sequence) and not isinstance(node, str):
        return sum(text_length(item) for item in node)
    return 0


class CardPainter:
    """Draws cards and modals; holds the compiled templates and nothing else."""

    def __init__(self, environment: Environment) -> None:
        self._operation = environment.get_template("operation.json.j2")
        self._run = environment.get_template("run.json.j2")
        self._full_view = environment.get_template("full_view.json.j2")
        self._reject_reason = environment.get_template("reject_reason.json.j2")
        self._word = environment.get_template("word.json.j2")
        self._ask = environment.get_template("ask.json.j2")
        self._nudge = environment.get_template("nudge.json.j2")
        self._request = environment.get_template("request.json.j2")
        self._answer = environment.get_template("answer.json.j2")
        self._pending = environment.get_template("pending.json.j2")
        self._home = environment.get_template("home.json.j2")
        self._edit = environment.get_template("edit.json.j2")

    def draw(
        self, record: CardRecord, *, render_no: int, nonce: UUID, plain: bool = False
    ) -> Drawing:
        """Draw a card; the ids of its blocks and the values of its buttons carry the nonce.

        Drawn ``plain`` it has no block that a workspace may not know.
        """
        if isinstance(record, RequestRecord):
            return self._draw_request(record, request_items(record), record.id, render_no, nonce)
        if isinstance(record, RunRecord):
            asked = record.request
            if asked is not None and asked.operation is not None:
                items = end_items(asked, asked.operation)
                return self._draw_request(asked, items, record.id, render_no, nonce)
            blocks = _loads_blocks(self._run.render(card=run_view(record, plain=plain)))
            text = f"{run_label(record.number)}: {run_state(record.status)}"
            return _drawing(_named(blocks, record.id, render_no, nonce), text, False, False)
        if isinstance(record, QuestionRecord):
            blocks = _loads_blocks(self._answer.render(card=answer_view(record)))
            named = _named(blocks, record.id, render_no, nonce)
            return _drawing(named, answer_text(record), False, False)
        if isinstance(record, WarningRecord):
            blocks = _loads_blocks(self._nudge.render(items=warning_items(record)))
            named = _named(blocks, record.id, render_no, nonce)
            return _drawing(named, warning_text(record), False, False)
        if isinstance(record, NudgeRecord):
            blocks = _loads_blocks(self._nudge.render(items=nudge_items(record)))
            named = _named(blocks, record.id, render_no, nonce)
            return _drawing(named, nudge_text(record), False, False)
        blocks, extent = self._operation_blocks(record, nonce)
        text = (
            f"{operation_label(record.number)} of {run_label(record.run_number)}: "
            f"{operation_state(record.status)}"
        )
        may_decide, complete = may_approve(record), extent is not Extent.PARTS
        return _drawing(
            _named(blocks, record.id, render_no, nonce),
            text,
            may_decide and complete,
            may_decide and not complete,
        )

    def _draw_request(
        self,
        record: RequestRecord,
        items: Sequence[Item],
        subject: UUID,
        render_no: int,
        nonce: UUID,
    ) -> Drawing:
        blocks = _loads_blocks(self._request.render(items=items))
        named = _named(blocks, subject, render_no, nonce)
        return _drawing(named, request_text(record), False, False)

    def draw_full_view(self, record: OperationRecord, *, nonce: UUID) -> JsonObject:
        """Draw the modal with everything in full; it can be submitted only where all of it fits."""
        value = button_value(record, nonce).encode()
        buttons = [b for b in buttons_of(record) if b.action_id in _IN_FULL_VIEW]
        row = (buttons, _values(record, nonce))
        whole = content(record, IN_FULL)
        for view in (whole, in_room(record, whole, IN_BRIEF)):
            full = self._render_full_view(in_chunks(view), value, may_approve(record), "", *row)
            if _fits_in_a_view(full):
                return full
        heads_and_tails = shortened(record, whole, MOST_TEXT // 2)
        return self._render_full_view(heads_and_tails, value, False, _TOO_LONG_FOR_SLACK, *row)

    def draw_page(self, record: OperationRecord, *, nonce: UUID) -> Sequence[JsonObject]:
        """Draw the blocks of a page, which has room for everything."""
        value = button_value(record, nonce).encode()
        view = self._render_full_view(content(record, IN_FULL), value, False, "")
        blocks = view["blocks"]
        assert isinstance(blocks, list)
        return blocks

    def draw_reject_modal(self, value: ButtonValue, verbs: Verbs = DECIDE) -> JsonObject:
        """Draw the modal that asks for the reason of a rejection."""
        return _loads_view(
            self._reject_reason.render(value=value.encode(), verbs=verbs, may_stop=verbs is DECIDE)
        )

    def draw_word_form(self, record: OperationRecord, origin: WordOrigin) -> JsonObject:
        """Draw the form in which a person says what became of something; it is in doubt."""
        form = word_form(record, origin.said)
        title = title_of(record)
        return _loads_view(self._word.render(form=form, title=title, origin=origin.encode()))

    def draw_edit_form(self, form: EditForm, origin: EditOrigin) -> JsonObject:
        """Draw the form in which a person edits an email that waits."""
        return _loads_view(self._edit.render(form=form, origin=origin.encode()))

    def draw_ask_form(self, record: OperationRecord, origin: AskOrigin) -> JsonObject:
        """Draw the form in which a person asks the agent about an operation."""
        return _loads_view(self._ask.render(title=title_of(record), origin=origin.encode()))

    def draw_pending(self, pending: Pending, tenant: TenantId) -> list[JsonObject]:
        """Draw the private list of what waits for a person."""
        return _loads_blocks(self._pending.render(list=pending_view(pending, tenant)))

    def draw_home(self, view: HomeView) -> JsonObject:
        """Draw a person's Home tab."""
        return _loads_view(self._home.render(home=view))

    def _operation_blocks(
        self, record: OperationRecord, nonce: UUID
    ) -> tuple[list[JsonObject], Extent]:
        """Draw an operation in full or, where that cannot fit, shortened; say which it was."""
        whole = content(record, ON_A_CARD)
        for view in (whole, in_room(record, whole, IN_BRIEF)):
            extent = Extent.ALL if view.explained else Extent.ALL_THAT_IS_BOUND
            blocks = self._render_operation(record, nonce, view, extent)
            if text_length(blocks) <= MOST_TEXT:
                return blocks, extent
        bare = self._render_operation(record, nonce, shortened(record, whole, 0), Extent.PARTS)
        view = shortened(record, whole, MOST_TEXT - text_length(bare))
        return self._render_operation(record, nonce, view, Extent.PARTS), Extent.PARTS

    def _render_operation(
        self, record: OperationRecord, nonce: UUID, view: OperationView, extent: Extent
    ) -> list[JsonObject]:
        too_long = extent is Extent.PARTS and may_approve(record)
        buttons, menu = in_a_row(buttons_of(record, extent))
        return _loads_blocks(
            self._operation.render(
                card=view,
                buttons=buttons,
                menu=menu,
                choices={one.action_id: choice_value(one.action_id, record.id) for one in menu},
                values=_values(record, nonce),
                note=_TOO_LONG_FOR_A_CARD if too_long else "",
            )
        )

    def _render_full_view(
        self,
        view: OperationView,
        value: str,
        submit: bool,
        note: str,
        buttons: Sequence[ButtonSpec] = (),
        values: Mapping[About, str] = MappingProxyType({}),
    ) -> JsonObject:
        return _loads_view(
            self._full_view.render(
                card=view, value=value, submit=submit, note=note, buttons=buttons, values=values
            )
        )


def button_value(record: OperationRecord, nonce: UUID) -> ButtonValue:
    """Name what a click on this record's card decides."""
    return ButtonValue(record.approval.id, record.id, record.content_revision, record.digest, nonce)


def settle_value(record: OperationRecord) -> str:
    """Name what a word on this record's card is about."""
    assert record.doubt is not None
    return SettleValue(record.id, record.doubt.attempt_id).encode()


def _values(record: OperationRecord, nonce: UUID) -> dict[About, str]:
    """Spell what the buttons of a record's card carry."""
    values = {
        About.CONTENT: button_value(record, nonce).encode(),
        About.OPERATION: operation_value(record.id),
    }
    if record.doubt is not None:
        values[About.ATTEMPT] = settle_value(record)
    return values


def _drawing(
    blocks: list[JsonObject], text: str, approvable: bool, needs_full_view: bool
) -> Drawing:
    return Drawing(blocks, text, view_digest(blocks), approvable, needs_full_view)


def _named(
    blocks: list[JsonObject], subject: UUID, render_no: int, nonce: UUID
) -> list[JsonObject]:
    """Give each block an id that no other drawing has; a lost post is found again by it."""
    return [
        {**block, "block_id": f"{subject.hex}.{render_no}.{index}.{nonce.hex}"}
        for index, block in enumerate(blocks)
    ]


def _seen(node: JsonValue) -> JsonValue:
    if isinstance(node, Mapping):
        return {key: _seen(value) for key, value in node.items() if key not in _NOT_SEEN}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_seen(item) for item in node]
    return node


def _fits_in_a_view(view: JsonObject) -> bool:
    blocks = view["blocks"]
    assert isinstance(blocks, Sequence)
    return len(blocks) <= MOST_VIEW_BLOCKS and len(json.dumps(view)) <= MOST_VIEW_BYTES


def _loads_blocks(source: str) -> list[JsonObject]:
    return cast("list[JsonObject]", json.loads(source))


def _loads_view(source: str) -> JsonObject:
    return cast("JsonObject", json.loads(source))

"""Cards: what is stored about an operation or a run, drawn as Slack's blocks.

A card is a view of the record and never the record. It shows everything that an approval would
bind, or Approve is not on it. What others wrote stands in literal text alone; ``mrkdwn`` is not
used at all. One record drawn twice gives one view digest. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from bot.button_value import ButtonValue
from bot.card_compensation import DECIDE, Verbs
from bot.card_content import OperationView, content, in_chunks, shortened, title_of
from bot.card_doubt import in_doubt
from bot.card_parts import length
from bot.card_run import run_view
from bot.card_status import moved_on
from bot.doubt_replies import label
from bot.replies import operation_state, run_state
from bot.settle_value import SettleValue
from bot.word_form import word_form
from bot.word_origin import WordOrigin
from executor.domain.approval import ApprovalStatus
from executor.domain.ids import operation_label, run_label
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject, JsonValue, digest
from executor.engine.card_record import CardRecord, OperationRecord, RunRecord
from executor.engine.word import Said

MOST_TEXT = 9_000
"""Characters of all blocks of one message. Slack refuses somewhere above 11,000 (undocumented)."""

MOST_VIEW_BLOCKS = 100
MOST_VIEW_BYTES = 240_000
"""Bytes of a modal; Slack refuses 250 kB (``view_too_large``)."""

_NOT_SEEN = frozenset({"block_id", "value"})
_SEEN_TEXTS = frozenset({"text", "fallback", "title", "confirm", "deny"})

_RISKY = frozenset({Said.SEND_AGAIN})

_TOO_LONG_FOR_A_CARD = (
    "This is too long for a card: parts are left out above. Read all of it before you approve."
)
_TOO_LONG_FOR_SLACK = (
    "This is too long to be shown in full in Slack, so it cannot be approved here. "
    "Reject it and ask for a shorter email."
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """One drawing of a card; ``text`` is the notification that stands in for the blocks."""

    blocks: list[JsonObject]
    text: str
    view_digest: bytes
    approvable: bool
    needs_full_view: bool


def card_environment() -> Environment:
    """Make the environment that cards are drawn in."""
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


@dataclass(frozen=True, slots=True)
class WordButton:
    """A button that opens the form for one word."""

    action: str
    label: str
    danger: bool


class CardPainter:
    """Draws cards and modals; holds the compiled templates and nothing else."""

    def __init__(self, environment: Environment) -> None:
        self._operation = environment.get_template("operation.json.j2")
        self._run = environment.get_template("run.json.j2")
        self._full_view = environment.get_template("full_view.json.j2")
        self._reject_reason = environment.get_template("reject_reason.json.j2")
        self._word = environment.get_template("word.json.j2")

    def draw(self, record: CardRecord, *, render_no: int, nonce: UUID) -> Drawing:
        """Draw a card; the ids of its blocks and the values of its buttons carry the nonce."""
        if isinstance(record, RunRecord):
            blocks = _loads_blocks(self._run.render(card=run_view(record)))
            text = f"{run_label(record.number)}: {run_state(record.status)}"
            return _drawing(_named(blocks, record.id, render_no, nonce), text, False, False)
        blocks, complete = self._operation_blocks(record, button_value(record, nonce).encode())
        text = (
            f"{operation_label(record.number)} of {run_label(record.run_number)}: "
            f"{operation_state(record.status)}"
        )
        may_decide = _may_approve(record)
        return _drawing(
            _named(blocks, record.id, render_no, nonce),
            text,
            may_decide and complete,
            may_decide and not complete,
        )

    def draw_full_view(self, record: OperationRecord, *, nonce: UUID) -> JsonObject:
        """Draw the modal with everything in full; it can be submitted only where all of it fits."""
        value = button_value(record, nonce).encode()
        view = in_chunks(content(record))
        full = self._render_full_view(view, value, _may_approve(record), "")
        if _fits_in_a_view(full):
            return full
        heads_and_tails = shortened(record, content(record), MOST_TEXT // 2)
        return self._render_full_view(heads_and_tails, value, False, _TOO_LONG_FOR_SLACK)

    def draw_reject_modal(self, value: ButtonValue, verbs: Verbs = DECIDE) -> JsonObject:
        """Draw the modal that asks for the reason of a rejection."""
        return _loads_view(self._reject_reason.render(value=value.encode(), verbs=verbs))

    def draw_word_form(self, record: OperationRecord, origin: WordOrigin) -> JsonObject:
        """Draw the form in which a person says what became of something; it is in doubt."""
        form = word_form(record, origin.said)
        title = title_of(record)
        return _loads_view(self._word.render(form=form, title=title, origin=origin.encode()))

    def _operation_blocks(
        self, record: OperationRecord, value: str
    ) -> tuple[list[JsonObject], bool]:
        """Draw an operation in full or, where that cannot fit, shortened; say which it was."""
        open_, approvable = _is_open(record), _may_approve(record)
        view = content(record)
        words = word_buttons(record)
        buttons = ["approve"] * approvable + ["reject"] * open_
        value = settle_value(record) if words else value
        blocks = self._render_operation(view, value, buttons, words, "")
        if text_length(blocks) <= MOST_TEXT:
            return blocks, True
        buttons = ["review"] * open_ + ["reject"] * open_
        note = _TOO_LONG_FOR_A_CARD if approvable else ""
        bare = shortened(record, view, 0)
        room = MOST_TEXT - text_length(self._render_operation(bare, value, buttons, words, note))
        fitting = shortened(record, view, room)
        return self._render_operation(fitting, value, buttons, words, note), False

    def _render_operation(
        self,
        view: OperationView,
        value: str,
        buttons: Sequence[str],
        words: Sequence[WordButton],
        note: str,
    ) -> list[JsonObject]:
        return _loads_blocks(
            self._operation.render(card=view, value=value, buttons=buttons, words=words, note=note)
        )

    def _render_full_view(
        self, view: OperationView, value: str, submit: bool, note: str
    ) -> JsonObject:
        return _loads_view(self._full_view.render(card=view, value=value, submit=submit, note=note))


def button_value(record: OperationRecord, nonce: UUID) -> ButtonValue:
    """Name what a click on this record's card decides."""
    return ButtonValue(record.approval.id, record.id, record.content_revision, record.digest, nonce)


def word_buttons(record: OperationRecord) -> list[WordButton]:
    """Name the words that a person may give about this record; send again only where it counts."""
    found = in_doubt(record)
    if record.doubt is None or found is None:
        return []
    return [
        WordButton(f"settle_{said.value}", label(said, found[0].kind.value), said in _RISKY)
        for said in Said
        if said is not Said.SEND_AGAIN or record.doubt.may_send_again
    ]


def settle_value(record: OperationRecord) -> str:
    """Name what a word on this record's card is about."""
    assert record.doubt is not None
    return SettleValue(record.id, record.doubt.attempt_id).encode()


def _is_open(record: OperationRecord) -> bool:
    return (
        record.status is OperationStatus.AWAITING and record.approval.status is ApprovalStatus.OPEN
    )


def _may_approve(record: OperationRecord) -> bool:
    return _is_open(record) and not moved_on(record)


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

"""Strict validation of messages and views against the table in `block_rules.py`.

Errors have the shape that Slack's `blocks.validate` answers with. `code` is `failed_constraint`
throughout, the only code that Slack's page names; `constraint.type` says which rule failed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, assert_never

from bot.sandbox import block_rules as rules
from bot.sandbox.model import Json
from bot.sandbox.rule_kinds import Flag, Items, Number, Part, Rule, Shape, Str, Text, Typed

Surface = Literal["message", "modal", "home"]


@dataclass(frozen=True)
class BlockError:
    """One violation. `pointer` is a JSON pointer such as `/blocks/0/text/text`."""

    pointer: str
    message: str
    constraint: Json
    field: str | None = None
    code: str = "failed_constraint"

    def to_json(self) -> Json:
        return asdict(self)


def length(text: str) -> int:
    """Count UTF-16 code units."""
    return len(text) + sum(ord(c) > 0xFFFF for c in text)


def _fail(pointer: str, message: str, kind: str, **facts: object) -> BlockError:
    field = pointer.rsplit("/", 1)[-1]
    return BlockError(pointer, message, {"type": kind, **facts}, field)


def validate_message(blocks: object) -> list[BlockError]:
    """Check the blocks of one message, all of them, and return every violation."""
    if not isinstance(blocks, list):
        return [_fail("/blocks", "must be an array of blocks", "type", expected="array")]
    listing = Items(Typed(rules.BLOCK_TYPES), rules.MAX_BLOCKS["message"], min=0)
    errors = list(_check(blocks, listing, "/blocks"))
    return errors + list(_across_blocks(blocks, "message"))


def validate_view(view: object) -> list[BlockError]:
    """Check one modal or Home tab and return every violation."""
    if not isinstance(view, dict):
        return [_fail("/view", "must be an object", "type", expected="object")]
    errors = list(_check(view, Typed(("modal", "home")), "/view"))
    blocks = view.get("blocks")
    if not isinstance(blocks, list):
        return errors
    surface: Surface = "home" if view.get("type") == "home" else "modal"
    errors += _across_blocks(blocks, surface, "/view/blocks")
    has_input = any(isinstance(b, dict) and b.get("type") == "input" for b in blocks)
    if surface == "modal" and has_input and "submit" not in view:
        errors.append(_fail("/view/submit", "is required with an input block", "required"))
    return errors


def view_too_large(view: Json) -> bool:
    """Tell whether the view is over Slack's 250 kB."""
    return len(json.dumps(view, ensure_ascii=False).encode("utf-8", "replace")) > rules.VIEW_BYTES


def over_budget(blocks: list[Json], extra: str = "") -> bool:
    """Tell whether the text of all blocks together is more than one message can hold."""
    return text_length(blocks) + length(extra) > rules.MESSAGE_TEXT_BUDGET


def text_length(node: object) -> int:
    """Sum all text a reader could see in blocks: texts, labels, options, alt texts, dialogs."""
    if isinstance(node, list):
        return sum(text_length(item) for item in node)
    if not isinstance(node, dict):
        return 0
    own = sum(
        length(value)
        for key, value in node.items()
        if isinstance(value, str) and key in ("text", "alt_text", "title", "fallback")
    )
    if node.get("type") == "link" and "text" not in node:
        own += length(str(node.get("url", "")))
    return own + sum(text_length(v) for v in node.values() if isinstance(v, dict | list))


def _check(value: object, rule: Rule, at: str) -> Iterator[BlockError]:
    match rule:
        case Str():
            yield from _check_string(value, rule, at)
        case Flag():
            if not isinstance(value, bool):
                yield _fail(at, "must be a boolean", "type", expected="boolean")
        case Number():
            yield from _check_number(value, rule, at)
        case Text():
            yield from _check_text_object(value, rule, at)
        case Part():
            yield from _check_shape(value, rule.name, at)
        case Typed():
            yield from _check_typed(value, rule, at)
        case Items():
            yield from _check_items(value, rule, at)
        case _:
            assert_never(rule)


def _check_string(value: object, rule: Str, at: str) -> Iterator[BlockError]:
    if not isinstance(value, str):
        yield _fail(at, "must be a string", "type", expected="string")
        return
    if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        yield _fail(at, "must be valid Unicode", "unicode")
    size = length(value)
    if size < rule.min:
        yield _fail(at, f"must have at least {rule.min} characters", "min_length",
                    expected=rule.min, got=size)  # fmt: skip
    if rule.max is not None and size > rule.max:
        yield _fail(at, f"must have at most {rule.max} characters", "max_length",
                    expected=rule.max, got=size)  # fmt: skip
    if rule.choices and value not in rule.choices:
        yield _fail(at, "is not one of the allowed values", "enum",
                    expected=list(rule.choices), got=value)  # fmt: skip
    if rule.pattern and not re.fullmatch(rule.pattern, value):
        yield _fail(at, "has the wrong format", "pattern", expected=rule.pattern)


def _check_number(value: object, rule: Number, at: str) -> Iterator[BlockError]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _fail(at, "must be an integer", "type", expected="integer")
        return
    if (rule.min is not None and value < rule.min) or (rule.max is not None and value > rule.max):
        yield _fail(at, "is out of range", "range", expected=[rule.min, rule.max], got=value)


def _check_text_object(value: object, rule: Text, at: str) -> Iterator[BlockError]:
    errors = list(_check_typed(value, Typed(rule.kinds), at))
    yield from errors
    if not errors and isinstance(value, dict):
        yield from _check_string(value["text"], Str(rule.max, rule.min), f"{at}/text")


def _check_typed(value: object, rule: Typed, at: str) -> Iterator[BlockError]:
    if not isinstance(value, dict):
        yield _fail(at, "must be an object", "type", expected="object")
        return
    kind = value.get("type")
    if kind not in rule.types:
        yield _fail(f"{at}/type", "is not an allowed type here", "enum",
                    expected=list(rule.types), got=kind)  # fmt: skip
        return
    yield from _check_shape(value, kind, at)


def _check_items(value: object, rule: Items, at: str) -> Iterator[BlockError]:
    if not isinstance(value, list):
        yield _fail(at, "must be an array", "type", expected="array")
        return
    if len(value) < rule.min:
        yield _fail(at, f"must have at least {rule.min} items", "min_items",
                    expected=rule.min, got=len(value))  # fmt: skip
    if rule.max is not None and len(value) > rule.max:
        yield _fail(at, f"must have at most {rule.max} items", "max_items",
                    expected=rule.max, got=len(value))  # fmt: skip
    for index, item in enumerate(value):
        yield from _check(item, rule.item, f"{at}/{index}")


def _check_shape(value: object, name: str, at: str) -> Iterator[BlockError]:
    if not isinstance(value, dict):
        yield _fail(at, "must be an object", "type", expected="object")
        return
    shape = rules.SHAPES[name]
    for key in shape.required:
        if key not in value:
            yield _fail(f"{at}/{key}", "is required", "required")
    for group in shape.at_least:
        if not any(key in value for key in group):
            yield _fail(at, f"needs at least one of {', '.join(group)}", "any_of",
                        expected=list(group))  # fmt: skip
    for group in shape.exactly:
        if sum(key in value for key in group) != 1:
            yield _fail(at, f"needs exactly one of {', '.join(group)}", "one_of",
                        expected=list(group))  # fmt: skip
    for key, item in value.items():
        rule = shape.fields.get(key)
        if rule is not None:
            yield from _check(item, rule, f"{at}/{key}")
        elif key != "type" or "type" in shape.fields:
            yield _fail(f"{at}/{key}", "is not a known field", "unknown_field")


def _across_blocks(
    blocks: list[object], surface: Surface, at: str = "/blocks"
) -> Iterator[BlockError]:
    """Check what no block can tell alone: surfaces, unique ids, totals."""
    seen: set[str] = set()
    markdown = tables = 0
    for index, block in enumerate(blocks):
        if not isinstance(block, dict) or block.get("type") not in rules.BLOCK_TYPES:
            continue
        here = f"{at}/{index}"
        kind = block["type"]
        if surface not in rules.SHAPES[kind].surfaces:
            yield _fail(f"{here}/type", f"is not allowed in a {surface}", "surface",
                        expected=list(rules.SHAPES[kind].surfaces), got=surface)  # fmt: skip
        block_id = block.get("block_id")
        if isinstance(block_id, str):
            if block_id in seen:
                yield _fail(f"{here}/block_id", "is not unique", "unique", got=block_id)
            seen.add(block_id)
        yield from _action_ids(block, here)
        yield from _task_ids(block, here)
        if kind == "markdown":
            markdown += text_length(block)
        if kind == "table":
            tables += 1
            if text_length(block) > rules.TABLE_CHARACTERS:
                yield _fail(f"{here}/rows", "has too many characters", "max_length",
                            expected=rules.TABLE_CHARACTERS)  # fmt: skip
    if markdown > rules.MARKDOWN_BUDGET:
        yield _fail(at, "has too much markdown text", "max_length", got=markdown)
    if tables > 1:
        yield _fail(at, "may have one table", "max_items", expected=1, got=tables)


def _task_ids(block: Json, at: str) -> Iterator[BlockError]:
    """Check that no two tasks of a plan are the same one."""
    tasks = block.get("tasks")
    seen: set[object] = set()
    for index, task in enumerate(tasks if isinstance(tasks, list) else []):
        task_id = task.get("task_id") if isinstance(task, dict) else None
        if not isinstance(task_id, str):
            continue
        if task_id in seen:
            yield _fail(f"{at}/tasks/{index}/task_id", "is not unique", "unique", got=task_id)
        seen.add(task_id)


def _action_ids(block: Json, at: str) -> Iterator[BlockError]:
    seen: set[str] = set()
    for pointer, element in interactive_elements(block):
        action_id = element.get("action_id")
        if not isinstance(action_id, str):
            continue
        if action_id in seen:
            yield _fail(f"{at}{pointer}/action_id", "is not unique in its block", "unique",
                        got=action_id)  # fmt: skip
        seen.add(action_id)


def interactive_elements(block: Json) -> Iterator[tuple[str, Json]]:
    """Yield (pointer within the block, element) for whatever a person could press or fill."""
    places: list[tuple[str, object]] = []
    for key in ("elements", "actions"):
        listed = block.get(key)
        if isinstance(listed, list):
            places += [(f"/{key}/{i}", element) for i, element in enumerate(listed)]
    places += [(f"/{key}", block[key]) for key in ("accessory", "element") if key in block]
    for pointer, element in places:
        if not isinstance(element, dict):
            continue
        if element.get("type") == "card":
            for inner, button in interactive_elements(element):
                yield pointer + inner, button
        elif "action_id" in rules.SHAPES.get(str(element.get("type")), _NOTHING).fields:
            yield pointer, element


_NOTHING = Shape({})

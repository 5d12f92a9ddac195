"""Each limit of the table: the last accepted size, and one past it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.sandbox.block_rules import SHAPES
from bot.sandbox.blocks import validate_message, validate_view
from bot.sandbox.model import Json
from tests.bot.sandbox.conftest import CHANNEL, make_card, modal, plain


def section(text: str, kind: str = "mrkdwn") -> Json:
    return {"type": "section", "text": {"type": kind, "text": text}}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def button(text: str = "Go", **more: object) -> Json:
    return {"type": "button", "text": plain(text), **more}


def rich(*elements: Json) -> Json:
    return {"type": "rich_text", "elements": list(elements)}


def preformatted(*parts: Json) -> Json:
    return rich({"type": "rich_text_preformatted", "elements": list(parts)})


def confirm(**more: Json) -> Json:
    dialog = {
        "title": plain("Sure?"),
        "text": plain("Really"),
        "confirm": plain("Yes"),
        "deny": plain("No"),
    }
    return dialog | more


def option(text: str = "a", value: str = "a", **more: object) -> Json:
    return {"text": plain(text), "value": value, **more}


def select(**more: object) -> Json:
    return {"type": "static_select", "action_id": "s", **more}


SIZES = [
    ("header", 150, lambda n: {"type": "header", "text": plain("x" * n)}, "/blocks/0/text/text"),
    ("section", 3000, lambda n: section("x" * n), "/blocks/0/text/text"),
    (
        "field",
        2000,
        lambda n: {"type": "section", "fields": [plain("x" * n)]},
        "/blocks/0/fields/0/text",
    ),
    (
        "fields",
        10,
        lambda n: {"type": "section", "fields": [plain("x")] * n},
        "/blocks/0/fields",
    ),
    (
        "context",
        10,
        lambda n: {"type": "context", "elements": [plain("x")] * n},
        "/blocks/0/elements",
    ),
    ("actions", 25, lambda n: actions(*[button()] * n), "/blocks/0/elements"),
    ("label", 75, lambda n: actions(button("x" * n)), "/blocks/0/elements/0/text/text"),
    ("value", 2000, lambda n: actions(button(value="x" * n)), "/blocks/0/elements/0/value"),
    (
        "action_id",
        255,
        lambda n: actions(button(action_id="x" * n)),
        "/blocks/0/elements/0/action_id",
    ),
    (
        "url",
        3000,
        lambda n: actions(button(url="https://" + "x" * (n - 8))),
        "/blocks/0/elements/0/url",
    ),
    (
        "accessibility_label",
        75,
        lambda n: actions(button(accessibility_label="x" * n)),
        "/blocks/0/elements/0/accessibility_label",
    ),
    ("block_id", 255, lambda n: {"type": "divider", "block_id": "x" * n}, "/blocks/0/block_id"),
    (
        "confirm title",
        100,
        lambda n: actions(button(confirm=confirm(title=plain("x" * n)))),
        "/blocks/0/elements/0/confirm/title/text",
    ),
    (
        "confirm text",
        300,
        lambda n: actions(button(confirm=confirm(text=plain("x" * n)))),
        "/blocks/0/elements/0/confirm/text/text",
    ),
    (
        "confirm button",
        30,
        lambda n: actions(button(confirm=confirm(confirm=plain("x" * n)))),
        "/blocks/0/elements/0/confirm/confirm/text",
    ),
    (
        "deny button",
        30,
        lambda n: actions(button(confirm=confirm(deny=plain("x" * n)))),
        "/blocks/0/elements/0/confirm/deny/text",
    ),
    (
        "option text",
        75,
        lambda n: actions(select(options=[option("x" * n)])),
        "/blocks/0/elements/0/options/0/text/text",
    ),
    (
        "option value",
        75,
        lambda n: actions(select(options=[option(value="x" * n)])),
        "/blocks/0/elements/0/options/0/value",
    ),
    (
        "option description",
        75,
        lambda n: actions(select(options=[option(description=plain("x" * n))])),
        "/blocks/0/elements/0/options/0/description/text",
    ),
    (
        "options",
        100,
        lambda n: actions(select(options=[option()] * n)),
        "/blocks/0/elements/0/options",
    ),
    (
        "image url",
        3000,
        lambda n: {"type": "image", "alt_text": "a", "image_url": "https://" + "x" * (n - 8)},
        "/blocks/0/image_url",
    ),
    (
        "alt text",
        2000,
        lambda n: {"type": "image", "image_url": "https://x.example/a", "alt_text": "x" * n},
        "/blocks/0/alt_text",
    ),
    (
        "image title",
        2000,
        lambda n: {
            "type": "image",
            "image_url": "https://x.example/a",
            "alt_text": "a",
            "title": plain("x" * n),
        },
        "/blocks/0/title/text",
    ),
    ("markdown", 12_000, lambda n: {"type": "markdown", "text": "x" * n}, "/blocks"),
    (
        "table rows",
        100,
        lambda n: {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}]] * n},
        "/blocks/0/rows",
    ),
    (
        "table columns",
        20,
        lambda n: {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}] * n]},
        "/blocks/0/rows/0",
    ),
    (
        "table characters",
        10_000,
        lambda n: {
            "type": "table",
            "rows": [
                [{"type": "raw_text", "text": "x" * (n // 4 + (i < n % 4))} for i in range(4)]
            ],
        },
        "/blocks/0/rows",
    ),
    ("card body", 200, lambda n: {"type": "card", "body": plain("x" * n)}, "/blocks/0/body/text"),
    (
        "card title",
        150,
        lambda n: {"type": "card", "title": plain("x" * n)},
        "/blocks/0/title/text",
    ),
    (
        "carousel",
        10,
        lambda n: {"type": "carousel", "elements": [{"type": "card", "body": plain("x")}] * n},
        "/blocks/0/elements",
    ),
]


@pytest.mark.parametrize(("name", "limit", "make", "pointer"), SIZES, ids=[s[0] for s in SIZES])
def test_a_size_is_accepted_at_its_limit_and_refused_one_past_it(
    name: str, limit: int, make: Callable[[int], Json], pointer: str
) -> None:
    assert validate_message([make(limit)]) == []
    errors = validate_message([make(limit + 1)])
    assert [e.pointer for e in errors] == [pointer]
    assert errors[0].code == "failed_constraint"


VIEW_SIZES = [
    ("title", 24, lambda n: modal(title=plain("x" * n)), "/view/title/text"),
    ("submit", 24, lambda n: modal(submit=plain("x" * n)), "/view/submit/text"),
    ("close", 24, lambda n: modal(close=plain("x" * n)), "/view/close/text"),
    ("metadata", 3000, lambda n: modal(private_metadata="x" * n), "/view/private_metadata"),
    ("callback_id", 255, lambda n: modal(callback_id="x" * n), "/view/callback_id"),
    ("external_id", 255, lambda n: modal(external_id="x" * n), "/view/external_id"),
    ("blocks", 100, lambda n: modal(blocks=[{"type": "divider"}] * n), "/view/blocks"),
    (
        "alert",
        200,
        lambda n: modal(blocks=[{"type": "alert", "text": plain("x" * n)}]),
        "/view/blocks/0/text/text",
    ),
]


@pytest.mark.parametrize(
    ("name", "limit", "make", "pointer"), VIEW_SIZES, ids=[s[0] for s in VIEW_SIZES]
)
def test_a_view_is_accepted_at_its_limit_and_refused_one_past_it(
    name: str, limit: int, make: Callable[[int], Json], pointer: str
) -> None:
    assert validate_view(make(limit)) == []
    assert [e.pointer for e in validate_view(make(limit + 1))] == [pointer]


def task(**changes: object) -> Json:
    return {"type": "task_card", "task_id": "a", "title": "Read", "status": "pending"} | changes


def plan(*tasks: Json) -> Json:
    return {"type": "plan", "title": "Steps", "tasks": list(tasks)}


REFUSALS = [
    ("an unknown block", {"type": "banner"}, "enum"),
    ("a block without type", {"text": plain("x")}, "enum"),
    ("an unknown field", section("x") | {"colour": "red"}, "unknown_field"),
    ("an unknown text field", {"type": "header", "text": plain("x") | {"bold": True}},
     "unknown_field"),
    ("empty text", section(""), "min_length"),
    ("mrkdwn in a header", {"type": "header", "text": {"type": "mrkdwn", "text": "x"}}, "enum"),
    ("a missing required field", {"type": "header"}, "required"),
    ("a section of nothing", {"type": "section"}, "any_of"),
    ("an image of two sources",
     {"type": "image", "alt_text": "a", "image_url": "https://x.example",
      "slack_file": {"id": "F1"}}, "one_of"),
    ("an input element in actions", actions({"type": "plain_text_input"}), "enum"),
    ("an alert in a message", {"type": "alert", "text": plain("x")}, "surface"),
    ("mrkdwn in a confirm dialog",
     actions(button(confirm=confirm(text={"type": "mrkdwn", "text": "x"}))), "enum"),
    ("an unknown button style", actions(button(style="green")), "enum"),
    ("no elements", actions(), "min_items"),
    ("a user inside preformatted text", preformatted({"type": "user", "user_id": "U1"}), "enum"),
    ("empty preformatted text", preformatted({"type": "text", "text": ""}), "min_length"),
    ("a lone surrogate", preformatted({"type": "text", "text": "\ud800"}), "unicode"),
    ("a script address", actions(button(url="javascript:alert(1)")), "pattern"),
    ("a number where a flag belongs", section("x") | {"expand": 1}, "type"),
    ("a string where an object belongs", {"type": "header", "text": "x"}, "type"),
    ("a plan without a title", {"type": "plan", "tasks": [task()]}, "required"),
    ("a plan of no tasks", plan(), "min_items"),
    ("a plan of something else", plan(section("x")), "enum"),
    ("a task twice", plan(task(), task()), "unique"),
    ("a task without a status", {k: v for k, v in task().items() if k != "status"}, "required"),
    ("a task of an unknown status", task(status="done"), "enum"),
    ("a task that is no string", task(title=plain("x")), "type"),
    ("details that are no rich text", task(details=plain("x")), "enum"),
    ("output that is a list", task(output=[]), "type"),
]  # fmt: skip


@pytest.mark.parametrize(("block", "kind"), [r[1:] for r in REFUSALS], ids=[r[0] for r in REFUSALS])
def test_the_validator_refuses(block: Json, kind: str) -> None:
    assert [e.constraint["type"] for e in validate_message([block])] == [kind]


def test_a_plan_holds_tasks_in_every_state_and_stands_in_messages_alone() -> None:
    states = ("pending", "in_progress", "complete", "error")
    text = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [
        {"type": "text", "text": "three found"}]}]}  # fmt: skip
    whole = plan(*(task(task_id=s, status=s, details=text, output=text) for s in states))
    assert validate_message([whole]) == []
    assert [e.constraint["type"] for e in validate_view(modal(blocks=[whole]))] == ["surface"]


def test_a_message_takes_fifty_blocks() -> None:
    assert validate_message([{"type": "divider"}] * 50) == []
    assert [e.pointer for e in validate_message([{"type": "divider"}] * 51)] == ["/blocks"]


def test_block_ids_are_unique_in_a_message_and_action_ids_in_a_block() -> None:
    twice = [{"type": "divider", "block_id": "a"}] * 2
    assert [e.pointer for e in validate_message(twice)] == ["/blocks/1/block_id"]
    pair = [button(action_id="a"), button(action_id="a")]
    assert [e.pointer for e in validate_message([actions(*pair)])] == [
        "/blocks/0/elements/1/action_id"
    ]
    assert validate_message([actions(pair[0]), actions(pair[1])]) == []


def test_lengths_count_utf16_units() -> None:
    assert validate_message([{"type": "header", "text": plain("🙂" * 75)}]) == []
    assert len(validate_message([{"type": "header", "text": plain("🙂" * 76)}])) == 1


def test_a_modal_with_an_input_needs_a_submit_button() -> None:
    view = modal()
    del view["submit"]
    assert [e.pointer for e in validate_view(view)] == ["/view/submit"]


def test_one_table_in_a_message() -> None:
    table = {"type": "table", "rows": [[{"type": "raw_text", "text": "a"}]]}
    assert validate_message([table]) == []
    assert len(validate_message([table, table])) == 1


async def refused(client: AsyncWebClient, **message: object) -> str:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=CHANNEL, **message)  # type: ignore[arg-type]
    return str(caught.value.response["error"])


async def test_all_text_of_a_message_together_holds_twelve_thousand(client: AsyncWebClient) -> None:
    full = [section("x" * 3000) for _ in range(4)]
    await client.chat_postMessage(channel=CHANNEL, text="t", blocks=full)
    over = [*full, section("x")]
    assert await refused(client, text="t", blocks=over) == "msg_blocks_too_long"


async def test_labels_and_dialogs_count_towards_the_budget(client: AsyncWebClient) -> None:
    full = [section("x" * 3000) for _ in range(3)] + [section("x" * 2990)]
    fits = actions(button("x" * 10))
    await client.chat_postMessage(channel=CHANNEL, text="t", blocks=[*full, fits])
    over = actions(button("x" * 10, confirm=confirm()))
    assert await refused(client, text="t", blocks=[*full, over]) == "msg_blocks_too_long"


async def test_invalid_blocks_come_with_pointers(client: AsyncWebClient) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(
            channel=CHANNEL, text="t", blocks=[{"type": "header", "text": plain("x" * 151)}]
        )
    answer = caught.value.response
    assert answer["error"] == "invalid_blocks"
    assert answer["errors"][0]["pointer"] == "/blocks/0/text/text"
    assert answer["errors"][0]["constraint"] == {"type": "max_length", "expected": 150, "got": 151}
    assert answer.status_code == 200


async def test_blocks_validate_needs_no_token(client: AsyncWebClient) -> None:
    client.token = None
    good = await client.api_call("blocks.validate", json={"blocks": make_card()})
    assert good["ok"]
    with pytest.raises(SlackApiError) as caught:
        await client.api_call("blocks.validate", json={"blocks": [{"type": "header"}]})
    assert caught.value.response["error"] == "invalid_blocks"
    assert caught.value.response["errors"][0]["pointer"] == "/0/text"


async def test_a_block_that_is_no_list_is_a_format_error(client: AsyncWebClient) -> None:
    assert await refused(client, text="t", blocks={"type": "divider"}) == "invalid_blocks_format"
    assert await refused(client, text="t", blocks="[{") == "invalid_blocks_format"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "elements", "block_id", "accessory", "confirm"])
            | st.text(max_size=4),
            inner | st.sampled_from([*SHAPES]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(ANY_JSON)
def test_the_validator_answers_whatever_it_is_given(payload: object) -> None:
    assert all(error.pointer.startswith("/blocks") for error in validate_message(payload))
    assert validate_view(payload) != []

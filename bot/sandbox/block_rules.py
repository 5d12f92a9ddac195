"""Block Kit's limits as one table, so that a run against the real `blocks.validate` corrects it.

Sources, all read mid 2026: Slack's Block Kit reference, the type files of `@slack/types`, and
`slack_sdk.models`. Where they disagree the stricter one stands. Lengths count UTF-16 code units,
as the JavaScript and Java SDKs count them; Slack does not say what its server counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from bot.sandbox.rule_kinds import Flag, Items, Number, Part, Rule, Shape, Str, Text, Typed

MAX_BLOCKS: Mapping[str, int] = {"message": 50, "modal": 100, "home": 100}
# Undocumented: reported between 11,341 and 13,200 (slackapi/bolt-js#2509, #2867).
MESSAGE_TEXT_BUDGET = 12_000
MARKDOWN_BUDGET = 12_000
TABLE_CHARACTERS = 10_000
VIEW_BYTES = 250_000
POSTED_TEXT = 40_000
UPDATED_TEXT = 4_000
MAX_ATTACHMENTS = 100
METADATA_BYTES = 8_000  # `metadata_too_large` exists, its size is documented nowhere

PLAIN = ("plain_text",)
BLOCK_ID = Str(255)
ACTION_ID = Str(255)
CONFIRM = Part("confirm")
URL = Str(3000, pattern=r"https?://\S+|mailto:\S+")
MESSAGES = ("message",)
MODALS = ("modal",)

_SELECT: dict[str, Rule] = {
    "action_id": ACTION_ID,
    "placeholder": Text(150, PLAIN),
    "confirm": CONFIRM,
    "focus_on_load": Flag(),
}
_INITIAL_ID = Str(255)
_INPUT: dict[str, Rule] = {
    "action_id": ACTION_ID,
    "placeholder": Text(150, PLAIN),
    "focus_on_load": Flag(),
    "dispatch_action_config": Part("dispatch_action_config"),
}
_OPTIONS = Items(Part("option"), 100)
_GROUPS = Items(Part("option_group"), 100)

SINGLE_SELECTS = ("static_select", "users_select", "conversations_select", "channels_select")
MULTI_SELECTS = tuple(f"multi_{kind}" for kind in SINGLE_SELECTS)
PICKERS = ("datepicker", "timepicker")
CHOICES = ("checkboxes", "radio_buttons")
SECTION_ACCESSORIES = ("button", "image", "overflow", *CHOICES, *PICKERS, *SINGLE_SELECTS,
                       *MULTI_SELECTS)  # fmt: skip
ACTION_ELEMENTS = ("button", "overflow", *CHOICES, *PICKERS, "datetimepicker", *SINGLE_SELECTS,
                   *MULTI_SELECTS)  # fmt: skip
INPUT_ELEMENTS = ("plain_text_input", "email_text_input", "url_text_input", "number_input",
                  *CHOICES, *PICKERS, "datetimepicker", *SINGLE_SELECTS,
                  *MULTI_SELECTS)  # fmt: skip
RICH_ELEMENTS = ("rich_text_section", "rich_text_list", "rich_text_preformatted",
                 "rich_text_quote")  # fmt: skip
RICH_PARTS = ("text", "link", "emoji", "user", "usergroup", "channel", "broadcast", "date",
              "color", "team")  # fmt: skip
_STYLE = Part("style")

BLOCK_TYPES = ("section", "divider", "image", "actions", "context", "header", "input",
               "rich_text", "markdown", "table", "alert", "card", "carousel", "task_card",
               "plan")  # fmt: skip

SHAPES: Mapping[str, Shape] = {
    # Blocks
    "section": Shape(
        {
            "block_id": BLOCK_ID,
            "text": Text(3000),
            "fields": Items(Text(2000), 10),
            "accessory": Typed(SECTION_ACCESSORIES),
            "expand": Flag(),
        },
        at_least=(("text", "fields"),),
    ),
    "divider": Shape({"block_id": BLOCK_ID}),
    "image": Shape(
        {
            "block_id": BLOCK_ID,
            "image_url": URL,
            "alt_text": Str(2000),
            "title": Text(2000, PLAIN),
            "slack_file": Part("slack_file"),
        },
        required=("alt_text",),
        exactly=(("image_url", "slack_file"),),
    ),
    "actions": Shape(
        {"block_id": BLOCK_ID, "elements": Items(Typed(ACTION_ELEMENTS), 25)},
        required=("elements",),
    ),
    "context": Shape(
        {"block_id": BLOCK_ID, "elements": Items(Typed(("image", "plain_text", "mrkdwn")), 10)},
        required=("elements",),
    ),
    "header": Shape({"block_id": BLOCK_ID, "text": Text(150, PLAIN)}, required=("text",)),
    "input": Shape(
        {
            "block_id": BLOCK_ID,
            "label": Text(2000, PLAIN),
            "element": Typed(INPUT_ELEMENTS),
            "hint": Text(2000, PLAIN),
            "optional": Flag(),
            "dispatch_action": Flag(),
        },
        required=("label", "element"),
    ),
    "rich_text": Shape(
        {
            "block_id": BLOCK_ID,
            "elements": Items(Typed(RICH_ELEMENTS)),
        },
        required=("elements",),
    ),
    # Its length is limited over all markdown blocks of a message together.
    "markdown": Shape(
        {"block_id": BLOCK_ID, "text": Str()},
        required=("text",),
        surfaces=MESSAGES,
    ),
    "table": Shape(
        {
            "block_id": BLOCK_ID,
            "rows": Items(Items(Typed(("raw_text", "rich_text")), 20), 100),
            "column_settings": Items(Part("column_setting"), 20),
        },
        required=("rows",),
        surfaces=MESSAGES,
    ),
    # The Java SDK says modals and 200 characters, Slack's own plugin posts it in messages.
    "alert": Shape(
        {
            "block_id": BLOCK_ID,
            "text": Text(200),
            "level": Str(choices=("default", "info", "warning", "error", "success")),
        },
        required=("text",),
        surfaces=MODALS,
    ),
    "card": Shape(
        {
            "block_id": BLOCK_ID,
            "hero_image": Typed(("image",)),
            "icon": Typed(("image",)),
            "title": Text(150),
            "subtitle": Text(150),
            "body": Text(200),
            "actions": Items(Typed(("button",)), 5),
        },
        at_least=(("hero_image", "title", "actions", "body"),),
        surfaces=MESSAGES,
    ),
    "carousel": Shape(
        {"block_id": BLOCK_ID, "elements": Items(Typed(("card",)), 10)},
        required=("elements",),
        surfaces=MESSAGES,
    ),
    "task_card": Shape(
        {
            "block_id": BLOCK_ID,
            "task_id": Str(255),
            "title": Str(150),
            "status": Str(choices=("pending", "in_progress", "complete", "error")),
            "details": Typed(("rich_text",)),
            "output": Typed(("rich_text",)),
        },
        required=("task_id", "title", "status"),
        surfaces=MESSAGES,
    ),
    "plan": Shape(
        {"block_id": BLOCK_ID, "title": Str(150), "tasks": Items(Typed(("task_card",)), 50)},
        required=("title",),
        surfaces=MESSAGES,
    ),
    # Text objects
    "plain_text": Shape({"text": Str(3000), "emoji": Flag()}, required=("text",)),
    "mrkdwn": Shape({"text": Str(3000), "verbatim": Flag()}, required=("text",)),
    "raw_text": Shape({"text": Str(3000)}, required=("text",)),
    # Elements
    "button": Shape(
        {
            "action_id": ACTION_ID,
            "text": Text(75, PLAIN),
            "value": Str(2000),
            "url": URL,
            "style": Str(choices=("primary", "danger")),
            "confirm": CONFIRM,
            "accessibility_label": Str(75),
        },
        required=("text",),
    ),
    "overflow": Shape(
        {"action_id": ACTION_ID, "options": Items(Part("option"), 5), "confirm": CONFIRM},
        required=("options",),
    ),
    "static_select": Shape(
        {
            **_SELECT,
            "options": _OPTIONS,
            "option_groups": _GROUPS,
            "initial_option": Part("option"),
        },
        exactly=(("options", "option_groups"),),
    ),
    "multi_static_select": Shape(
        {
            **_SELECT,
            "options": _OPTIONS,
            "option_groups": _GROUPS,
            "initial_options": _OPTIONS,
            "max_selected_items": Number(1),
        },
        exactly=(("options", "option_groups"),),
    ),
    **{
        f"{kind}_select": Shape({**_SELECT, f"initial_{kind[:-1]}": _INITIAL_ID})
        for kind in ("users", "conversations", "channels")
    },
    **{
        f"multi_{kind}_select": Shape(
            {
                **_SELECT,
                f"initial_{kind}": Items(_INITIAL_ID, 100),
                "max_selected_items": Number(1),
            }
        )
        for kind in ("users", "conversations", "channels")
    },
    "datepicker": Shape({**_SELECT, "initial_date": Str(10, pattern=r"\d{4}-\d{2}-\d{2}")}),
    "timepicker": Shape(
        {**_SELECT, "initial_time": Str(5, pattern=r"\d{2}:\d{2}"), "timezone": Str(64)}
    ),
    "datetimepicker": Shape(
        {
            "action_id": ACTION_ID,
            "initial_date_time": Number(1_000_000_000, 9_999_999_999),
            "confirm": CONFIRM,
            "focus_on_load": Flag(),
        }
    ),
    "checkboxes": Shape(
        {
            "action_id": ACTION_ID,
            "options": Items(Part("rich_option"), 10),
            "initial_options": Items(Part("rich_option"), 10),
            "confirm": CONFIRM,
            "focus_on_load": Flag(),
        },
        required=("options",),
    ),
    "radio_buttons": Shape(
        {
            "action_id": ACTION_ID,
            "options": Items(Part("rich_option"), 10),
            "initial_option": Part("rich_option"),
            "confirm": CONFIRM,
            "focus_on_load": Flag(),
        },
        required=("options",),
    ),
    "plain_text_input": Shape(
        {
            **_INPUT,
            "initial_value": Str(3000, min=0),
            "multiline": Flag(),
            "min_length": Number(0, 3000),
            "max_length": Number(1, 3000),
        }
    ),
    **{
        kind: Shape({**_INPUT, "initial_value": Str(3000, min=0)})
        for kind in ("email_text_input", "url_text_input")
    },
    "number_input": Shape(
        {
            **_INPUT,
            "is_decimal_allowed": Flag(),
            "initial_value": Str(64),
            "min_value": Str(64),
            "max_value": Str(64),
        },
        required=("is_decimal_allowed",),
    ),
    # Rich text
    "rich_text_section": Shape({"elements": Items(Typed(RICH_PARTS))}, required=("elements",)),
    "rich_text_quote": Shape(
        {"elements": Items(Typed(RICH_PARTS)), "border": Number(0, 1)}, required=("elements",)
    ),
    "rich_text_preformatted": Shape(
        {"elements": Items(Typed(("text", "link"))), "border": Number(0, 1)},
        required=("elements",),
    ),
    "rich_text_list": Shape(
        {
            "elements": Items(Typed(("rich_text_section",))),
            "style": Str(choices=("bullet", "ordered")),
            "indent": Number(0, 8),
            "offset": Number(0),
            "border": Number(0, 1),
        },
        required=("elements", "style"),
    ),
    "text": Shape({"text": Str(), "style": _STYLE}, required=("text",)),
    "link": Shape(
        {"url": URL, "text": Str(), "style": _STYLE, "unsafe": Flag()}, required=("url",)
    ),
    "emoji": Shape(
        {"name": Str(255), "unicode": Str(64), "skin_tone": Number(1, 6), "style": _STYLE},
        required=("name",),
    ),
    "user": Shape({"user_id": Str(64), "style": _STYLE}, required=("user_id",)),
    "usergroup": Shape({"usergroup_id": Str(64), "style": _STYLE}, required=("usergroup_id",)),
    "channel": Shape({"channel_id": Str(64), "style": _STYLE}, required=("channel_id",)),
    "team": Shape({"team_id": Str(64), "style": _STYLE}, required=("team_id",)),
    "broadcast": Shape(
        {"range": Str(choices=("here", "channel", "everyone")), "style": _STYLE},
        required=("range",),
    ),
    "date": Shape(
        {
            "timestamp": Number(0),
            "format": Str(255),
            "url": URL,
            "fallback": Str(255),
            "style": _STYLE,
        },
        required=("timestamp", "format"),
    ),
    "color": Shape({"value": Str(16), "style": _STYLE}, required=("value",)),
    # Parts without a type
    "style": Shape({name: Flag() for name in ("bold", "italic", "strike", "code", "underline")}),
    # slack_sdk takes mrkdwn here, Slack's reference says plain_text only.
    "confirm": Shape(
        {
            "title": Text(100, PLAIN),
            "text": Text(300, PLAIN),
            "confirm": Text(30, PLAIN),
            "deny": Text(30, PLAIN),
            "style": Str(choices=("primary", "danger")),
        },
        required=("title", "text", "confirm", "deny"),
    ),
    # A value of 75 in `@slack/types`, 150 in slack_sdk.
    "option": Shape(
        {
            "text": Text(75, PLAIN),
            "value": Str(75),
            "description": Text(75, PLAIN),
            "url": URL,
        },
        required=("text", "value"),
    ),
    "rich_option": Shape(
        {"text": Text(75), "value": Str(75), "description": Text(75)},
        required=("text", "value"),
    ),
    "option_group": Shape(
        {"label": Text(75, PLAIN), "options": _OPTIONS}, required=("label", "options")
    ),
    "slack_file": Shape({"id": Str(64), "url": URL}, exactly=(("id", "url"),)),
    "column_setting": Shape(
        {"align": Str(choices=("left", "center", "right")), "is_wrapped": Flag()}
    ),
    "dispatch_action_config": Shape(
        {"trigger_actions_on": Items(Str(choices=("on_enter_pressed", "on_character_entered")), 2)},
        required=("trigger_actions_on",),
    ),
    # Views
    "modal": Shape(
        {
            "title": Text(24, PLAIN),
            "submit": Text(24, PLAIN),
            "close": Text(24, PLAIN),
            "blocks": Items(Typed(BLOCK_TYPES), MAX_BLOCKS["modal"]),
            "private_metadata": Str(3000, min=0),
            "callback_id": Str(255, min=0),
            "external_id": Str(255, min=0),
            "clear_on_close": Flag(),
            "notify_on_close": Flag(),
            "submit_disabled": Flag(),
        },
        required=("title", "blocks"),
    ),
    "home": Shape(
        {
            "blocks": Items(Typed(BLOCK_TYPES), MAX_BLOCKS["home"]),
            "private_metadata": Str(3000, min=0),
            "callback_id": Str(255, min=0),
            "external_id": Str(255, min=0),
        },
        required=("blocks",),
    ),
}

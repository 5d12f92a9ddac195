"""What a reviewer reads, as plain text. Literal: nothing is hidden, folded or interpreted.

`render` is for golden tests and evidence; `literal_text` gives back exactly the untrusted text
that a card carries, to be compared with what was to be approved.
"""

from __future__ import annotations

from collections.abc import Iterator

from bot.sandbox.echo import decode_text
from bot.sandbox.model import Json


def render_message(text: str, blocks: list[Json]) -> str:
    """Render a message as a client does: the text is only a fallback once there are blocks."""
    return render(blocks) if blocks else text


def render_view(view: Json) -> str:
    """Render a modal or Home tab with its title and its two buttons."""
    lines = [f"═ {_text(view['title'])} ═"] if "title" in view else []
    lines.append(render(view.get("blocks", [])))
    buttons = [f"[{_text(view[key])}]" for key in ("close", "submit") if key in view]
    return "\n".join(line for line in (*lines, " ".join(buttons)) if line)


def render(blocks: list[Json]) -> str:
    """Render blocks top to bottom, one block after the other."""
    return "\n".join(line for block in blocks for line in _block(block))


def literal_text(blocks: list[Json], *, block_id: str | None = None) -> str:
    """Join the text of preformatted parts, or if there are none, of plain text, in order."""
    chosen = [b for b in blocks if block_id in (None, b.get("block_id"))]
    preformatted = list(_preformatted(chosen))
    return "".join(preformatted) if preformatted else "\n".join(_plain_texts(chosen))


def _preformatted(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _preformatted(item)
    elif isinstance(node, dict):
        if node.get("type") == "rich_text_preformatted":
            yield "".join(_rich_part(part) for part in node["elements"])
        else:
            yield from _preformatted([v for v in node.values() if isinstance(v, dict | list)])


def _plain_texts(node: object) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _plain_texts(item)
    elif isinstance(node, dict):
        if node.get("type") == "plain_text":
            yield node["text"]
        elif node.get("type") != "button":
            yield from _plain_texts([v for v in node.values() if isinstance(v, dict | list)])


def _text(node: Json) -> str:
    text = str(node.get("text", ""))
    return decode_text(text) if node.get("type") == "mrkdwn" else text


def _block(block: Json) -> Iterator[str]:
    match block["type"]:
        case "header":
            yield f"# {_text(block['text'])}"
        case "divider":
            yield "---"
        case "section":
            yield from _section(block)
        case "context":
            yield "· " + " ".join(_element(e) for e in block["elements"])
        case "actions":
            yield " ".join(_element(e) for e in block["elements"])
        case "rich_text":
            for element in block["elements"]:
                yield from _rich_element(element)
        case "input":
            optional = " (optional)" if block.get("optional") else ""
            yield f"{_text(block['label'])}{optional}: {_element(block['element'])}"
        case "table":
            for row in block["rows"]:
                yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
        case "markdown" | "alert":
            text = block["text"]
            yield text if isinstance(text, str) else f"! {_text(text)}"
        case _:
            yield _element(block)


def _section(block: Json) -> Iterator[str]:
    if "text" in block:
        yield _text(block["text"])
    for item in block.get("fields", []):
        yield f"  {_text(item)}"
    if "accessory" in block:
        yield _element(block["accessory"])


def _element(element: Json) -> str:
    match element["type"]:
        case "plain_text" | "mrkdwn":
            return _text(element)
        case "button":
            asked = element.get("confirm")
            label = f"[{_text(element['text'])}]"
            if asked is None:
                return label
            return f"{label}(asks: {_text(asked['title'])} {_text(asked['text'])})"
        case "image":
            return f"(image: {element['alt_text']})"
        case "overflow" | "static_select" | "radio_buttons" | "checkboxes":
            options = " / ".join(_text(o["text"]) for o in element.get("options", []))
            return f"<{options}>"
        case "card":
            parts = [_text(element[k]) for k in ("title", "subtitle", "body") if k in element]
            parts += [_element(button) for button in element.get("actions", [])]
            return " — ".join(parts)
        case "carousel":
            return "\n".join(_element(card) for card in element["elements"])
        case "task_card":
            more = [
                line
                for key in ("details", "output")
                for part in element.get(key, {}).get("elements", [])
                for line in _rich_element(part)
            ]
            return " — ".join([f"({element['status']}) {element['title']}", *more])
        case "plan":
            return "\n".join([element["title"], *map(_element, element.get("tasks", []))])
        case kind:
            return f"<{element.get('initial_value', kind)}>"


def _cell(cell: Json) -> str:
    if cell["type"] == "raw_text":
        return str(cell["text"])
    return " ".join(line for element in cell["elements"] for line in _rich_element(element))


def _rich_element(element: Json) -> Iterator[str]:
    match element["type"]:
        case "rich_text_preformatted":
            yield "```"
            yield "".join(_rich_part(part) for part in element["elements"])
            yield "```"
        case "rich_text_quote":
            yield "> " + "".join(_rich_part(part) for part in element["elements"])
        case "rich_text_list":
            for item in element["elements"]:
                yield "- " + "".join(_rich_part(part) for part in item["elements"])
        case _:
            yield "".join(_rich_part(part) for part in element["elements"])


def _rich_part(part: Json) -> str:
    match part["type"]:
        case "text":
            return str(part["text"])
        case "link":
            label = part.get("text")
            return part["url"] if label in (None, part["url"]) else f"{label} <{part['url']}>"
        case "user":
            return f"@{part['user_id']}"
        case "usergroup":
            return f"@{part['usergroup_id']}"
        case "channel":
            return f"#{part['channel_id']}"
        case "broadcast":
            return f"@{part['range']}"
        case "emoji":
            return f":{part['name']}:"
        case "date":
            return str(part.get("fallback", part["timestamp"]))
        case "team":
            return str(part["team_id"])
        case _:
            return str(part["value"])

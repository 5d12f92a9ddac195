"""Reads a drawing back as a reviewer does, independently of how it was drawn.

Nothing of the renderer is used here: the escapes are undone by hand, and whatever is no escape, no
end or no row makes the reading fail, as does everything that was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

OWN_TYPES = frozenset(
    {"header", "context", "actions", "button", "rich_text", "rich_text_section"}
    | {"rich_text_preformatted", "text", "plain_text", "user", "date", "link", "overflow"}
    | {"rich_text_list", "plan", "task_card"}
)
"""Everything that a card is made of: no markup, no broadcasts; ``links`` says which links."""

DERIVED = "(made from the text by a fixed template)"
"""Stands for an HTML part that is not shown, because it says what the text says."""

_OPENING, _CLOSING = "\u27e6", "\u27e7"
_END = f"{_OPENING}end{_CLOSING}"
_EMPTY = f"{_OPENING}empty{_CLOSING}"
_GOES_ON = f"{_OPENING}the line goes on{_CLOSING}"
_NOTHING = "–"
_WIDTH = 11
"""Characters of the name of a row and the space behind it."""


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every JSON object of some blocks, outermost first."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from nodes(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from nodes(item)


def types(tree: Any) -> set[str]:
    """The types of all objects that have one."""
    return {node["type"] for node in nodes(tree) if "type" in node}


def links(tree: Any) -> list[tuple[str, str]]:
    """The label and the target of every link."""
    return [(node["text"], node["url"]) for node in nodes(tree) if node.get("type") == "link"]


def literals(tree: Any) -> list[str]:
    """The texts of the preformatted parts, in order."""
    return [
        "".join(element["text"] for element in node["elements"])
        for node in nodes(tree)
        if node.get("type") == "rich_text_preformatted"
    ]


def outside_literals(tree: Any) -> str:
    """Every string of some blocks that does not stand in a literal part, joined."""
    if isinstance(tree, dict):
        if tree.get("type") in {"rich_text_preformatted", "plain_text"}:
            return ""
        return "\n".join(outside_literals(value) for value in tree.values())
    if isinstance(tree, list):
        return "\n".join(outside_literals(item) for item in tree)
    return str(tree)


def part(blocks: Sequence[Any], label: str) -> str:
    """The literal text under the label that begins so, with the blocks that go on with it."""
    for position, block in enumerate(blocks):
        if block["type"] != "rich_text" or len(block["elements"]) != 2:
            continue
        section, preformatted = block["elements"]
        words = section["elements"][0].get("text", "")
        if not words.startswith(label) or preformatted["type"] != "rich_text_preformatted":
            continue
        pieces = literals([preformatted])
        for further in blocks[position + 1 :]:
            if further["type"] != "rich_text" or len(further["elements"]) != 1:
                break
            pieces += literals([further])
        return "".join(piece.removesuffix(_GOES_ON) for piece in pieces)
    raise AssertionError(f"no part is labelled {label!r}")


def has_part(blocks: Sequence[Any], label: str) -> bool:
    """Whether a part is labelled so."""
    try:
        part(blocks, label)
    except AssertionError:
        return False
    return True


def undo(shown: str) -> str:
    """Turn revealed text back into what it was made from; fails on what is no escape."""
    text: list[str] = []
    position = 0
    while position < len(shown):
        opening = shown.find(_OPENING, position)
        if opening < 0:
            text.append(shown[position:])
            break
        closing = shown.find(_CLOSING, opening)
        assert closing > 0, f"an escape has no end: {shown[opening : opening + 40]!r}"
        text.append(shown[position:opening])
        text.append(_unescaped(shown[opening + 1 : closing]))
        position = closing + 1
    return "".join(text)


def _unescaped(escape: str) -> str:
    code, _, times = escape.partition("×")
    assert code.startswith("U+"), f"this is no escape: {escape!r}"
    character = chr(int(code.removeprefix("U+"), 16))
    assert f"U+{ord(character):04X}" == code, "it is spelled in one way alone"
    assert times == "" or (times == str(int(times)) and int(times) > 3)
    return character * int(times or 1)


def body(blocks: Sequence[Any], label: str = "Text") -> str:
    """One body of the email, as it was before it was revealed; fails unless all of it is there."""
    shown = part(blocks, label)
    assert shown.endswith(_END), f"the end is not shown: {shown[-60:]!r}"
    return undo(shown[: -len(_END)])


def rows(shown: str) -> list[tuple[str, str]]:
    """The names and values of rows, as they were before they were revealed."""
    found = []
    for row in shown.split("\n"):
        name, value = row[:_WIDTH].rstrip(), row[_WIDTH:]
        found.append((name, "" if value == _EMPTY else undo(value)))
    return found


def field(blocks: Sequence[Any], name: str) -> str:
    """The first value of a header field of the email, as it was before it was revealed."""
    for found, value in rows(part(blocks, "The email")):
        if found == name:
            return value
    raise AssertionError(f"no field is named {name!r}")


def action_ids(blocks: Sequence[Any]) -> list[str]:
    """The actions that a person can take on a card, in order."""
    return [node["action_id"] for node in nodes(blocks) if node.get("type") == "button"]


def deciding(blocks: Sequence[Any]) -> list[str]:
    """Those of them by which a person decides, or comes to where one can."""
    return [action for action in action_ids(blocks) if action in {"approve", "review", "reject"}]


@dataclass(frozen=True)
class Reading:
    """What a reviewer reads of an operation. Mailboxes are (name, address, ASCII address)."""

    ticket: dict[str, str]
    sender: tuple[str, str, str]
    to: list[tuple[str, str, str]]
    cc: list[tuple[str, str, str]]
    bcc: list[tuple[str, str, str]]
    reply_to: tuple[str, str, str] | None
    subject: str
    message_id: str
    headers: list[tuple[str, str]]
    through: str
    text: str
    html: str | None


def read_card(blocks: Sequence[Any]) -> Reading:
    """Read everything that an approval of these blocks would bind; fails if something is cut."""
    fields = rows(part(blocks, "The email"))

    def only(name: str) -> str:
        [value] = [value for found, value in fields if found == name]
        return value

    def boxes(name: str) -> list[tuple[str, str, str]]:
        values = [value for found, value in fields if found == name]
        return [] if values == [_NOTHING] else [_mailbox(value) for value in values]

    [sender] = boxes("From")
    reply_to = boxes("Reply-To")
    return Reading(
        ticket=dict(rows(part(blocks, "Ticket"))),
        sender=sender,
        to=boxes("To"),
        cc=boxes("Cc"),
        bcc=boxes("Bcc"),
        reply_to=reply_to[0] if reply_to else None,
        subject=only("Subject"),
        message_id=only("Message-ID"),
        headers=[_header(value) for name, value in fields if name == "Header"],
        through=only("Through"),
        text=body(blocks),
        html=_html(blocks),
    )


def _html(blocks: Sequence[Any]) -> str | None:
    if has_part(blocks, "HTML part"):
        return body(blocks, "HTML part")
    said = [n["text"] for n in nodes(list(blocks)) if n.get("type") == "plain_text"]
    return DERIVED if any(s.startswith("The HTML part is made from this") for s in said) else None


def _header(value: str) -> tuple[str, str]:
    name, rest = _quoted(value, '"', '"')
    assert rest.startswith(" ")
    return name, rest[1:]


def _mailbox(value: str) -> tuple[str, str, str]:
    name = ""
    if value.startswith('"'):
        name, value = _quoted(value, '"', '"')
        assert value.startswith(" ")
        value = value[1:]
    address, rest = _quoted(value, "<", ">")
    ascii_address = address
    if rest.startswith(" = <"):
        ascii_address, rest = _quoted(rest[3:], "<", ">")
    elif rest.startswith(" for <"):
        address, rest = _quoted(rest[5:], "<", ">")
    if rest:
        assert name == ""
        name, rest = _quoted(rest[1:], '"', '"')
    assert rest == ""
    return name, address, ascii_address


def _quoted(text: str, opening: str, closing: str) -> tuple[str, str]:
    """Read what stands between two signs, where a backslash takes the next sign literally."""
    assert text.startswith(opening), f"{text[:40]!r} does not begin with {opening}"
    said: list[str] = []
    position = 1
    while text[position] != closing:
        position += text[position] == "\\"
        said.append(text[position])
        position += 1
    return "".join(said), text[position + 1 :]

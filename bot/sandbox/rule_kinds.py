"""The few kinds of rule that the table in `block_rules.py` is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Str:
    """A string of `min` to `max` characters, from `choices` if there are any."""

    max: int | None = None
    min: int = 1
    choices: tuple[str, ...] = ()
    pattern: str | None = None


@dataclass(frozen=True)
class Flag:
    """A JSON boolean."""


@dataclass(frozen=True)
class Number:
    """An integer within bounds."""

    min: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Text:
    """A text object of the given kinds whose text has `min` to `max` characters."""

    max: int = 3000
    kinds: tuple[str, ...] = ("plain_text", "mrkdwn")
    min: int = 1


@dataclass(frozen=True)
class Part:
    """An object without a `type`, described by `SHAPES[name]`."""

    name: str


@dataclass(frozen=True)
class Typed:
    """An object whose `type` is one of `types`, described by `SHAPES[type]`."""

    types: tuple[str, ...]


@dataclass(frozen=True)
class Items:
    """A list of `min` to `max` things that follow `item`."""

    item: Rule
    max: int | None = None
    min: int = 1


Rule = Str | Flag | Number | Text | Part | Typed | Items


@dataclass(frozen=True)
class Shape:
    """Which fields an object may have; `at_least` and `exactly` hold groups of names."""

    fields: Mapping[str, Rule]
    required: tuple[str, ...] = ()
    at_least: tuple[tuple[str, ...], ...] = ()
    exactly: tuple[tuple[str, ...], ...] = ()
    surfaces: tuple[str, ...] = field(default=("message", "modal", "home"))

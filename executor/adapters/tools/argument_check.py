"""Arguments against a tool's own schema, before people are asked about a call that must fail.

A convenience and no guard: the server checks for itself. So only what is quick is checked, and only
as much of it: a schema of somebody else's can be made to take for ever, and the worker with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from jsonschema import ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend, validator_for
from referencing import Registry

from executor.domain.payloads import JsonObject

LONGEST_PROBLEM = 300
LONGEST_SCHEMA = 50_000
"""Characters of JSON; a longer schema is left to its server."""
MOST_STEPS = 2_000
"""Keywords that are applied to one call's arguments, long lists counting for more."""

_SLOW = frozenset({"pattern", "uniqueItems", "unevaluatedItems", "unevaluatedProperties"})
_ENTRIES_A_STEP = 10

Keyword: TypeAlias = Callable[..., "Iterator[ValidationError] | None"]


class _TooLong(Exception):
    """This schema takes more steps than are made for it."""


def problem_with_arguments(schema: JsonObject, arguments: JsonObject) -> str | None:
    """Say why a schema refuses these arguments; ``None`` where it does not, or cannot be used."""
    written = json.dumps(schema)
    # A part may name a dialect of its own, which would bring all keywords back.
    own_dialects = written.count('"$schema"') > ("$schema" in schema)
    if len(written) > LONGEST_SCHEMA or '"patternProperties"' in written or own_dialects:
        return None
    try:
        kind = validator_for(schema)
        kind.check_schema(schema)
        counted = extend(kind, _counted(kind.VALIDATORS))
        error = best_match(counted(schema, registry=Registry()).iter_errors(arguments))
    # Whatever breaks on it, a schema that cannot be used is one that refuses nothing.
    except Exception:
        return None
    if error is None:
        return None
    where = "".join(f"[{part!r}]" for part in error.absolute_path)
    told = f"{where}: {error.message}" if where else error.message
    return told if len(told) <= LONGEST_PROBLEM else f"{told[:LONGEST_PROBLEM]} […]"


def _counted(keywords: Mapping[str, Keyword]) -> dict[str, Keyword]:
    """Count the steps of the keywords, and leave those to the server whose steps may be long."""
    left = MOST_STEPS

    def counting(apply: Keyword) -> Keyword:
        def step(*given: Any) -> Iterator[ValidationError] | None:  # noqa: ANN401 as they are
            nonlocal left
            _, value, instance, _ = given
            left -= 1 + (_entries(value) + _entries(instance)) // _ENTRIES_A_STEP
            if left < 0:
                raise _TooLong
            return apply(*given)

        return step

    return {
        name: _left_to_the_server if name in _SLOW else counting(apply)
        for name, apply in keywords.items()
    }


def _entries(value: object) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _left_to_the_server(*_: object) -> Iterator[ValidationError]:
    return iter(())

"""A schema of somebody else's refuses arguments, and never holds the worker up."""

from __future__ import annotations

import time

import pytest

from executor.adapters.tools.argument_check import LONGEST_PROBLEM, problem_with_arguments
from executor.domain.payloads import JsonObject

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def _about(schema: object) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}}  # type: ignore[dict-item]


def _doubling(times: int) -> JsonObject:
    parts = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(times)
    }
    return {**_about({"$ref": "#/$defs/d0"}), "$defs": {**parts, f"d{times}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "arguments", "problem"),
    [
        ({"required": ["a"]}, {}, "'a' is a required property"),
        (_about({"type": "integer"}), {"a": "x"}, "['a']: 'x' is not of type 'integer'"),
        (_about({"enum": [1, 2]}), {"a": 3}, "['a']: 3 is not one of [1, 2]"),
        ({"$schema": DRAFT_7, "required": ["a"]}, {}, "'a' is a required property"),
        ({**_about({"$ref": "#/$defs/n"}), "$defs": {"n": {"minimum": 9}}}, {"a": 1}, "minimum"),
    ],
)
def test_what_is_wrong_is_said(schema: JsonObject, arguments: JsonObject, problem: str) -> None:
    assert problem in str(problem_with_arguments(schema, arguments))


def test_a_long_problem_is_cut() -> None:
    told = problem_with_arguments(_about({"type": "integer"}), {"a": "x" * 1_000})
    assert told is not None
    assert len(told) <= LONGEST_PROBLEM + len(" […]")


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        pytest.param(_doubling(30), {"a": 1}, id="doubles with each reference"),
        pytest.param({"$ref": "#"}, {}, id="refers to itself"),
        pytest.param(
            _about({"$schema": DRAFT_7, "pattern": "^(a+)+$"}),
            {"a": "a" * 40 + "!"},
            id="an expression without end, in a dialect of its own",
        ),
        pytest.param(
            {"patternProperties": {"^(a+)+$": {}}}, {"a" * 40 + "!": 1}, id="names without end"
        ),
        pytest.param(
            _about({"uniqueItems": True}), {"a": [{"n": n} for n in range(6_000)]}, id="all pairs"
        ),
        pytest.param(
            _about({"items": {"enum": list(range(5_000))}}), {"a": [-1] * 10_000}, id="all of both"
        ),
    ],
)
def test_a_check_that_would_take_for_ever_is_left_to_the_server(
    schema: JsonObject, arguments: JsonObject
) -> None:
    begun = time.process_time()
    assert problem_with_arguments(schema, arguments) is None
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"required": "text"},
        {"$schema": 3},
        {"$ref": "http://127.0.0.1:1/schema"},
        _about({"$ref": "#/$defs/none"}),
        {"properties": []},
    ],
    ids=repr,
)
def test_a_schema_that_cannot_be_used_refuses_nothing(schema: JsonObject) -> None:
    assert problem_with_arguments(schema, {"a": 1}) is None

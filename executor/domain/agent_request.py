"""What another bot in Slack may ask for, read strictly: a run, or the closing of one ticket.

A request that cannot be read becomes one sentence that says what to write instead. Nothing of it is
repaired, and nothing of what it says is repeated but names of fields, shortened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from executor.domain.closing import ProposeClosing, arguments_problem
from executor.domain.errors import InvalidContent
from executor.domain.intent import CLOSE_TICKET
from executor.domain.payloads import digest

RUN = "run"
LONGEST_GOAL = 4_000
LARGEST_VERSION = 2**53 - 1
"""The largest whole number that JSON carries from one program to another unchanged."""

NO_OBJECT = (
    "Write the request as one JSON object with kind, request_key and arguments, or as plain words."
)


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunArguments(_Read):
    """What a run shall reach."""

    goal: StrictStr = Field(min_length=1, max_length=LONGEST_GOAL)


class ClosingArguments(ProposeClosing):
    """What a model's proposal says, and the version that the agent has read, if it names one.

    The built-in desk counts versions; of an outside one it is the ticket's ``updated_at``.
    """

    version: (
        Annotated[StrictInt, Field(ge=0, le=LARGEST_VERSION)]
        | Annotated[StrictStr, Field(min_length=1, max_length=64)]
        | None
    ) = None


class _Envelope(_Read):
    kind: Literal["run", "close_ticket"]
    request_key: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """One request; without a ``request_key`` only its message tells it from others."""

    request_key: str | None
    arguments: RunArguments | ClosingArguments

    @property
    def kind(self) -> str:
        """What is asked for: ``run``, or the kind of an operation."""
        return RUN if isinstance(self.arguments, RunArguments) else CLOSE_TICKET

    @property
    def content_digest(self) -> bytes:
        """SHA-256 of what is asked for, whichever way it was written."""
        return digest({"kind": self.kind, "arguments": self.arguments.model_dump(mode="json")})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A request that says nothing that could be done; ``problem`` may name fields of it."""

    problem: str


def read_request(document: object) -> AgentRequest | Unreadable:
    """Read a request; total, whatever it is given."""
    if not isinstance(document, Mapping):
        return Unreadable(NO_OBJECT)
    try:
        envelope = _Envelope.model_validate(dict(document))
        read: type[RunArguments | ClosingArguments]
        read = RunArguments if envelope.kind == RUN else ClosingArguments
        return _checked(envelope.request_key, read.model_validate(envelope.arguments))
    except ValidationError as error:
        return _unreadable(error)


def plain_words(text: str) -> AgentRequest | Unreadable:
    """Take plain words for the goal of a run."""
    if not text:
        return Unreadable(NO_OBJECT)
    try:
        return _checked(None, RunArguments(goal=text))
    except ValidationError as error:
        return _unreadable(error)


def _unreadable(error: ValidationError) -> Unreadable:
    errors = error.errors(include_url=False, include_input=False)
    return Unreadable(arguments_problem(errors, of="this request"))


def _checked(
    request_key: str | None, arguments: RunArguments | ClosingArguments
) -> AgentRequest | Unreadable:
    request = AgentRequest(request_key, arguments)
    try:
        _ = request.content_digest
    except InvalidContent as error:
        return Unreadable(f"It cannot be kept as it is. {error.remedy}")
    return request

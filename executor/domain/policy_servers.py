"""Servers outside whose tools a run may use (Model Context Protocol).

A tool is an effect, which people approve, unless the policy says that it only reads: what a server
says of its own tools is a hint and no proof.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from executor.domain.policy_money import Amount
from executor.domain.policy_names import Who
from executor.domain.policy_section import Misplaced, Section

ServerName = Annotated[str, Field(pattern=r"^[a-z](?:_?[a-z0-9])*$", max_length=30)]
"""No two underscores in a row: they part the names of server and tool where a model reads them."""
ToolOfServer = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,99}$")]


class ServerSection(Section):
    """One server: the ``command`` that starts it or the ``url`` where it listens, never both.

    ``tools`` are those that a model is shown, ``None``: all that the server names. Of these,
    ``reads`` run at once and all others wait for people. ``requesters`` are whose runs may use
    them, ``None``: whoever may ask for runs. ``environment`` names the variables that the command
    is given, and ``token_from`` the one that holds the bearer token of the ``url``; their values
    stand in no policy. ``costs`` are micro-dollars a call.
    """

    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    url: str | None = Field(default=None, pattern=r"^https?://", max_length=2_000)
    reads: tuple[ToolOfServer, ...] = ()
    tools: tuple[ToolOfServer, ...] | None = Field(default=None, min_length=1)
    requesters: tuple[Who, ...] | None = Field(default=None, min_length=1)
    environment: tuple[EnvironmentName, ...] = ()
    token_from: EnvironmentName | None = None
    costs: dict[ToolOfServer, Amount] = Field(default_factory=dict)
    timeout_seconds: int = Field(default=60, ge=1, le=3_600)

    @model_validator(mode="after")
    def _it_can_be_reached_in_one_way(self) -> ServerSection:
        if (self.command is None) == (self.url is None):
            raise Misplaced("write command or url, one of them", "command")
        if self.command is None and self.environment:
            raise Misplaced("only a command is given variables; write token_from", "environment")
        if self.url is None and self.token_from is not None:
            raise Misplaced("only a url is given a token; write environment", "token_from")
        if self.url is not None and "@" in self.url.partition("//")[2].partition("/")[0]:
            raise Misplaced("a url takes no user; token_from names what holds its token", "url")
        unknown = sorted(set(self.reads) - set(self.tools or self.reads))
        if unknown:
            raise Misplaced(f"{unknown[0]} stands in reads but not in tools; add it there", "reads")
        unused = sorted(set(self.costs) - set(self.tools or self.costs))
        if unused:
            raise Misplaced(f"{unused[0]} stands in costs but not in tools; add it there", "costs")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables whose values are confided to it."""
        return (*self.environment, *(() if self.token_from is None else (self.token_from,)))

    def shows(self, tool: str) -> bool:
        """Say whether a model may be shown this tool, where it is one of the server's."""
        return self.tools is None or tool in self.tools

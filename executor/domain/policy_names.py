"""How a policy names people, places and times."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from executor.domain.new_ticket import LANGUAGE

UserId = Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]
Member = Annotated[str, Field(pattern=r"^(?:[UW][A-Z0-9]{2,20}|group:S[A-Z0-9]{2,20})$")]
"""A Slack user id, or ``group:`` and the id of a Slack user group."""
RoleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Who = Annotated[
    str,
    Field(pattern=r"^(?:[UW][A-Z0-9]{2,20}|group:S[A-Z0-9]{2,20}|role:[a-z][a-z0-9_-]{0,39})$"),
]
"""A member, or ``role:`` and a role's name."""
ChannelId = Annotated[str, Field(pattern=r"^[CG][A-Z0-9]{2,20}$")]
Seconds = Annotated[int, Field(ge=1, le=31_536_000)]
LanguageTag = Annotated[str, Field(pattern=LANGUAGE)]
Everyone = Literal["everyone"]
ToolName = Literal["close_ticket", "reopen_ticket", "call_tool"]

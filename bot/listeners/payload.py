"""What a click, a view or a command says, read strictly; what it shows is never taken from it.

Source: docs.slack.dev, block_actions, view_submission and slash commands (2026). ``team`` is null
for installations across an organisation; the clicker's own workspace is ``user.team_id``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from executor.domain.ids import PrincipalId, TenantId, slack_principal

SlackId = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]{1,30}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Team(_Part):
    """The workspace that the app is installed in."""

    id: SlackId


class User(_Part):
    """Who acts, and where that person belongs."""

    id: SlackId
    team_id: SlackId | None = None


class Container(_Part):
    """Where an element stood; views have no channel."""

    channel_id: str = Field(default="", max_length=64)
    message_ts: str = Field(default="", max_length=64)


class Action(_Part):
    """The element that was pressed."""

    action_id: str = Field(max_length=255)
    block_id: str = Field(default="", max_length=255)
    value: str = Field(default="", max_length=2_000)


class _Acted(_Part):
    team: Team | None = None
    user: User

    def is_for(self, team: str) -> bool:
        """Say whether this was meant for the installation in ``team``."""
        return self.team is None or self.team.id == team

    def principal(self, tenant: TenantId) -> PrincipalId:
        """Name who acted, by that person's own workspace."""
        return slack_principal(self.user.team_id or tenant, self.user.id)


class ButtonClick(_Acted):
    """A press of one element of a message or a view."""

    container: Container = Container()
    actions: tuple[Action, ...] = Field(min_length=1, max_length=1)
    trigger_id: str = Field(default="", max_length=255)

    @property
    def action(self) -> Action:
        """The one element that was pressed."""
        return self.actions[0]


class InputState(_Part):
    """What was typed into one element."""

    value: str | None = Field(default=None, max_length=10_000)


class ViewState(_Part):
    """Everything that was typed, by block and action."""

    values: dict[str, dict[str, InputState]] = Field(default_factory=dict)


class SubmittedView(_Part):
    """The view that was submitted; ``private_metadata`` comes from the client and is a hint."""

    private_metadata: str = Field(default="", max_length=3_000)
    state: ViewState = ViewState()


class ViewSubmission(_Acted):
    """A submitted modal."""

    view: SubmittedView

    def typed(self, block: str, action: str) -> str:
        """Return what was typed into one element, without the space around it."""
        given = self.view.state.values.get(block, {}).get(action)
        return (given.value or "").strip() if given is not None else ""


class SlashCommand(_Part):
    """A typed command; ``text`` is as it was typed: the manifest does not ask for escaping."""

    team_id: SlackId
    user_id: SlackId
    channel_id: str = Field(min_length=1, max_length=64)
    text: str = Field(default="", max_length=10_000)
    trigger_id: str = Field(min_length=1, max_length=255)

"""What a click, a view or a command says, read strictly; what it shows is never taken from it.

Source: docs.slack.dev, block_actions, view_submission and slash commands (2026). ``team`` is null
for installations across an organisation, which ``enterprise`` names then. ``user.team_id`` is the
clicker's own workspace: on Enterprise Grid any of theirs, or the organisation itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from executor.domain.ids import PrincipalId, TenantId, slack_principal

SlackId = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9]{1,30}$")]
Timestamp = Annotated[str, Field(pattern=r"^[0-9]{1,20}\.[0-9]{1,10}$")]
Printable = Annotated[str, Field(pattern=r"^[!-~]{1,255}$")]
"""What Slack mints to be handed back: it is sent on and stored, and never shown."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Team(_Part):
    """The workspace that the app is installed in."""

    id: SlackId


class Enterprise(_Part):
    """The organisation that the app's workspace is part of."""

    id: SlackId


class User(_Part):
    """Who acts, and where that person belongs."""

    id: SlackId
    team_id: SlackId | None = None


class Container(_Part):
    """Where an element stood; views have no channel, and only one person sees what is ephemeral."""

    channel_id: SlackId | Literal[""] = ""
    message_ts: Timestamp | Literal[""] = ""
    is_ephemeral: bool = False


class Option(_Part):
    """One of several things that can be chosen."""

    value: str = Field(default="", max_length=150)


class Action(_Part):
    """The element that was pressed."""

    action_id: Printable
    block_id: str = Field(default="", max_length=255)
    value: str = Field(default="", max_length=2_000)
    selected_option: Option | None = None


class _Acted(_Part):
    team: Team | None = None
    enterprise: Enterprise | None = None
    is_enterprise_install: bool = False
    user: User

    def is_for(self, team: str) -> bool:
        """Say whether this was meant for the installation in ``team``, an organisation's too.

        Where no workspace is named, the organisation has to be: then who acts decides.
        """
        organisation = self.enterprise.id if self.enterprise is not None else ""
        if self.is_enterprise_install and organisation == team:
            return True
        if self.team is None:
            return self.is_enterprise_install and bool(organisation) and not team.startswith("E")
        return self.team.id == team

    def principal(self, tenant: TenantId) -> PrincipalId:
        """Name who acted as the request has it: by that person's own workspace."""
        return slack_principal(self.user.team_id or tenant, self.user.id)


class ShownView(_Part):
    """The view that a pressed element stood in; what it carries is a hint."""

    type: str = Field(max_length=64)
    private_metadata: str = Field(default="", max_length=3_000)


class ButtonClick(_Acted):
    """A press of one element of a message or a view."""

    container: Container = Container()
    view: ShownView | None = None
    actions: tuple[Action, ...] = Field(min_length=1, max_length=1)
    trigger_id: Printable | Literal[""] = ""

    @property
    def action(self) -> Action:
        """The one element that was pressed."""
        return self.actions[0]


class InputState(_Part):
    """What was typed into one element, or chosen in it."""

    value: str | None = Field(default=None, max_length=10_000)
    selected_options: tuple[Option, ...] = Field(default=(), max_length=100)


class ViewState(_Part):
    """Everything that was typed, by block and action."""

    values: dict[str, dict[str, InputState]] = Field(default_factory=dict)


class SubmittedView(_Part):
    """The view that was submitted; ``private_metadata`` comes from the client and is a hint."""

    type: str = Field(max_length=64)
    private_metadata: str = Field(default="", max_length=3_000)
    state: ViewState = ViewState()


class ViewSubmission(_Acted):
    """A submitted modal."""

    view: SubmittedView

    def typed(self, block: str, action: str) -> str:
        """Return what was typed into one element, without the space around it."""
        return self.written(block, action).strip()

    def chosen(self, block: str, action: str) -> frozenset[str]:
        """Return which choices of one element are ticked."""
        given = self.view.state.values.get(block, {}).get(action)
        return frozenset() if given is None else frozenset(o.value for o in given.selected_options)

    def written(self, block: str, action: str) -> str:
        """Return what stands in one element, character for character."""
        given = self.view.state.values.get(block, {}).get(action)
        return (given.value or "") if given is not None else ""


class SlashCommand(_Part):
    """A typed command; ``text`` is as Slack encodes it: the manifest asks for that.

    ``team_id`` is the workspace in which it was typed; a form spells a boolean as a word.
    """

    team_id: SlackId
    enterprise_id: str = Field(default="", max_length=64)
    is_enterprise_install: bool = False
    user_id: SlackId
    channel_id: SlackId
    text: str = Field(default="", max_length=10_000)
    trigger_id: Printable

    def is_for(self, team: str) -> bool:
        """Say whether this was meant for the installation in ``team``, an organisation's too."""
        whole = self.is_enterprise_install and self.enterprise_id == team
        return self.team_id == team or whole

    def principal(self) -> PrincipalId:
        """Name who typed it as the request has it: by the workspace in which it was typed."""
        return slack_principal(self.team_id, self.user_id)

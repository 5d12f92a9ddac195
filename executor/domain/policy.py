"""The policy: who may ask, who may decide, how long, and how much; a document with a version.

The version is the SHA-256 of the document's canonical form. It stands in every intent; rules that
have become stricter since bind at the opening, for the active policy is read there again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from executor.domain.address import parse_mailbox
from executor.domain.errors import InvalidContent
from executor.domain.ids import PrincipalId, TenantId, is_policy, slack_principal, slack_user
from executor.domain.mail_text import validate_body
from executor.domain.payloads import JsonValue, digest
from executor.domain.transition import Reason, Refused

UserId = Annotated[str, Field(pattern=r"^[UW][A-Z0-9]{2,20}$")]
Everyone = Literal["everyone"]


class Permission(StrEnum):
    """What a principal may be allowed to do."""

    REQUEST = "request"
    APPROVE = "approve"
    CANCEL = "cancel"


class WhenMailIsNotSent(StrEnum):
    """What becomes of a ticket that we closed and whose closure email was proved not sent."""

    ASK = "ask"
    REOPEN = "reopen"
    LEAVE = "leave"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


@contextmanager
def _told_now() -> Iterator[None]:
    """Refuse with the policy what would be refused in every email that is made under it."""
    try:
        yield
    except InvalidContent as error:
        raise ValueError(f"{error.problem}. {error.remedy}") from error


class SlackSection(_Section):
    """Which workspace this installation serves, and where its cards go."""

    team: str = Field(pattern=r"^[TE][A-Z0-9]{2,20}$", description="id of the Slack workspace")
    channel: str = Field(pattern=r"^[CG][A-Z0-9]{2,20}$", description="id of the cards' channel")


class TenantSection(_Section):
    """How the tenant is called and where its days begin."""

    name: str = Field(default="Signoff", min_length=1, max_length=80)
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _timezone_exists(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(
                f"{value!r} is not an IANA time zone; write for example Europe/Amsterdam"
            ) from error
        return value


class PeopleSection(_Section):
    """Who may do what, by Slack user id; ``everyone`` means every full member of the team."""

    requesters: tuple[UserId, ...] | Everyone
    approvers: tuple[UserId, ...]

    @field_validator("approvers")
    @classmethod
    def _somebody_approves(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one approver, or nothing can ever be approved")
        return value


class ApprovalSection(_Section):
    """How many votes an operation needs, and how long they have."""

    quorum: int = Field(default=1, ge=1, le=20)
    decide_within_seconds: int = Field(default=86_400, ge=1, le=31_536_000)
    use_within_seconds: int = Field(default=3_600, ge=1, le=31_536_000)


class RunSection(_Section):
    """The bounds of one run; every run ends in a sentence that a person can read."""

    max_steps: int = Field(default=60, ge=1, le=10_000)
    max_seconds: int = Field(default=604_800, ge=1, le=31_536_000)
    max_rejections_in_a_row: int = Field(default=3, ge=1, le=100)
    max_tool_errors_in_a_row: int = Field(default=5, ge=1, le=100)
    max_output_tokens: int = Field(default=4_096, ge=1, le=1_000_000)
    budget_microusd: int = Field(default=2_000_000, ge=0)
    day_budget_microusd: int = Field(default=100_000_000, ge=0)


class EmailSection(_Section):
    """Who closure emails come from, and how long they may be."""

    sender: str = Field(alias="from", min_length=3, max_length=320)
    reply_to: str | None = Field(default=None, max_length=320)
    signature: str = Field(default="", max_length=500)
    max_text_characters: int = Field(default=20_000, ge=1, le=200_000)

    @field_validator("sender", "reply_to")
    @classmethod
    def _an_address_can_be_written_from(cls, value: str | None) -> str | None:
        if value is not None:
            with _told_now():
                parse_mailbox(value, field="address")
        return value

    @field_validator("signature")
    @classmethod
    def _the_signature_may_stand_in_a_mail(cls, value: str) -> str:
        with _told_now():
            validate_body(f"{value}.", limit=len(value) + 1, field="signature")
        return value


class TicketsSection(_Section):
    """What a desk may do by itself at a close, and what follows a close without its email."""

    allow_desk_notification: bool = False
    when_mail_is_not_sent: WhenMailIsNotSent = WhenMailIsNotSent.ASK


class Policy(_Section):
    """The whole policy file."""

    slack: SlackSection
    tenant: TenantSection = TenantSection()
    people: PeopleSection
    approval: ApprovalSection = ApprovalSection()
    run: RunSection = RunSection()
    email: EmailSection
    tickets: TicketsSection = TicketsSection()

    @model_validator(mode="after")
    def _the_quorum_can_be_reached(self) -> Policy:
        if self.approval.quorum > len(set(self.people.approvers)):
            raise ValueError(
                f"approval.quorum is {self.approval.quorum}, but people.approvers names only "
                f"{len(set(self.people.approvers))}; name more approvers or lower the quorum"
            )
        return self

    @property
    def tenant_id(self) -> TenantId:
        """The tenant is the Slack workspace."""
        return TenantId(self.slack.team)

    @property
    def version(self) -> str:
        """The document's digest, shortened to 16 hex digits for people."""
        return digest(self.as_document()).hex()[:16]

    def as_document(self) -> dict[str, JsonValue]:
        """Spell the policy as JSON, as it is stored and digested."""
        document: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True)
        return document

    def objection(self, principal: PrincipalId, permission: Permission) -> Refused | None:
        """Say why this principal may not do this, or ``None`` if it may.

        The policy itself asks for reopenings, and consents to them where it asks nobody else.
        """
        if is_policy(principal):
            return None if self._consents(permission) else Refused(Reason.POLICY_CHANGED)
        if self._permits(principal, permission):
            return None
        user = slack_user(principal)
        if user is not None and user[0] != self.slack.team:
            return Refused(Reason.OTHER_WORKSPACE)
        return Refused(Reason.NOT_PERMITTED, {"missing": permission.value})

    def _consents(self, permission: Permission) -> bool:
        when = self.tickets.when_mail_is_not_sent
        match permission:
            case Permission.REQUEST:
                return when is not WhenMailIsNotSent.LEAVE
            case Permission.APPROVE:
                return when is WhenMailIsNotSent.REOPEN
            case Permission.CANCEL:
                return False

    def _permits(self, principal: PrincipalId, permission: Permission) -> bool:
        approvers = {slack_principal(self.slack.team, user) for user in self.people.approvers}
        match permission:
            case Permission.APPROVE:
                return principal in approvers
            case Permission.REQUEST | Permission.CANCEL:
                if self.people.requesters == "everyone":
                    return principal.startswith(f"slack:{self.slack.team}:")
                requesters = {slack_principal(self.slack.team, u) for u in self.people.requesters}
                return principal in requesters


def policy_from(document: object) -> Policy:
    """Read a stored policy document; raises ``InvalidContent`` when it does not fit this code."""
    try:
        return Policy.model_validate(document)
    except ValueError as error:
        raise InvalidContent("policy", str(error), "Correct the policy file.") from error

"""The policy: who may ask, who may decide, how long, and how much; a document with a version.

The version is the SHA-256 of the document's canonical form. It stands in every intent; rules that
have become stricter since bind at the opening, for the active policy is read there again.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from executor.domain.address import parse_mailbox
from executor.domain.errors import InvalidContent
from executor.domain.ids import PrincipalId, TenantId, slack_principal
from executor.domain.mail_text import validate_body
from executor.domain.payloads import JsonValue, digest
from executor.domain.policy_limits import AdmissionSection, RunSection
from executor.domain.policy_money import Amount, BudgetSection, Costed, PriceSection
from executor.domain.policy_names import (
    ChannelId,
    Everyone,
    LanguageTag,
    Member,
    RoleName,
    Seconds,
    ToolName,
    UserId,
    Who,
)
from executor.domain.policy_section import Misplaced, Section, told_now
from executor.domain.policy_servers import ServerName, ServerSection

BASE = "approval"
"""What every operation needs is called like its section, as rules are by their names."""

REQUESTER, APPROVER, EDITOR, OPERATOR = "requester", "approver", "editor", "operator"
BUILTIN_ROLES = frozenset({REQUESTER, APPROVER, EDITOR, OPERATOR})
"""Roles that section ``people`` fills; grants can give them as well."""


class Permission(StrEnum):
    """What a principal may be allowed to do."""

    REQUEST = "request"
    APPROVE = "approve"
    EDIT = "edit"
    CANCEL = "cancel"
    OPERATE = "operate"


class WhenTimeIsOver(StrEnum):
    """What becomes of a run whose operation nobody decided in time; the operation has expired."""

    TELL_AGENT = "tell_agent"
    STOP_RUN = "stop_run"


class ProgressStyle(StrEnum):
    """How Slack shows what a run has done so far: as a plain list, or as its own kind of plan."""

    PLAIN = "plain"
    PLAN = "plan"


class WhenMailIsNotSent(StrEnum):
    """What becomes of a ticket that we closed and whose closure email was proved not sent."""

    ASK = "ask"
    REOPEN = "reopen"
    LEAVE = "leave"


class SlackSection(Section):
    """Which workspace this installation serves, and where its cards go."""

    team: str = Field(pattern=r"^[TE][A-Z0-9]{2,20}$", description="id of the Slack workspace")
    channel: ChannelId = Field(description="id of the cards' channel")
    fallback_channel: ChannelId | None = Field(
        default=None, description="id of the channel for cards whose own channel cannot be used"
    )
    progress: ProgressStyle = ProgressStyle.PLAIN


class TenantSection(Section):
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


class PeopleSection(Section):
    """Who may do what; ``everyone`` means every full member of the team.

    ``agents`` are the Slack user ids of bots that may ask and never decide. Without ``editors``
    whoever may approve may edit.
    """

    requesters: tuple[Member, ...] | Everyone
    approvers: tuple[Member, ...]
    editors: tuple[Member, ...] | None = None
    operators: tuple[Member, ...] = ()
    agents: tuple[UserId, ...] = ()

    @field_validator("approvers")
    @classmethod
    def _somebody_approves(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one approver, or nothing can ever be approved")
        return value


class RoleSection(Section):
    """A role of one's own; grants can give it as well."""

    members: tuple[Member, ...] = ()


class ApprovalSection(Section):
    """What every operation needs: how many votes, how long they have, who is reminded."""

    quorum: int = Field(default=1, ge=1, le=20)
    decide_within_seconds: Seconds = 86_400
    use_within_seconds: Seconds = 3_600
    remind_after_seconds: tuple[Seconds, ...] = Field(default=(), max_length=5)
    escalate_after_seconds: Seconds | None = None
    escalate_to: tuple[Member, ...] = Field(default=(), max_length=20)
    when_time_is_over: WhenTimeIsOver = WhenTimeIsOver.TELL_AGENT
    step_up: bool = False

    @model_validator(mode="after")
    def _an_escalation_reaches_somebody(self) -> ApprovalSection:
        if (self.escalate_after_seconds is None) != (not self.escalate_to):
            written = "escalate_after_seconds" if not self.escalate_to else "escalate_to"
            raise Misplaced(
                "write escalate_after_seconds and escalate_to together, or neither", written
            )
        late = f"decide_within_seconds is {self.decide_within_seconds}: write fewer seconds"
        if any(s >= self.decide_within_seconds for s in self.remind_after_seconds):
            raise Misplaced(late, "remind_after_seconds")
        if (self.escalate_after_seconds or 0) >= self.decide_within_seconds:
            raise Misplaced(late, "escalate_after_seconds")
        return self


class RuleSection(Section):
    """What some operations need beside ``[approval]``: rules only add, in whatever order.

    It matches an operation of its tools (none named: all) when any of its conditions holds, or it
    has none. ``quorum = 0`` asks for no person, unless another rule that matches asks for some.
    """

    name: str = Field(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]+$")
    tools: tuple[ToolName, ...] = ()
    when: tuple[
        Literal["outside_recipient", "first_contact", "external_link", "attachment"], ...
    ] = ()
    amount_above: Decimal | None = Field(default=None, ge=0)
    text_above: int | None = Field(default=None, ge=0)
    language_not_in: tuple[LanguageTag, ...] | None = Field(default=None, min_length=1)
    quorum: int = Field(default=1, ge=0, le=20)
    approvers: tuple[Who, ...] | None = Field(default=None, min_length=1)
    decide_within_seconds: Seconds | None = None
    use_within_seconds: Seconds | None = None
    step_up: bool = False
    channel: ChannelId | None = None

    @model_validator(mode="after")
    def _it_asks_for_something(self) -> RuleSection:
        if self.quorum == 0 and (self.step_up or self.approvers is not None):
            raise Misplaced("0 asks for nobody: leave out approvers and step_up", "quorum")
        if self.quorum == 0 and self.tools == ("reopen_ticket",):
            raise Misplaced("tickets.when_mail_is_not_sent says when nobody is asked", "quorum")
        people = set(self.approvers or ())
        only_people = not any(who.startswith(("group:", "role:")) for who in people)
        if people and only_people and self.quorum > len(people):
            raise Misplaced(
                f"quorum is {self.quorum}, but approvers names only {len(people)}; name more or "
                "lower the quorum",
                "quorum",
            )
        return self

    @property
    def is_unconditional(self) -> bool:
        """Whether it holds for every operation of its tools."""
        return not self.when and (
            self.amount_above is None and self.text_above is None and self.language_not_in is None
        )


class EmailSection(Section):
    """Who closure emails come from, and how long they may be."""

    sender: str = Field(alias="from", min_length=3, max_length=320)
    reply_to: str | None = Field(default=None, max_length=320)
    signature: str = Field(default="", max_length=500)
    max_text_characters: int = Field(default=20_000, ge=1, le=200_000)
    own_domains: tuple[str, ...] = ()

    @property
    def domains(self) -> frozenset[str]:
        """Whose links are not external: those named, or else the sender's own; in both forms."""
        named = [f"x@{domain}" for domain in self.own_domains] or [self.sender]
        boxes = [parse_mailbox(text, field="from") for text in named]
        both = [form for box in boxes for form in (box.address, box.ascii_address)]
        return frozenset(form.rpartition("@")[2].casefold() for form in both)

    @field_validator("own_domains")
    @classmethod
    def _own_domains_are_domains(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        with told_now():
            for domain in value:
                parse_mailbox(f"x@{domain}", field="own_domains")
        return value

    @field_validator("sender", "reply_to")
    @classmethod
    def _an_address_can_be_written_from(cls, value: str | None) -> str | None:
        if value is not None:
            with told_now():
                parse_mailbox(value, field="address")
        return value

    @field_validator("signature")
    @classmethod
    def _the_signature_may_stand_in_a_mail(cls, value: str) -> str:
        with told_now():
            validate_body(f"{value}.", limit=len(value) + 1, field="signature")
        return value


class TicketsSection(Section):
    """What a desk may do by itself at a close, and what follows a close without its email."""

    allow_desk_notification: bool = False
    when_mail_is_not_sent: WhenMailIsNotSent = WhenMailIsNotSent.ASK


class Policy(Section):
    """The whole policy file."""

    slack: SlackSection
    tenant: TenantSection = TenantSection()
    people: PeopleSection
    roles: dict[RoleName, RoleSection] = Field(default_factory=dict)
    approval: ApprovalSection = ApprovalSection()
    rules: tuple[RuleSection, ...] = Field(default=(), max_length=50)
    run: RunSection = RunSection()
    admission: AdmissionSection = AdmissionSection()
    budget: BudgetSection = BudgetSection()
    prices: dict[str, PriceSection] = Field(default_factory=dict, max_length=100)
    costs: dict[Costed, Amount] = Field(default_factory=dict)
    servers: dict[ServerName, ServerSection] = Field(default_factory=dict, max_length=20)
    email: EmailSection
    tickets: TicketsSection = TicketsSection()

    @model_validator(mode="after")
    def _the_quorum_can_be_reached(self) -> Policy:
        named = self.people.approvers
        if any(who.startswith("group:") for who in named):
            return self
        if self.approval.quorum > len(set(named)):
            raise Misplaced(
                f"quorum is {self.approval.quorum}, but people.approvers names only "
                f"{len(set(named))}; name more approvers or lower the quorum",
                "approval",
                "quorum",
            )
        return self

    @model_validator(mode="after")
    def _names_stand_for_one_thing(self) -> Policy:
        for role in self.roles:
            if role in BUILTIN_ROLES:
                raise Misplaced(
                    "this role is filled by section people; choose another name", "roles", role
                )
        for who in self.budget.approvers or ():
            role = who.removeprefix("role:")
            if role != who and role not in self.roles and role not in BUILTIN_ROLES:
                raise Misplaced(
                    f"{who} is named, but there is no section [roles.{role}]",
                    *("budget", "approvers"),
                )
        for name, server in self.servers.items():
            for who in server.requesters or ():
                role = who.removeprefix("role:")
                if role != who and role not in self.roles and role not in BUILTIN_ROLES:
                    raise Misplaced(
                        f"{who} is named, but there is no section [roles.{role}]",
                        *("servers", name, "requesters"),
                    )
        names = [rule.name for rule in self.rules]
        for index, rule in enumerate(self.rules):
            if rule.name in (BASE, *names[:index]):
                raise Misplaced(
                    f"another rule is called {rule.name!r}; give each a name of its own",
                    *("rules", index, "name"),
                )
            for who in rule.approvers or ():
                role = who.removeprefix("role:")
                if role != who and role not in self.roles and role not in BUILTIN_ROLES:
                    raise Misplaced(
                        f"{who} is named, but there is no section [roles.{role}]",
                        *("rules", index, "approvers"),
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

    @property
    def asks_for_second_factor(self) -> bool:
        """Whether an approval may need a second factor."""
        return self.approval.step_up or any(rule.step_up for rule in self.rules)

    def is_agent(self, principal: PrincipalId) -> bool:
        """Say whether this is a bot that may ask and never decides."""
        team = self.slack.team
        return any(principal == slack_principal(team, agent) for agent in self.people.agents)

    def members_of(self, role: str) -> tuple[str, ...] | Everyone:
        """Name whom this file gives a role; grants may give it to others."""
        people = self.people
        match role:
            case "requester":
                return people.requesters
            case "approver":
                return people.approvers
            case "editor":
                return people.approvers if people.editors is None else people.editors
            case "operator":
                return people.operators
            case _:
                return self.roles[role].members if role in self.roles else ()

    @property
    def groups(self) -> frozenset[str]:
        """Every Slack user group that some right may rest on, by its id."""
        people = self.people
        named = [
            *(() if people.requesters == "everyone" else people.requesters),
            *people.approvers,
            *(people.editors or ()),
            *people.operators,
            *(who for role in self.roles.values() for who in role.members),
            *(who for rule in self.rules for who in rule.approvers or ()),
            *(who for server in self.servers.values() for who in server.requesters or ()),
            *(self.budget.approvers or ()),
        ]
        return frozenset(w.removeprefix("group:") for w in named if w.startswith("group:"))

    def consents_to_reopening(self, permission: Permission) -> bool:
        """Say whether the policy itself asks for reopenings, or consents to them."""
        when = self.tickets.when_mail_is_not_sent
        match permission:
            case Permission.REQUEST:
                return when is not WhenMailIsNotSent.LEAVE
            case Permission.APPROVE:
                return when is WhenMailIsNotSent.REOPEN
            case _:
                return False


def policy_from(document: object) -> Policy:
    """Read a stored policy document; raises ``InvalidContent`` when it does not fit this code."""
    try:
        return Policy.model_validate(document)
    except ValueError as error:
        raise InvalidContent("policy", str(error), "Correct the policy file.") from error

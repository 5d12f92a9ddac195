"""Who may do what, by the policy, the grants and the fresh user groups of one moment.

A right is a role that somebody has: the policy file gives it, to the person or to a user group, or
a grant does. A role that was passed on (*on behalf of*) counts while the one who passed it on has
it without anybody's help, and counts as that one's vote. Where a right could rest on a user group
that was not looked at in time, the answer is *look again*, never yes. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from executor.domain.grant import Grant, Resource
from executor.domain.ids import PrincipalId, slack_principal, slack_user
from executor.domain.policy import (
    APPROVER,
    EDITOR,
    OPERATOR,
    REQUESTER,
    Permission,
    Policy,
)
from executor.domain.terms import Requirement
from executor.domain.transition import Reason, Refused

_ROLES = {
    Permission.REQUEST: (REQUESTER,),
    Permission.APPROVE: (APPROVER,),
    Permission.EDIT: (EDITOR,),
    Permission.CANCEL: (REQUESTER, APPROVER),
    Permission.OPERATE: (OPERATOR,),
}


@dataclass(frozen=True, slots=True)
class Standing:
    """On what a right rests; ``on_behalf_of`` is whose right it is, where it was passed on."""

    role: str
    on_behalf_of: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class Authority:
    """One tenant's rights at one moment.

    ``groups`` are members by group id, of the groups that were looked at in time; ``grants`` are at
    least all those of the people that are asked about, and of those on whose behalf they act.
    """

    policy: Policy
    now: datetime
    grants: Sequence[Grant] = ()
    groups: Mapping[str, frozenset[PrincipalId]] | None = None

    def objection(
        self, principal: PrincipalId, permission: Permission, resource: Resource | None = None
    ) -> Refused | None:
        """Say why this principal may not do this, or ``None`` if it may."""
        wanted = tuple(f"role:{role}" for role in _ROLES[permission])
        if self.standing(principal, wanted, resource) is not None:
            return None
        return self._refusal(principal, permission, wanted)

    def objection_to_voting(
        self,
        principal: PrincipalId,
        requirements: Iterable[Requirement],
        resource: Resource,
        besides: Collection[PrincipalId] = (),
    ) -> Refused | None:
        """Say why this principal's vote would count for none of these requirements."""
        wanted = tuple(dict.fromkeys(who for r in requirements for who in r.of))
        wanted = wanted or (f"role:{APPROVER}",)
        if self.standing(principal, wanted, resource, besides) is not None:
            return None
        if besides and self.standing(principal, wanted, resource) is not None:
            return Refused(Reason.OWN_REQUEST)
        return self._refusal(principal, Permission.APPROVE, wanted)

    def still_needed(
        self,
        requirements: Iterable[Requirement],
        voters: Sequence[PrincipalId],
        resource: Resource,
        besides: Collection[PrincipalId] = (),
    ) -> int:
        """Count the votes that are lacking where most are; those of ``besides`` do not count.

        One person counts once, also when somebody votes on that person's behalf.
        """
        lacking = self.lacking(requirements, voters, resource, besides)
        return max((requirement.quorum for requirement in lacking), default=0)

    def lacking(
        self,
        requirements: Iterable[Requirement],
        voters: Sequence[PrincipalId],
        resource: Resource,
        besides: Collection[PrincipalId] = (),
    ) -> tuple[Requirement, ...]:
        """Name the requirements that are not met, each with the number of votes that it lacks."""
        missing = (
            (r, r.quorum - len(self.counted(r, voters, resource, besides))) for r in requirements
        )
        return tuple(replace(r, quorum=count) for r, count in missing if count > 0)

    def counted(
        self,
        requirement: Requirement,
        voters: Sequence[PrincipalId],
        resource: Resource,
        besides: Collection[PrincipalId] = (),
    ) -> frozenset[PrincipalId]:
        """Name whose votes count for a requirement: the voters, or those they voted for."""
        found = {
            who: self.standing(who, requirement.of, resource, besides)
            for who in voters
            if who not in besides
        }
        return frozenset(
            standing.on_behalf_of or who for who, standing in found.items() if standing is not None
        )

    def behind(
        self,
        requirements: Iterable[Requirement],
        voters: Sequence[PrincipalId],
        resource: Resource,
        besides: Collection[PrincipalId] = (),
    ) -> tuple[PrincipalId, ...]:
        """Name everybody on whom counted votes rest: who voted, and on whose behalf."""
        named: dict[PrincipalId, None] = {}
        for requirement in requirements:
            for who in voters:
                standing = self.standing(who, requirement.of, resource, besides)
                if standing is not None and who not in besides:
                    named[who] = None
                    if standing.on_behalf_of is not None:
                        named[standing.on_behalf_of] = None
        return tuple(named)

    def standing(
        self,
        principal: PrincipalId,
        wanted: Sequence[str],
        resource: Resource | None = None,
        besides: Collection[PrincipalId] = (),
    ) -> Standing | None:
        """Say on what it rests that this principal is one of those wanted; own rights first.

        ``besides`` are people on whose behalf nobody may act here.
        """
        wanted = self._open_to(principal, wanted)
        own = self._own(principal, wanted, resource)
        if own is not None:
            return own
        for grant in self._grants_of(principal, wanted, resource):
            giver = grant.on_behalf_of
            if giver is None or giver in besides:
                continue
            if self._own(giver, (f"role:{grant.role}",), resource) is not None:
                return Standing(grant.role, giver)
        return None

    def own(self, principal: PrincipalId, role: str) -> Standing | None:
        """Say whether this principal has a role that nobody passed on."""
        return self._own(principal, (f"role:{role}",), None)

    def stale_groups(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """Name the groups behind those wanted of whom nobody knows the members just now."""
        fresh = self.groups or {}
        return tuple(g for g in self._groups_behind(wanted) if g not in fresh)

    def _own(
        self, principal: PrincipalId, wanted: Sequence[str], resource: Resource | None
    ) -> Standing | None:
        """Find a right that nobody passed on."""
        wanted = self._open_to(principal, wanted)
        for who in wanted:
            role = who.removeprefix("role:") if who.startswith("role:") else None
            named = (who,) if role is None else self.policy.members_of(role)
            if self._is_among(principal, named):
                return Standing(role or who)
        for grant in self._grants_of(principal, wanted, resource):
            if grant.on_behalf_of is None:
                return Standing(grant.role)
        return None

    def _is_among(self, principal: PrincipalId, named: Sequence[str]) -> bool:
        team = self.policy.slack.team
        if named == "everyone":
            return principal.startswith(f"slack:{team}:") and not self.policy.is_agent(principal)
        members = self.groups or {}
        return any(
            principal in members.get(who.removeprefix("group:"), ())
            if who.startswith("group:")
            else principal == slack_principal(team, who)
            for who in named
        )

    def _open_to(self, principal: PrincipalId, wanted: Sequence[str]) -> Sequence[str]:
        """Leave of what is wanted what this principal can be at all: an agent only ever asks."""
        if not self.policy.is_agent(principal):
            return wanted
        return tuple(who for who in wanted if who == f"role:{REQUESTER}")

    def _grants_of(
        self, principal: PrincipalId, wanted: Sequence[str], resource: Resource | None
    ) -> list[Grant]:
        roles = {who.removeprefix("role:") for who in wanted if who.startswith("role:")}
        return [
            grant
            for grant in self.grants
            if grant.principal == principal
            and grant.role in roles
            and grant.holds(self.now)
            and grant.covers(resource)
        ]

    def _groups_behind(self, wanted: Sequence[str]) -> list[str]:
        named: list[str] = []
        for who in wanted:
            members = (
                self.policy.members_of(who.removeprefix("role:"))
                if who.startswith("role:")
                else (who,)
            )
            named += [] if members == "everyone" else members
        return [w.removeprefix("group:") for w in named if w.startswith("group:")]

    def _refusal(
        self, principal: PrincipalId, permission: Permission, wanted: Sequence[str]
    ) -> Refused:
        user = slack_user(principal)
        if user is not None and user[0] != self.policy.slack.team:
            return Refused(Reason.OTHER_WORKSPACE)
        unseen = self.stale_groups(wanted)
        if unseen:
            return Refused(Reason.IDENTITY_UNKNOWN, {"groups": list(unseen)})
        return Refused(Reason.NOT_PERMITTED, {"missing": permission.value})

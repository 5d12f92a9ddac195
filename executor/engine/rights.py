"""Reads what rights rest on: the grants and user groups of the people that somebody asks about.

The caller holds the tenants' rows, so that no grant changes before its COMMIT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from executor.domain.authority import Authority
from executor.domain.grant import Grant
from executor.domain.groups import GroupObservation, Groups, fresh_groups
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.policy import Policy
from executor.store import grants
from executor.store.connection import Connection
from executor.store.people import read_groups


@dataclass(frozen=True, slots=True)
class Rights:
    """What was read, by tenant."""

    grants: dict[TenantId, list[Grant]]
    groups: dict[tuple[TenantId, str], GroupObservation]

    def givers(self) -> set[tuple[TenantId, PrincipalId]]:
        """Name everybody on whose behalf somebody may act by these grants."""
        return {
            (tenant, grant.on_behalf_of)
            for tenant, given in self.grants.items()
            for grant in given
            if grant.on_behalf_of is not None
        }

    def of(self, policy: Policy | None, now: datetime) -> Authority | None:
        """Make the authority of a tenant that may have no policy yet."""
        return None if policy is None else self.authority(policy, now)

    def authority(self, policy: Policy, now: datetime) -> Authority:
        """Make the authority of one tenant at one moment, of groups that were looked at in time."""
        seen = {group: self.groups.get((policy.tenant_id, group)) for group in policy.groups}
        fresh, _ = fresh_groups(seen, now)
        return self._authority(policy, now, fresh)

    def authority_to_propose(self, policy: Policy, now: datetime) -> Authority:
        """Make the authority for T1, where Slack's last word counts however old it is.

        What is proposed is checked again with fresh facts when it is decided and opened.
        """
        known = {g: seen.members for (_, g), seen in self.groups.items() if g in policy.groups}
        return self._authority(policy, now, known)

    def _authority(self, policy: Policy, now: datetime, groups: Groups) -> Authority:
        return Authority(policy, now, self.grants.get(policy.tenant_id, ()), groups)


async def read_rights(
    conn: Connection,
    policies: Mapping[TenantId, Policy],
    people: Iterable[tuple[TenantId, PrincipalId]],
) -> Rights:
    """Read what the rights of these people rest on, and of those on whose behalf they act."""
    named = [(tenant, group) for tenant, policy in policies.items() for group in policy.groups]
    return Rights(
        await grants.of_people(conn, people), await read_groups(conn, named) if named else {}
    )

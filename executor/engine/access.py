"""What a run may have to do with: what its requester may ask for, by the rights of one moment.

The model has no rights of its own. A tool that its requester could not use is not offered, and a
ticket about which the requester may ask for nothing does not exist for it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from executor.domain.authority import Authority
from executor.domain.grant import Resource
from executor.domain.ids import PrincipalId, TenantId
from executor.domain.intent import ABOUT_A_TICKET, CLOSE_TICKET
from executor.domain.policy import Permission
from executor.engine.rights import read_rights
from executor.store import clock, tenants
from executor.store.connection import Connection

_TICKET, _DESK = "ticket:", "desk:"


@dataclass(frozen=True, slots=True)
class Access:
    """What one requester may ask for."""

    authority: Authority
    requester: PrincipalId

    @property
    def sees_tickets(self) -> bool:
        """Whether there may be any ticket about which something may be asked for."""
        return any(self._somewhere(kind) for kind in ABOUT_A_TICKET)

    @property
    def may_propose_closing(self) -> bool:
        """Whether there may be any ticket that may be proposed to be closed."""
        return self._somewhere(CLOSE_TICKET)

    def covers(self, desk: str, ticket_id: str) -> bool:
        """Say whether something may be asked for about this ticket."""
        return any(self._may_ask(kind, desk, ticket_id) for kind in ABOUT_A_TICKET)

    def tickets_of(self, desk: str) -> frozenset[str] | None:
        """Name all tickets of a desk that are covered; ``None``: every one of them."""
        # No ticket has an empty id: only what is about a whole desk covers it.
        if self.covers(desk, ""):
            return None
        start = f"{_TICKET}{desk}:"
        named = {p.removeprefix(start) for p in self._patterns() if p.startswith(start)}
        return frozenset(id_ for id_ in named if self.covers(desk, id_))

    def _somewhere(self, kind: str) -> bool:
        places = [("", "")]
        for pattern in self._patterns():
            if pattern.startswith(_DESK):
                places.append((pattern.removeprefix(_DESK), ""))
            elif pattern.startswith(_TICKET):
                desk, _, id_ = pattern.removeprefix(_TICKET).rpartition(":")
                places.append((desk, id_))
        return any(self._may_ask(kind, *place) for place in places)

    def _may_ask(self, kind: str, desk: str, ticket_id: str) -> bool:
        resource = Resource(kind, desk, ticket_id)
        return self.authority.objection(self.requester, Permission.REQUEST, resource) is None

    def _patterns(self) -> Collection[str]:
        return {g.resource for g in self.authority.grants if g.principal == self.requester}


async def read_access(conn: Connection, tenant: TenantId, requester: PrincipalId) -> Access | None:
    """Read what a requester may ask for now, until COMMIT; ``None`` without a policy.

    Of user groups Slack's last word counts, as it does where something is proposed.
    """
    policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
    if policy is None:
        return None
    rights = await read_rights(conn, {tenant: policy}, [(tenant, requester)])
    return Access(rights.authority_to_propose(policy, await clock.now(conn)), requester)

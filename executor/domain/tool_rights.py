"""Whether somebody's runs may use a tool of a server, by the policy of one moment.

A right to ask for such calls is one thing; that a policy lends a server to somebody is another one,
and both are needed, for reading as well. Pure.
"""

from __future__ import annotations

from executor.domain.authority import Authority
from executor.domain.grant import Resource
from executor.domain.ids import PrincipalId
from executor.domain.intent import CALL_TOOL
from executor.domain.policy import Permission
from executor.domain.transition import Reason, Refused


def tool_objection(
    authority: Authority, requester: PrincipalId, server: str, tool: str
) -> Refused | None:
    """Say why runs of this requester may not use this tool, or ``None``."""
    lent = lending_objection(authority, requester, server, tool)
    resource = Resource(CALL_TOOL, server, tool)
    return lent or authority.objection(requester, Permission.REQUEST, resource)


def lending_objection(
    authority: Authority, requester: PrincipalId, server: str, tool: str
) -> Refused | None:
    """Say why the policy does not lend this tool to this requester, or ``None``."""
    section = authority.policy.servers.get(server)
    if section is None or not section.shows(tool):
        return Refused(Reason.POLICY_CHANGED)
    if section.requesters is None or authority.standing(requester, section.requesters):
        return None
    unseen = authority.stale_groups(section.requesters)
    if unseen:
        return Refused(Reason.IDENTITY_UNKNOWN, {"groups": list(unseen)})
    return Refused(Reason.NOT_PERMITTED, {"missing": Permission.REQUEST.value})

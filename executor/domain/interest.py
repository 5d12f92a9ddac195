"""Whose yes does not count, whatever their role: whoever asked for something, and whoever wrote it.

Nor does the yes that somebody gives on behalf of one of them. All of them may say no. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from executor.domain.authority import Authority
from executor.domain.grant import Resource
from executor.domain.ids import PrincipalId
from executor.domain.terms import Requirement
from executor.domain.transition import Reason, Refused


@dataclass(frozen=True, slots=True)
class Interest:
    """Who has an interest in one operation; ``asked`` tells of each whether it was by a link."""

    requester: PrincipalId
    asked: Sequence[tuple[PrincipalId, bool]]
    editor: PrincipalId | None

    @property
    def people(self) -> frozenset[PrincipalId]:
        """Everybody whose yes does not count."""
        wrote = () if self.editor is None else (self.editor,)
        return frozenset((self.requester, *(who for who, _ in self.asked), *wrote))

    def objection_to_approving(
        self,
        authority: Authority,
        principal: PrincipalId,
        requirements: Iterable[Requirement],
        resource: Resource,
    ) -> Refused | None:
        """Say why the yes of somebody who may vote would not count for these requirements."""
        for requester, linked in self.asked:
            if requester == principal:
                return Refused(Reason.LINKED_REQUEST if linked else Reason.OWN_REQUEST)
        if self.editor == principal:
            return Refused(Reason.OWN_EDIT)
        return authority.objection_to_voting(principal, requirements, resource, self.people)

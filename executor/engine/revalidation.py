"""Revalidation: what must still be true at the opening, decided purely from the locked world.

Called by ``opening`` inside its transaction, after every lock is held and the time was read. Every
check has a name and is made, so that the journal can tell what each of them found; the first that
refuses is the reason that a person reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from executor.domain import approval, identity
from executor.domain.approval import Approval, ApprovalStatus
from executor.domain.authority import Authority
from executor.domain.effect import Capability
from executor.domain.grant import Resource
from executor.domain.ids import PrincipalId, is_policy
from executor.domain.intent import CALL_TOOL, CLOSE_TICKET, RAISE_BUDGET, REOPEN_TICKET
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.policy import Permission, Policy
from executor.domain.run import RunStatus
from executor.domain.terms import Terms
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.domain.tool_rights import lending_objection
from executor.domain.transition import Reason, Refused
from executor.engine.desk_port import TicketDesk
from executor.engine.effect_costs import cost_objection, cost_of_the_rest
from executor.engine.limits import limit_objection
from executor.engine.outside_target import outside_objection
from executor.engine.providers import Providers
from executor.engine.world import World
from executor.store.operations import OperationRow


class CheckName(StrEnum):
    """What an opening checks, in the order in which it counts.

    Each has a sentence for people in ``bot/check_text.py``.
    """

    RULES = "rules"
    RUN = "run"
    CONTENT = "content"
    APPROVAL = "approval"
    REQUESTER = "requester"
    APPROVERS = "approvers"
    IDENTITIES = "identities"
    TICKET = "ticket"
    LIMIT = "limit"
    ONCE = "once"
    UNDOES = "undoes"
    PROVIDER = "provider"
    BUDGET = "budget"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True)
class Check:
    """What one check has found; ``refused`` is why nothing may be opened, or ``None``."""

    name: CheckName
    refused: Refused | None


def checks(
    providers: Providers, row: OperationRow, world: World, *, first: bool
) -> tuple[Check, ...]:
    """Make every check of an opening of ``row``; ``first`` tells its first from later ones.

    An outside ticket that was not seen raises no objection here: who opens asks for a sight of it.

    Without rules or an approval there is nothing that the others could be made against.
    """
    policy = world.policies.get(row.tenant_id)
    consent = world.consents.get(row.key)
    if policy is None or consent is None:
        return (Check(CheckName.RULES, Refused(Reason.POLICY_CHANGED)),)
    run = world.runs.get((row.tenant_id, row.run_id))
    authority = world.authority(policy)
    terms = consent.terms.under(policy, row.kind, row.risks)
    voters = authority.behind(
        terms.requirements,
        consent.counting(step_up=terms.step_up),
        row.resource,
        world.interest(row).people,
    )
    done = (row.tenant_id, row.intent_key) in world.succeeded
    return (
        Check(CheckName.RULES, None),
        Check(CheckName.RUN, run_objection(None if run is None else run.status, first=first)),
        Check(CheckName.CONTENT, _content_objection(row, consent)),
        Check(CheckName.APPROVAL, _consent_objection(consent, terms, world, first=first)),
        Check(CheckName.REQUESTER, requester_objection(authority, row.requester, row.resource)),
        Check(CheckName.APPROVERS, _quorum_objection(authority, row, consent, terms, world)),
        Check(CheckName.IDENTITIES, _identity_objection(policy, row, voters, world)),
        *_target(row, world, first=first),
        Check(CheckName.ONCE, Refused(Reason.ALREADY_DONE) if done else None),
        *_undoing(row, world),
        Check(CheckName.PROVIDER, _provider_objection(providers, policy, row, world, first=first)),
        *_paying(policy, row, world),
    )


def _target(row: OperationRow, world: World, *, first: bool) -> tuple[Check, ...]:
    """What is about a ticket needs it where it was approved; a limit must stand where it did."""
    if row.is_about_a_ticket:
        return (Check(CheckName.TICKET, _ticket_objection(row, world, first=first)),)
    if row.kind == RAISE_BUDGET:
        return (Check(CheckName.LIMIT, limit_objection(row, world.limits.get(row.key))),)
    return ()


def _paying(policy: Policy, row: OperationRow, world: World) -> tuple[Check, ...]:
    """What costs something needs room for all that is still to be done of it."""
    parts = world.parts[row.key]
    if not cost_of_the_rest(policy, row, parts):
        return ()
    refused = cost_objection(world.purse, policy, row, parts, world.chain)
    return (Check(CheckName.BUDGET, refused),)


def _undoing(row: OperationRow, world: World) -> tuple[Check, ...]:
    """A reopening undoes a closing that is still done in part; nothing else undoes anything."""
    if row.kind != REOPEN_TICKET:
        return ()
    closing = world.closings[row.key]
    if closing.status is OperationStatus.PARTIAL:
        return (Check(CheckName.UNDOES, None),)
    detail: JsonObject = {"operation": closing.number, "status": closing.status.value}
    return (Check(CheckName.UNDOES, Refused(Reason.NOTHING_TO_UNDO, detail)),)


def first_refusal(made: Sequence[Check]) -> Refused | None:
    """Return what the first check that refuses says; nothing is opened then."""
    return next((check.refused for check in made if check.refused is not None), None)


def objection(
    providers: Providers, row: OperationRow, world: World, *, first: bool
) -> Refused | None:
    """Say why ``row`` may not open now, or ``None``; ``first`` tells its first opening from later
    ones.

    ``IDENTITY_UNKNOWN`` means: look at the people named in ``who`` and ask again.
    """
    return first_refusal(checks(providers, row, world, first=first))


def told(made: Sequence[Check]) -> JsonObject:
    """Spell checks for the journal, such as ``{"checks": {"run": "held", "ticket": "…"}}``.

    A check that refuses is spelled as its reason's code.
    """
    return {
        "checks": {
            check.name.value: "held" if check.refused is None else check.refused.reason.value
            for check in made
        }
    }


def run_objection(status: RunStatus | None, *, first: bool) -> Refused | None:
    """A run that is ending or held opens nothing.

    A run that went on while it waits, or succeeded meanwhile, does not stop a later effect.
    """
    if status in (None, RunStatus.CANCELLING, RunStatus.CANCELLED, RunStatus.FAILED):
        return Refused(Reason.CANCELLED)
    if first and status is RunStatus.SUCCEEDED:
        return Refused(Reason.CANCELLED)
    return None


def _content_objection(row: OperationRow, consent: Approval) -> Refused | None:
    """What was approved must be, byte for byte, what would be sent."""
    if consent.digest != row.digest or consent.content_revision != row.content_revision:
        return Refused(Reason.DIGEST_MISMATCH)
    return None


def _consent_objection(
    consent: Approval, terms: Terms, world: World, *, first: bool
) -> Refused | None:
    """The approval lets it act, in the time that was given then and would be given now."""
    now = world.chain.now
    if first:
        used = approval.decide(consent, approval.Used(), now=now)
        if isinstance(used, Refused):
            return used
        assert consent.use_by is not None, "it is granted"
        shorter = timedelta(seconds=consent.terms.use_within - terms.use_within)
        return Refused(Reason.TIME_TO_USE_OVER) if now >= consent.use_by - shorter else None
    if consent.status is ApprovalStatus.GRANTED:
        # A person's "send again" is an approval of its own, which this repeat has to use.
        used = approval.decide(consent, approval.Used(), now=now)
        return Refused(Reason.APPROVAL_MISSING) if isinstance(used, Refused) else None
    if consent.status is not ApprovalStatus.CONSUMED:
        return Refused(Reason.APPROVAL_MISSING)
    return None


def requester_objection(
    authority: Authority, requester: PrincipalId, resource: Resource
) -> Refused | None:
    """Whoever asked must still be allowed to; the policy itself asks for reopenings and raises."""
    if is_policy(requester):
        # The limits of the policy of now are compared by a check of their own.
        if resource.kind == RAISE_BUDGET:
            return None
        asks = authority.policy.consents_to_reopening(Permission.REQUEST)
        return None if asks else Refused(Reason.POLICY_CHANGED, {"who": requester})
    forbidden = authority.objection(requester, Permission.REQUEST, resource)
    if forbidden is None and resource.kind == CALL_TOOL:
        forbidden = lending_objection(authority, requester, resource.place, resource.thing)
    if forbidden is None or forbidden.reason is Reason.IDENTITY_UNKNOWN:
        return forbidden
    return Refused(forbidden.reason, {**forbidden.detail, "who": requester})


def _quorum_objection(
    authority: Authority, row: OperationRow, consent: Approval, terms: Terms, world: World
) -> Refused | None:
    """Enough people whose votes count now have said yes, by the rules of then and of now."""
    policy = authority.policy
    if consent.terms.asks_nobody:
        # The policy consented in place of people: it still does, or nobody has.
        if row.kind == REOPEN_TICKET:
            consents = policy.consents_to_reopening(Permission.APPROVE)
        else:
            consents = terms.asks_nobody
        return None if consents else Refused(Reason.POLICY_CHANGED)
    voters, besides = consent.counting(step_up=terms.step_up), world.interest(row).people
    if authority.still_needed(terms.requirements, voters, row.resource, besides) <= 0:
        return None
    wanted = tuple(who for r in terms.requirements for who in r.of)
    unseen = authority.stale_groups(wanted)
    if unseen:
        return Refused(Reason.IDENTITY_UNKNOWN, {"groups": list(unseen)})
    return Refused(Reason.NOT_PERMITTED, {"missing": Permission.APPROVE.value})


def _identity_objection(
    policy: Policy, row: OperationRow, voters: Sequence[PrincipalId], world: World
) -> Refused | None:
    """Everybody whose word this rests on must be who they were, by what is known of them now."""
    unknown: list[str] = []
    agent = policy.is_agent(row.requester)
    for who, may_be_bot in ((row.requester, agent), *((voter, False) for voter in voters)):
        if is_policy(who):
            continue
        seen = world.people.get((row.tenant_id, who))
        problem = identity.objection(seen, policy.slack.team, now=world.chain.now, agent=may_be_bot)
        if problem is not None and problem.reason is not Reason.IDENTITY_UNKNOWN:
            return Refused(problem.reason, {**problem.detail, "who": who})
        if problem is not None:
            unknown.append(who)
    return Refused(Reason.IDENTITY_UNKNOWN, {"who": unknown}) if unknown else None


def _ticket_objection(row: OperationRow, world: World, *, first: bool) -> Refused | None:
    if row.desk == BUILTIN_DESK:
        wanted = row.ticket_version if first else row.closed_version
        ticket = world.tickets.get((row.tenant_id, row.ticket_id))
        before = TicketStatus.CLOSED if row.kind == REOPEN_TICKET else TicketStatus.OPEN
        return target_objection(ticket, row.ticket_id, wanted, first=first, before=before)
    sight = world.sights.get(row.key)
    if sight is None:
        return None
    parts, tries = world.parts[row.key], world.tries[row.key]
    return outside_objection(row, sight, parts, tries, first=first)


def target_objection(
    ticket: Ticket | None,
    ticket_id: str,
    wanted: int | None,
    *,
    first: bool,
    before: TicketStatus = TicketStatus.OPEN,
) -> Refused | None:
    """The ticket must stand where it was approved or, later, where our own close has left it.

    ``before`` is what it has to be when the first part is opened.
    """
    if ticket is None:
        return Refused(Reason.TICKET_UNKNOWN, {"ticket": ticket_id})
    if ticket.version != wanted or (first and ticket.status is not before):
        return Refused(Reason.VERSION_CHANGED, {"approved": wanted, "version": ticket.version})
    return None


def _provider_objection(
    providers: Providers, policy: Policy, row: OperationRow, world: World, *, first: bool
) -> Refused | None:
    """Everything must leave through the account that was approved; the built-in desk needs none."""
    for part in world.parts[row.key]:
        if part.capability is Capability.TRANSACTIONAL:
            continue
        account = providers.account_for(part.kind, part.provider, policy.servers)
        name = None if account is None else account.name
        if part.provider != name:
            return Refused(Reason.PROVIDER_CHANGED, {"approved": part.provider, "configured": name})
    if first and row.kind == CLOSE_TICKET and row.desk != BUILTIN_DESK:
        return notification_objection(policy, providers.desk)
    return None


def notification_objection(policy: Policy, outside: TicketDesk | None) -> Refused | None:
    """One closure email, and not the desk's own beside it, unless the policy says so."""
    if outside is None or not outside.notifies_on_close:
        return None
    if policy.tickets.allow_desk_notification:
        return None
    return Refused(Reason.DESK_NOTIFIES, {"desk": outside.name})


def whom_to_look_at(refused: Refused) -> tuple[list[PrincipalId], list[str]]:
    """Name the people and the user groups that an ``IDENTITY_UNKNOWN`` waits for."""
    who, groups = refused.detail.get("who"), refused.detail.get("groups")
    return (
        [PrincipalId(str(name)) for name in who] if isinstance(who, list) else [],
        [str(group) for group in groups] if isinstance(groups, list) else [],
    )

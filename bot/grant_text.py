"""What people are told about grants: which there are, which was given, and why one was not.

A sentence may stand in ``mrkdwn``: resources and roles are checked names of ours, people are named
by whoever calls. Notes, which anybody may have written, are in none of them. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import assert_never
from zoneinfo import ZoneInfo

from bot.mrkdwn import hint, mention
from bot.notice_text import refusal_text
from bot.typed_time import TIMES, end_spelt, spelt
from executor.domain.grant import EVERYTHING, Grant, GrantStatus
from executor.domain.ids import PrincipalId, is_operator
from executor.domain.transition import Reason, Refused
from executor.engine.grant_reading import Footing, GrantList, ListedGrant, LocalTime
from executor.engine.granting import Given

MOST_SHOWN = 20
ELSEWHERE = "Roles that the policy file gives are told by `signoff policy explain`."
"""Where to look for the roles that no grant gives."""

Naming = Callable[[PrincipalId], str]
"""How somebody is called where a sentence will stand."""


def named(principal: PrincipalId) -> str:
    """Call somebody in Slack."""
    if not is_operator(principal):
        return mention(principal)
    kept = (c if c.isalnum() or c in " .-" else "?" for c in principal.partition(":")[2][:80])
    return f"an operator ({''.join(kept)})"


def list_text(found: GrantList, *, past: bool) -> str:
    """Answer in Slack which grants there are."""
    here = LocalTime(found.now, found.zone)
    lines = [f"• {line(one, here, named)}." for one in found.grants[:MOST_SHOWN]]
    if not lines:
        lines = [none_yet(is_whole=found.is_whole, past=past)]
    if len(found.grants) > MOST_SHOWN:
        lines.append("There are more: an operator sees them with `signoff grants list`.")
    return "\n".join((*lines, f"Times are those of {found.zone.key}. {ELSEWHERE}"))


def none_yet(*, is_whole: bool, past: bool) -> str:
    """Say that there is nothing to list."""
    now = "" if past else " now"
    return f"There are no grants{now}." if is_whole else f"There are no grants{now} about you."


def line(one: ListedGrant, here: LocalTime, name: Naming) -> str:
    """Tell one grant with all that it rests on, as one line without an end."""
    grant, given = one.line.grant, one.line
    told = f"grant {grant.number}: {name(grant.principal)} has {role_on(grant)}"
    told += f" {_when(one, here, name)}"
    if grant.on_behalf_of is not None:
        told += f", on behalf of {name(grant.on_behalf_of)}"
    footing = _footing(one.footing)
    told += f", {footing}" if footing else ""
    return f"{told}; given by {name(grant.granted_by)} {spelt(given.granted_at, here)}"


def role_on(grant: Grant) -> str:
    """Name a role and what it is about."""
    about = "on everything" if grant.resource == EVERYTHING else f"on `{grant.resource}`"
    return f"the role {grant.role} {about}"


def given_text(given: Given, zone: ZoneInfo, name: Naming, take_back: str) -> str:
    """Confirm a grant that is stored; ``take_back`` spells how it is revoked."""
    grant, here = given.grant, LocalTime(given.at, zone)
    behalf = "" if grant.on_behalf_of is None else f", on behalf of {name(grant.on_behalf_of)}"
    return (
        f"Given (grant {grant.number}): {name(grant.principal)} has {role_on(grant)} "
        f"{period(grant.starts_at, grant.ends_at, here)} ({here.zone.key}){behalf}. "
        f"{take_back} takes it back."
    )


def taken_back_text(grant: Grant, name: Naming) -> str:
    """Confirm a revocation that is stored."""
    return (
        f"Revoked (grant {grant.number}): {name(grant.principal)} does not have "
        f"{role_on(grant)} by it any more. What was not opened yet is checked again."
    )


def period(starts_at: datetime, ends_at: datetime | None, here: LocalTime) -> str:
    """Say from when and until when a grant counts."""
    until = "until it is revoked" if ends_at is None else f"until {end_spelt(ends_at, here)}"
    return until if starts_at <= here.now else f"from {spelt(starts_at, here)} {until}"


def refused_text(refused: Refused) -> str:
    """Say why a grant was not given or revoked."""
    detail = refused.detail
    if refused.reason is Reason.ROLE_UNKNOWN:
        return f"There is no such role. There are: {_listed(detail.get('known'))}."
    if detail.get("missing") == "own_role":
        return (
            f"Nobody can pass on what they do not have: the role {detail.get('role')} is not "
            "theirs, or somebody passed it on to them."
        )
    return refusal_text(refused.reason, detail)


def handled_before() -> str:
    """Tell that the same request came a second time."""
    return f"This was handled before, and nothing was given twice. {hint('grants')} shows it."


def not_confirmed() -> str:
    """Tell that a grant may have been given or revoked or not."""
    return f"Not confirmed: it may have been recorded or not. {hint('grants')} shows it."


def revoked_before() -> str:
    """Tell that a grant had been revoked before."""
    return "It was revoked before. Nothing has changed."


def give_wanted() -> str:
    """Show how a role is given."""
    return (
        f"Whom, and which role? For example: "
        f"{hint('grants give @somebody approver until 2026-12-24 on ticket:builtin:4101')}"
    )


def delegate_wanted() -> str:
    """Show how somebody passes on a role of their own."""
    return (
        "To whom, which role, and until when? For example: "
        f"{hint('delegate @somebody approver until 2026-12-24')}"
    )


def revoke_wanted() -> str:
    """Ask which grant is meant."""
    return f"Which grant? For example: {hint('grants revoke 7')}. {hint('grants')} lists them."


def person_unclear() -> str:
    """Tell that nobody was mentioned; a name that was only typed could be anybody's."""
    return (
        "Mention a person: type @ and choose one. If you did, Slack sent only a name: the app's "
        "settings need `should_escape`, as `signoff manifest` prints it."
    )


def time_unclear() -> str:
    """Tell how a time is written."""
    return f"This time cannot be read. Write it like one of these: {TIMES}."


def words_unclear() -> str:
    """Tell that there was more than was understood."""
    return (
        "Not everything was understood, so nothing was done. After the role may stand: from, "
        "until, for, on, and on behalf of."
    )


def _when(one: ListedGrant, here: LocalTime, name: Naming) -> str:
    grant, given = one.line.grant, one.line
    if grant.status is GrantStatus.REVOKED:
        by = "" if given.revoked_by is None else f" by {name(given.revoked_by)}"
        at = "" if given.revoked_at is None else f" {spelt(given.revoked_at, here)}"
        return f"no more (revoked{by}{at})"
    if grant.ends_at is not None and grant.ends_at <= here.now:
        return f"no more (it ended with {end_spelt(grant.ends_at, here)})"
    return period(grant.starts_at, grant.ends_at, here)


def _footing(footing: Footing) -> str:
    match footing:
        case Footing.NOTHING_ELSE:
            return ""
        case Footing.GIVER_HAS_IT:
            return "who has it by the policy or a grant"
        case Footing.GIVER_LOST_IT:
            return "who does not have it any more, so that it does not count"
        case Footing.GIVER_UNSEEN:
            return "who has it if Slack still counts them to a user group"
        case Footing.ROLE_IS_GONE:
            return "which does not count: the policy names no such role"
        case _:
            assert_never(footing)


def _listed(names: object) -> str:
    """List names of roles, which the policy has checked."""
    found = [n for n in names if isinstance(n, str)] if isinstance(names, Sequence) else []
    return ", ".join(found)

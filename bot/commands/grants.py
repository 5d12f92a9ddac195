"""``signoff grants``: roles that people have beside the policy file, from the command line."""

from __future__ import annotations

import asyncio
import getpass
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from bot.commands.failing import explained, fail
from bot.commands.options import AS_JSON, TENANT, as_json_text
from bot.commands.typed_argument import Typed

if TYPE_CHECKING:
    from executor.domain.grant import Grant
    from executor.domain.ids import PrincipalId, TenantId
    from executor.domain.transition import NoChange, Refused
    from executor.engine.grant_reading import GrantList, ListedGrant, LocalTime
    from executor.engine.granting import Given, TakenBack, Wish

T = TypeVar("T")

_USER = re.compile(r"(?:<@|@)?([UW][A-Z0-9]{2,20})(?:\|[^<>]*)?>?")
_NUMBER = re.compile(r"(?:grant[ _-]?|#)?(\d{1,18})", re.IGNORECASE)
_LONGEST_NAME = 80
_LONGEST_NOTE = 300
_EVERYTHING = "*"


def _user(text: str) -> str | None:
    found = _USER.fullmatch(text.strip())
    return None if found is None else found[1]


def _grant_number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    return None if found is None else int(found[1])


SLACK_USER = Typed("user", _user, "no Slack user id; in a profile, “Copy member ID” gives one")
"""A Slack user as people paste one: ``U0123ABCD``."""

_GRANT = Typed("number", _grant_number, "no grant; `signoff grants list` numbers them")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


BY = click.option(
    "--by", metavar="NAME", default=_login, help="Your name, for the record; else your login."
)


@click.group(short_help="List, give and revoke roles.")
def grants() -> None:
    """List, give and revoke the roles that people have beside the policy file.

    A revocation counts at once, also for what was approved by it and is not opened yet. Roles that
    the policy file gives are told by `signoff policy explain`.

    DATABASE_URL names the database; without it it is the private one in SIGNOFF_HOME.
    """


@grants.command("list")
@click.option("--past", is_flag=True, help="Also those that ended or were revoked.")
@TENANT
@AS_JSON
def list_(past: bool, tenant: str | None, as_json: bool) -> None:
    """List who has which role, until when, who gave it, and what it rests on."""
    with explained():
        found = asyncio.run(_list(tenant, past=past))
    if as_json:
        click.echo(as_json_text([_as_json(one) for one in found.grants]))
        return
    for text in _told(found, past=past):
        click.echo(text)


@grants.command(name="give")
@click.argument("user", type=SLACK_USER)
@click.argument("role")
@click.option(
    "--on",
    "resource",
    default=_EVERYTHING,
    metavar="WHAT",
    help="ticket:builtin:4101, desk:… or kind:close_ticket; without it, everything.",
)
@click.option("--from", "begins", metavar="TIME", help="Without it, at once.")
@click.option("--until", "ends", metavar="TIME", help="Without it, until it is revoked.")
@click.option("--for", "lasts", metavar="DURATION", help="How long, instead of --until: 8h, 2d.")
@click.option(
    "--on-behalf-of",
    "behalf",
    type=SLACK_USER,
    help="Pass on this person's own role; it ends with theirs and counts as theirs.",
)
@click.option("--note", default="", help="Why; it is kept in the record.")
@BY
@TENANT
@AS_JSON
def give_(
    user: str,
    role: str,
    resource: str,
    begins: str | None,
    ends: str | None,
    lasts: str | None,
    behalf: str | None,
    note: str,
    by: str,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Give USER (a Slack user id) a ROLE, as an operator.

    A TIME is one of the tenant's time zone, such as 2026-12-24 (as an end, that day is included),
    2026-12-24T17:00 or 17:00; or how long from now, such as 8h.

    \b
    For example:
      signoff grants give U0123ABCD approver --until 2026-12-24
      signoff grants give U0123ABCD approver --on ticket:builtin:4101 --for 8h
    """
    from bot.grant_text import given_text, refused_text
    from executor.domain.transition import Refused
    from executor.engine.granting import Given

    typed = _Typed(user, role, resource, begins, ends, lasts, behalf, note)
    if ends is not None and lasts is not None:
        raise click.UsageError("say --until or --for, not both")
    with explained(), _confirmed():
        result, here = asyncio.run(_give(tenant, _name(by), typed))
    if isinstance(result, Refused):
        fail(refused_text(result))
    assert isinstance(result, Given), "no signed request can come twice here"
    if as_json:
        click.echo(as_json_text(_grant_as_json(result.grant)))
    else:
        back = f"`signoff grants revoke {result.number}`"
        click.echo(given_text(result, here.zone, _called, back))


@grants.command(name="revoke")
@click.argument("number", type=_GRANT)
@BY
@TENANT
def revoke_(number: int, by: str, tenant: str | None) -> None:
    """Revoke the grant with this NUMBER, as an operator; once more changes nothing."""
    from bot.grant_text import refused_text, revoked_before, taken_back_text
    from executor.domain.transition import NoChange, Refused

    with explained(), _confirmed():
        result = asyncio.run(_revoke(tenant, _name(by), number))
    if isinstance(result, Refused):
        fail(refused_text(result))
    if isinstance(result, NoChange):
        click.echo(revoked_before())
    else:
        click.echo(taken_back_text(result.grant, _called))


@dataclass(frozen=True, slots=True)
class _Typed:
    """What somebody wants to give, as it was typed."""

    user: str
    role: str
    resource: str
    begins: str | None
    ends: str | None
    lasts: str | None
    behalf: str | None
    note: str

    def wish(self, tenant: TenantId, here: LocalTime) -> Wish:
        """Read it on the tenant's clock; a time that cannot be read is a wrong command line."""
        from bot.typed_time import moment_of, span_of
        from executor.domain.ids import slack_principal
        from executor.engine.granting import Wish

        begins = _read("--from", self.begins, lambda text: moment_of(text, here))
        ends = _read("--until", self.ends, lambda text: moment_of(text, here, is_end=True))
        span = _read("--for", self.lasts, span_of)
        return Wish(
            slack_principal(tenant, self.user),
            self.role.casefold(),
            self.resource,
            begins,
            ends if span is None else (begins or here.now) + span,
            None if self.behalf is None else slack_principal(tenant, self.behalf),
            self.note,
        )


async def _list(tenant: str | None, *, past: bool) -> GrantList:
    from bot.commands.installation import engine_for
    from executor.domain.ids import operator_principal
    from executor.engine.grant_reading import GrantList, see_grants

    async with engine_for(tenant) as (engine, chosen):
        found = await see_grants(engine, chosen, operator_principal(""), past=past)
    assert isinstance(found, GrantList), "an operator sees all of them"
    return found


async def _give(
    tenant: str | None, by: PrincipalId, typed: _Typed
) -> tuple[Given | NoChange | Refused, LocalTime]:
    from bot.commands.installation import engine_for
    from executor.engine.grant_reading import local_time
    from executor.engine.granting import give

    async with engine_for(tenant) as (engine, chosen):
        here = await local_time(engine, chosen)
        return await give(engine, chosen, by, typed.wish(chosen, here)), here


async def _revoke(
    tenant: str | None, by: PrincipalId, number: int
) -> TakenBack | NoChange | Refused:
    from bot.commands.installation import engine_for
    from executor.engine.granting import take_back

    async with engine_for(tenant) as (engine, chosen):
        return await take_back(engine, chosen, by, number)


@contextmanager
def _confirmed() -> Iterator[None]:
    """End the command with the truth where the answer to COMMIT was lost."""
    from executor.domain.errors import CommitUnknown

    try:
        yield
    except CommitUnknown:
        fail("not confirmed: it was recorded or not. `signoff grants list` shows it.")


def _name(by: str) -> PrincipalId:
    from executor.domain.ids import operator_principal
    from executor.domain.payloads import storable_text

    name = storable_text(by.strip())[:_LONGEST_NAME]
    if not name:
        raise click.UsageError("say who you are with --by; it is kept in the record")
    return operator_principal(name)


def _read(option: str, text: str | None, read: Callable[[str], T | None]) -> T | None:
    from bot.typed_time import TIMES

    found = None if text is None else read(text)
    if text is not None and found is None:
        raise click.BadParameter(f"{text!r} cannot be read as a time: {TIMES}", param_hint=option)
    return found


def _called(principal: PrincipalId) -> str:
    """Call somebody by their id, as the other commands do."""
    from bot.card_parts import one_line
    from executor.domain.ids import slack_user

    user = slack_user(principal)
    return user[1] if user is not None else one_line(principal, _LONGEST_NAME)


def _told(found: GrantList, *, past: bool) -> Iterator[str]:
    from bot.card_parts import one_line
    from bot.grant_text import ELSEWHERE, line, none_yet
    from executor.engine.grant_reading import LocalTime

    here = LocalTime(found.now, found.zone)
    for one in found.grants:
        yield f"{line(one, here, _called)}."
        if one.line.note:
            yield f"    Note: {one_line(one.line.note, _LONGEST_NOTE)}"
    if not found.grants:
        yield none_yet(is_whole=True, past=past)
    yield f"Times are those of {found.zone.key}. {ELSEWHERE}"


def _as_json(one: ListedGrant) -> dict[str, object]:
    return {
        **_grant_as_json(one.line.grant),
        "status": one.line.grant.status.value,
        "rests_on": one.footing.value,
        "given_at": one.line.granted_at,
        "revoked_by": one.line.revoked_by,
        "revoked_at": one.line.revoked_at,
        "note": one.line.note,
    }


def _grant_as_json(grant: Grant) -> dict[str, object]:
    return {
        "grant": grant.number,
        "user": grant.principal,
        "role": grant.role,
        "on": grant.resource,
        "from": grant.starts_at,
        "until": grant.ends_at,
        "given_by": grant.granted_by,
        "on_behalf_of": grant.on_behalf_of,
    }

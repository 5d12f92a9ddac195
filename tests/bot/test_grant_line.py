"""What people type about grants is understood as they meant it, and a bare name as nobody."""

from __future__ import annotations

import pytest
from hypothesis import given

from bot.listeners.command_line import parse_command
from bot.listeners.grant_line import (
    GiveRole,
    GrantCommand,
    ListGrants,
    RevokeGrant,
    Unclear,
    UnclearGrant,
    parse_grants,
)
from tests.support.hostile import texts

SAM = "<@U0SECOND|sam>"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("grants", ListGrants()),
        ("Grants LIST", ListGrants()),
        ("grants list --past", ListGrants(past=True)),
        ("grants past", ListGrants(past=True)),
        (f"grants give {SAM} approver", GiveRole("U0SECOND", "approver")),
        (f"grants\u00a0give {SAM} “Approver”", GiveRole("U0SECOND", "approver")),
        ("grants give <@U0SECOND> leads", GiveRole("U0SECOND", "leads")),
        ("grants give <@U0SECOND|sam second> leads", GiveRole("U0SECOND", "leads")),
        ("grants give U0SECOND leads", GiveRole("U0SECOND", "leads")),
        (f"grant {SAM} leads for 8h", GiveRole("U0SECOND", "leads", lasts="8h")),
        (
            f"grants give {SAM} approver on ticket:builtin:4101 until 2026-12-24 17:00",
            GiveRole("U0SECOND", "approver", "ticket:builtin:4101", ends="2026-12-24 17:00"),
        ),
        (
            f"grants give {SAM} approver —until tomorrow --from “today” --on 'kind:close_ticket'",
            GiveRole("U0SECOND", "approver", "kind:close_ticket", "today", "tomorrow"),
        ),
        (
            f"grants give {SAM} approver on behalf of <@U0REVIEWER|rene> until 2026-12-24",
            GiveRole("U0SECOND", "approver", ends="2026-12-24", behalf="U0REVIEWER"),
        ),
        (
            f"grants give {SAM} approver on desk:github:<http://acme.example|acme.example>/x",
            GiveRole("U0SECOND", "approver", "desk:github:acme.example/x"),
        ),
        (
            f"delegate {SAM} approver until 2026-12-24",
            GiveRole("U0SECOND", "approver", ends="2026-12-24", is_own=True),
        ),
        (f"delegate {SAM} approver on behalf of {SAM}", UnclearGrant(Unclear.WORDS)),
        (f"grants give {SAM} approver until 1h for 1h", UnclearGrant(Unclear.WORDS)),
        (f"grants give {SAM} approver until", UnclearGrant(Unclear.WORDS)),
        (f"grants give {SAM} approver until 1h until 2h", UnclearGrant(Unclear.WORDS)),
        (f"grants give {SAM} approver 2026-12-24", UnclearGrant(Unclear.WORDS)),
        (f"grants give {SAM}", UnclearGrant(Unclear.GIVE)),
        ("grants give @sam approver", UnclearGrant(Unclear.PERSON)),
        ("grants give &lt;@U0SECOND&gt; approver", UnclearGrant(Unclear.PERSON)),
        ("grants give WALTER approver", UnclearGrant(Unclear.PERSON)),
        ("grants give <!subteam^S1|@leads> approver", UnclearGrant(Unclear.PERSON)),
        (f"grants give {SAM} approver on behalf of @rene", UnclearGrant(Unclear.PERSON)),
        ("grants revoke 7", RevokeGrant(7)),
        ("grants revoke #7.", RevokeGrant(7)),
        ("grants revoke “grant 7”", RevokeGrant(7)),
        ("grants revoke 7 8", UnclearGrant(Unclear.REVOKE)),
        ("grants revoke " + "9" * 5_000, UnclearGrant(Unclear.REVOKE)),
        ("grants approver", UnclearGrant(Unclear.GIVE)),
    ],
)
def test_a_command_about_grants_is_read_as_it_was_meant(text: str, command: GrantCommand) -> None:
    assert parse_command(text) == command


@given(texts)
def test_every_text_is_some_command_about_grants(text: str) -> None:
    parse_grants(text)
    parse_grants(f"give {SAM} approver {text}")

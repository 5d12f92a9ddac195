"""``signoff demo --fault``: what a mail or a ticket's change meets, and the truth about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.commands.demo import demo
from bot.sandbox.crash_points import Story
from bot.sandbox.demo_faults import (
    TOLD,
    DemoFault,
    DeskKind,
    FaultAt,
    MailKind,
    Outside,
    impossible,
)
from bot.sandbox.model import Json
from tests.support.demo import demo_once
from tests.support.nursery import Nursery
from tests.support.theatre import Theatre

_WORDS = {
    "succeeded": "Done. ",
    "failed": "Failed: nothing was done. ",
    "stale": "Out of date: nothing was done. ",
    "partial": "Done in part",
    "unknown": "Not known: it may have been sent. ",
}
# Of a 2xx the status is enough, and of the second copy nobody but the customer learns.
_THE_ANSWER_TELLS = (None, DemoFault.CUT_BODY, DemoFault.REPEAT)


def _searches(report: Json, effect: str) -> list[tuple[str, int]]:
    """List how the attempts at one effect ended, and how often each was looked for."""
    tried = [attempt for attempt in report["attempts"] if attempt["effect"] == effect]
    return [(attempt["status"], attempt["searches"]) for attempt in tried]


# Every kind once; what each provider makes of each is in the recovery matrix.
_PLAYED: Mapping[MailKind, Sequence[DemoFault | None]] = {
    MailKind.SMTP: [
        fault for fault in (None, *DemoFault) if not impossible(Outside(MailKind.SMTP, fault=fault))
    ],
    MailKind.RESEND: [
        None,
        DemoFault.CUT_BODY,
        DemoFault.LOST_ANSWER,
        DemoFault.TOO_MANY,
        DemoFault.TOO_MANY_RETRY_AFTER,
    ],
    MailKind.POSTMARK: [None, DemoFault.LOST_ANSWER, DemoFault.ERROR_AFTER, DemoFault.REPEAT],
}


def test_every_fault_of_a_mail_is_played_somewhere() -> None:
    possible = {
        fault
        for fault in DemoFault
        if not all(impossible(Outside(kind, fault=fault)) for kind in MailKind)
    }
    assert possible <= {fault for faults in _PLAYED.values() for fault in faults}


@pytest.mark.parametrize("kind", _PLAYED)
@pytest.mark.timeout(300)
async def test_the_demo_tells_the_truth_about_faults(kind: MailKind, nursery: Nursery) -> None:
    theatre = Theatre(nursery, Outside(kind))
    try:
        for fault in _PLAYED[kind]:
            truth = await theatre.play(Story.APPROVE, fault=fault)
            report = truth.report
            assert report["fault"] == (None if fault is None else fault.value)
            assert _WORDS[report["operation"]["status"]] in report["card"]
            forgotten = kind is MailKind.SMTP and fault is DemoFault.HANG_BEFORE
            assert report["emails_accepted"] == (fault is not DemoFault.REJECT and not forgotten)
            at_once = _searches(report, "email.send") == [("applied", 0)]
            assert at_once == (fault in _THE_ANSWER_TELLS), "the fault was met"
    finally:
        await theatre.close()


# What the first change met: how each attempt at it ended, and how often the desk was read for it.
_MET: Mapping[DeskKind, Mapping[DemoFault | None, list[tuple[str, int]]]] = {
    DeskKind.ZENDESK: {
        None: [("applied", 0)],
        DemoFault.REFUSE: [("applied", 0)],
        DemoFault.HANG_BEFORE: [("unknown", 1), ("applied", 1)],
        DemoFault.LOST_ANSWER: [("applied", 1)],
        DemoFault.REPEAT: [("applied", 1)],
        DemoFault.CONFLICT: [("unknown", 1), ("applied", 0)],
        DemoFault.TOO_MANY_RETRY_AFTER: [("not_applied", 0), ("applied", 0)],
        DemoFault.REJECT: [("not_applied", 0)],
    },
    DeskKind.GITHUB: {
        None: [("applied", 0)],
        DemoFault.LOST_ANSWER: [("applied", 1)],
        DemoFault.REJECT: [("not_applied", 0)],
    },
}
_FIRST = {DeskKind.ZENDESK: "ticket.close", DeskKind.GITHUB: "ticket.note"}


@pytest.mark.parametrize("kind", _MET)
@pytest.mark.timeout(300)
async def test_the_demo_tells_the_truth_about_every_fault_at_a_desk(
    kind: DeskKind, nursery: Nursery
) -> None:
    theatre = Theatre(nursery, Outside(desk=kind))
    try:
        for fault, met in _MET[kind].items():
            report = (await theatre.play(Story.APPROVE, fault=fault, at=FaultAt.DESK)).report
            assert (report["desk"], report["mail"]) == (kind.value, "smtp")
            assert _WORDS[report["operation"]["status"]] in report["card"]
            assert _searches(report, _FIRST[kind]) == met, fault
            done = fault is not DemoFault.REJECT
            changes = 2 if kind is DeskKind.GITHUB else 1
            assert _at_the_desk(report) == (("closed", changes, 1) if done else ("open", 0, 0))
            assert report["emails_accepted"] == int(done)
            silent = "desk_silent" in report["events"]
            assert silent == (fault is DemoFault.REFUSE)
        if kind is DeskKind.ZENDESK:
            stale = (await theatre.play(Story.STALE)).report
            assert _WORDS["stale"] in stale["card"]
            assert (_at_the_desk(stale), stale["emails_accepted"]) == (("open", 0, 0), 0)
    finally:
        await theatre.close()


def _at_the_desk(report: Json) -> tuple[str, int, int]:
    ticket = report["ticket"]
    return ticket["status"], ticket["changes"], ticket["notes"]


@pytest.mark.timeout(180)
async def test_the_command_recovers_from_a_lost_answer_by_the_key(folder: Path) -> None:
    done = await demo_once("--mail", "resend", "--fault", "lost-answer", temporary=folder)
    assert done.report is not None, done.errors
    assert (done.code, done.report["ok"]) == (0, True), done.report
    assert (done.report["mail"], done.report["fault"]) == ("resend", "lost-answer")
    assert done.report["operation"]["status"] == "succeeded"
    assert done.report["emails_accepted"] == 1


@pytest.mark.parametrize(
    ("flags", "choice"),
    [
        (["--fault", "gremlins"], "--fault list"),
        (["--fault", "cut-body"], "choose --mail resend or postmark, or --fault lost-answer"),
        (["--fault", "429"], "choose --mail resend or postmark, or --fault refuse"),
        (["--once", "--mail", "resend", "--crash", "call.after"], "leave the others out"),
        (["--once", "--fault", "refuse", "--crash", "call.after"], "leave the others out"),
        (["--once", "--desk", "github", "--crash", "call.after"], "leave the others out"),
        (["--fault-at", "desk"], "add --fault KIND"),
        (["--fault", "reject", "--fault-at", "desk"], "choose --desk zendesk or github"),
        (["--desk", "zendesk", "--fault", "conflict"], "choose --fault-at desk"),
        (
            ["--desk", "github", "--fault", "conflict", "--fault-at", "desk"],
            "choose --desk zendesk, or --fault lost-answer",
        ),
        (["--once", "--mail", "postmark", "--settle"], "choose --fault lost-answer"),
        (["--once", "--fault", "refuse", "--cancel"], "leave one of both out"),
        (["--mail", "sendmail"], "'smtp', 'resend', 'postmark'"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_what_can(flags: list[str], choice: str) -> None:
    refused = CliRunner().invoke(demo, flags)
    assert refused.exit_code == 2
    assert choice in " ".join(refused.output.split())


def test_the_list_explains_every_fault() -> None:
    listed = CliRunner().invoke(demo, ["--fault", "list"])
    assert listed.exit_code == 0
    lines = [line for line in listed.output.splitlines() if line.startswith(" ")]
    assert [line.split()[0] for line in lines] == [*TOLD[FaultAt.MAIL], *TOLD[FaultAt.DESK]]
    assert {fault for told in TOLD.values() for fault in told} == set(DemoFault)
    assert "only zendesk" in next(line for line in lines if line.split()[0] == "conflict")

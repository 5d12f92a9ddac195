"""``signoff demo --fault``: what the first mail meets, and the truth that the demo tells of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.commands.demo import demo
from bot.sandbox.crash_points import Story
from bot.sandbox.demo_faults import DemoFault, MailKind, impossible
from tests.support.demo import demo_once
from tests.support.nursery import Nursery
from tests.support.theatre import Theatre

_WORDS = {
    "succeeded": "Done. ",
    "partial": "Done in part",
    "unknown": "Not known: it may have been sent. ",
}
# Of a 2xx the status is enough, and of the second copy nobody but the customer learns.
_THE_ANSWER_TELLS = (None, DemoFault.CUT_BODY, DemoFault.REPEAT)


@pytest.mark.parametrize("kind", MailKind)
@pytest.mark.timeout(300)
async def test_the_demo_tells_the_truth_about_every_fault(kind: MailKind, nursery: Nursery) -> None:
    theatre = Theatre(nursery, kind)
    try:
        for fault in (None, *DemoFault):
            if fault is not None and impossible(kind, fault):
                continue
            truth = await theatre.play(Story.APPROVE, fault=fault)
            report = truth.report
            assert report["fault"] == (None if fault is None else fault.value)
            assert _WORDS[report["operation"]["status"]] in report["card"]
            forgotten = kind is MailKind.SMTP and fault is DemoFault.HANG_BEFORE
            assert report["emails_accepted"] == (fault is not DemoFault.REJECT and not forgotten)
            at_once = report["attempts"] == [{"status": "applied", "searches": 0}]
            assert at_once == (fault in _THE_ANSWER_TELLS), "the fault was met"
    finally:
        await theatre.close()


@pytest.mark.timeout(180)
async def test_the_command_recovers_from_a_lost_answer_by_the_key(folder: Path) -> None:
    done = await demo_once("--mail", "resend", "--fault", "lost-answer", temporary=folder)
    assert done.report is not None, done.errors
    assert (done.code, done.report["ok"]) == (0, True), done.report["checks"]
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
    assert [line.split()[0] for line in listed.output.splitlines()] == list(DemoFault)

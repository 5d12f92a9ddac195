"""``signoff demo``: everything on this machine, for a newcomer's hands or without a person."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from bot.commands.failing import FAILED, explained, fail

if TYPE_CHECKING:
    from bot.sandbox.crash_points import CrashPlan, Story
    from bot.sandbox.demo_faults import DemoFault, FaultAt, Outside
    from bot.sandbox.demo_truth import Truth

DEFAULT_TIMEOUT_SECONDS = 120.0


@click.command(short_help="Try Signoff on this machine, without any account.")
@click.option("--once", is_flag=True, help="Do the reference job without a person, then end.")
@click.option(
    "--reject", "story", flag_value="reject", help="With --once: reject, then approve the revision."
)
@click.option(
    "--cancel", "story", flag_value="cancel", help="With --once: cancel while the card waits."
)
@click.option(
    "--stale",
    "story",
    flag_value="stale",
    help="With --once: the customer writes before the approval.",
)
@click.option("--expire", "story", flag_value="expire", help="With --once: nobody decides in time.")
@click.option(
    "--mention",
    "story",
    flag_value="mention",
    help="With --once: ask by naming the bot, not by /signoff.",
)
@click.option(
    "--settle",
    "story",
    flag_value="settle",
    help="With --once: the mail server's answer is lost, and a person says what happened.",
)
@click.option(
    "--ask",
    "story",
    flag_value="ask",
    help="With --once: ask the agent a question before the approval.",
)
@click.option(
    "--withdraw",
    "story",
    flag_value="withdraw",
    help="With --once: whoever asked for it takes it back.",
)
@click.option(
    "--crash",
    metavar="POINT",
    help="With --once: kill the program at a failpoint (SIGKILL) and start it again.",
)
@click.option(
    "--mail",
    type=click.Choice(["smtp", "resend", "postmark"]),
    default="smtp",
    show_default=True,
    help="Who sends the mail: a mail server, or a double of that provider.",
)
@click.option(
    "--desk",
    type=click.Choice(["builtin", "zendesk", "github"]),
    default="builtin",
    show_default=True,
    help="Where the tickets are: in Signoff itself, or at a double of that desk.",
)
@click.option(
    "--model",
    type=click.Choice(["scripted", "anthropic", "openai"]),
    default="scripted",
    show_default=True,
    help="The scripted model, or a double of that provider (needs signoff[models]).",
)
@click.option(
    "--fault",
    metavar="KIND",
    help="What goes wrong, once; --fault list lists what can.",
)
@click.option(
    "--fault-at",
    type=click.Choice(["mail", "desk"]),
    help="Where it goes wrong: at the first mail, or at the first change of a ticket."
    "  [default: mail]",
)
@click.option("--list-failpoints", is_flag=True, help="List what --crash takes, and end.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for a program to read.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=DEFAULT_TIMEOUT_SECONDS,
    show_default=True,
    help="With --once: seconds for the whole job.",
)
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps everything. [default: SIGNOFF_HOME/demo; with --once a temporary one]",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def demo(
    once: bool,
    story: str | None,
    crash: str | None,
    mail: str,
    desk: str,
    model: str,
    fault: str | None,
    fault_at: str | None,
    list_failpoints: bool,
    as_json: bool,
    timeout: float,
    home: Path | None,
    no_browser: bool,
) -> None:
    """Try Signoff here: a Slack to click in, a mailbox, a desk with tickets, and no account at all.

    Everything runs on this machine on free ports: a private PostgreSQL, a sandbox Slack with its
    page, a mail server that keeps what it gets, the bot and the executor. Ctrl-C stops it; the next
    start finds everything again.

    With --fault something goes wrong once, and the card, the mailbox and the tickets show what
    becomes of it.

    With --once the job is done without a person: a run is asked for, its card is waited for and
    approved, and what became of it is compared from all sides. Exit code 0 only if all is right.
    """
    if list_failpoints:
        _list_failpoints(as_json)
        return
    if fault == "list":
        _list_faults()
        return
    outside = _outside(mail, desk, model, fault, fault_at)
    if not once:
        if story or crash or as_json:
            raise click.UsageError("--json, --crash and the variants need --once")
        _show(home, outside, open_browser=not no_browser)
        return
    chosen, plan = _chosen(story, crash)
    _check_together(chosen, plan, outside)
    with explained():
        truth = _play(home, chosen, plan, outside, timeout)
    _tell(truth, as_json)
    sys.exit(0 if truth.ok else FAILED)


def _chosen(story: str | None, point: str | None) -> tuple[Story, CrashPlan | None]:
    """Choose the story; a failpoint that only one story reaches brings its story with it."""
    from bot.sandbox.crash_points import Story, crash_plan

    if point is None:
        return Story(story or Story.APPROVE), None
    try:
        plan = crash_plan(point)
    except KeyError:
        raise click.BadParameter(
            f"there is no failpoint {point!r}; `signoff demo --list-failpoints` lists them",
            param_hint="--crash",
        ) from None
    if story is not None and story != plan.story:
        raise click.UsageError(
            f"{point} is tried in the variant {plan.story.value!r}; leave --{story} out"
        )
    return plan.story, plan


def _outside(mail: str, desk: str, model: str, fault: str | None, fault_at: str | None) -> Outside:
    from bot.sandbox import demo_faults as kinds
    from bot.sandbox.demo_faults import DemoFault, FaultAt, Outside, impossible

    told = (kinds.MailKind(mail), kinds.DeskKind(desk), kinds.ModelKind(model))
    if fault is None:
        if fault_at is not None:
            raise click.UsageError("--fault-at says where and --fault what: add --fault KIND")
        return Outside(*told)
    try:
        planned = DemoFault(fault)
    except ValueError:
        raise click.BadParameter(
            f"{fault!r} is none of {', '.join(DemoFault)}; `signoff demo --fault list` tells more",
            param_hint="--fault",
        ) from None
    at = FaultAt.MAIL if fault_at is None else FaultAt(fault_at)
    outside = Outside(*told, planned, at)
    problem = impossible(outside)
    if problem is not None:
        raise click.UsageError(problem)
    return outside


def _check_together(story: Story, crash: CrashPlan | None, outside: Outside) -> None:
    """Refuse what would not show what it says, and say what does."""
    from bot.sandbox.crash_points import Story
    from bot.sandbox.demo_faults import Outside

    if crash is not None and outside != Outside():
        raise click.UsageError(
            "--crash is tried with --mail smtp, --desk builtin, --model scripted and without "
            "--fault: leave the others out"
        )
    if story is Story.SETTLE and (outside.fault, outside.mail) != (None, Outside().mail):
        raise click.UsageError(
            "--settle loses the answer of a mail server, which nobody else can tell: leave --fault "
            "and --mail out, or leave --settle out and choose --fault lost-answer"
        )
    nothing_is_done = (Story.CANCEL, Story.STALE, Story.EXPIRE, Story.WITHDRAW)
    if outside.fault is not None and story in nothing_is_done:
        raise click.UsageError(
            f"nothing is closed or sent with --{story.value}, so no fault is met: leave one of "
            "both out"
        )


def _list_faults() -> None:
    from bot.sandbox.demo_faults import TOLD, FaultAt

    for at, told in TOLD.items():
        where = {
            FaultAt.MAIL: "At the first mail (--fault-at mail, which is the default):",
            FaultAt.DESK: "At the first change of a ticket (--fault-at desk):",
        }[at]
        click.echo(where)
        for fault, what in told.items():
            click.echo(f"  {fault.value:<16} {what}{_only(at, fault)}")


def _only(at: FaultAt, fault: DemoFault) -> str:
    """Name who alone can fail like this."""
    from bot.sandbox.demo_faults import DeskKind, FaultAt, MailKind, Outside, impossible

    if at is FaultAt.MAIL:
        able = [m.value for m in MailKind if not impossible(Outside(mail=m, fault=fault, at=at))]
        everybody = len(MailKind)
    else:
        able = [d.value for d in DeskKind if not impossible(Outside(desk=d, fault=fault, at=at))]
        everybody = len(DeskKind) - 1
    return "" if len(able) == everybody else f" (only {' and '.join(able)})"


def _play(
    home: Path | None,
    story: Story,
    crash: CrashPlan | None,
    outside: Outside,
    timeout: float,
) -> Truth:
    from bot.sandbox.scripted_demo import play
    from bot.sandbox.stage import StageFailed
    from bot.supervisor import ChildGivenUp

    temporary = None if home is not None else Path(tempfile.mkdtemp(prefix="signoff-demo-"))
    where = home if temporary is None else temporary
    assert where is not None

    async def until_told_to_stop() -> Truth:
        ours = asyncio.current_task()
        assert ours is not None
        # So that the programs are stopped and the temporary home is removed.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ours.cancel)
        return await play(where, story, crash, outside=outside, timeout_seconds=timeout)

    try:
        return asyncio.run(until_told_to_stop())
    except (StageFailed, ChildGivenUp) as error:
        fail(str(error))
    except asyncio.CancelledError:
        fail("stopped before its end")
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _tell(truth: Truth, as_json: bool) -> None:
    if as_json:
        report = {"ok": truth.ok, **truth.report, "checks": truth.checks}
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    click.echo(truth.report["card"])
    click.echo()
    for name, holds in truth.checks.items():
        click.secho("ok   " if holds else "WRONG", fg="green" if holds else "red", nl=False)
        click.echo(f" {name}")
    click.echo(f"\n{truth.report['seconds']:g} s")


def _list_failpoints(as_json: bool) -> None:
    from bot.sandbox.crash_points import CRASH_PLANS, Story

    if as_json:
        plans = [
            {
                "point": plan.point,
                "process": plan.program.value,
                "variant": plan.story.value,
                "in_reference_job": plan.story is Story.APPROVE and not plan.earlier,
                "in_doubt": plan.in_doubt,
                "after": list(plan.earlier),
            }
            for plan in CRASH_PLANS
        ]
        click.echo(json.dumps(plans, indent=2))
        return
    for plan in CRASH_PLANS:
        notes = []
        if plan.story is not Story.APPROVE:
            notes.append(f"only --{plan.story.value}")
        if plan.earlier:
            notes.append(f"only after a crash at {', '.join(plan.earlier)}")
        if plan.in_doubt:
            notes.append("ends unknown")
        click.echo(f"{plan.point:<24} {plan.program.value:<9} {'; '.join(notes)}".rstrip())


def _show(home: Path | None, outside: Outside, *, open_browser: bool) -> None:
    """Run the demo for a newcomer's hands until it is told to stop."""
    with explained():
        from bot.commands import installation
        from bot.sandbox.stage import StageFailed
        from bot.supervisor import ChildGivenUp

        where = home or installation.home() / "demo"
        try:
            asyncio.run(_until_stopped(where, outside, open_browser=open_browser))
        except (ChildGivenUp, StageFailed) as error:
            fail(str(error))


async def _until_stopped(home: Path, outside: Outside, *, open_browser: bool) -> None:
    from bot.commands.stopping import until_told_to_stop
    from bot.sandbox.page import suggestions
    from bot.sandbox.stage import staged

    stop = until_told_to_stop()
    click.echo("Starting a database, a Slack, a mailbox, the bot and the executor …", err=True)
    async with staged(home, outside=outside) as stage:
        if outside.fault is not None:
            await stage.fail(outside.fault, outside.at)
        stopping = asyncio.create_task(stop.wait())
        try:
            await stage.bot.start()
            await stage.executor.start()
            await _first_of(stage.wait("the bot to be ready", stage.bot_is_ready()), stopping)
            if not stopping.done():
                click.echo(f"\n  Signoff demo:  {stage.url}\n", err=False)
                first = suggestions(stage.desk.goal)[0]
                click.echo(f"Type {first} there. Everything is kept in {home}.", err=True)
                click.echo(f"Look into it: SIGNOFF_HOME={home} signoff budget", err=True)
                click.echo("Ctrl-C stops it.", err=True)
                if open_browser and _has_browser():
                    await asyncio.to_thread(webbrowser.open, stage.url)
                await _first_of(stage.wait("a person to stop the demo", stop.wait()), stopping)
        finally:
            stopping.cancel()
            await asyncio.wait({stopping})
        click.echo("Stopping …", err=True)


async def _first_of(work: Awaitable[object], stopping: asyncio.Task[Literal[True]]) -> None:
    """Wait for ``work``, or until we are told to stop."""
    task = asyncio.ensure_future(work)
    await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        return
    task.cancel()
    await asyncio.wait({task})


def _has_browser() -> bool:
    """Say whether a browser with a window can be opened; one in the terminal would take it over."""
    if sys.platform.startswith("linux"):
        shown = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
        if not shown:
            return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True

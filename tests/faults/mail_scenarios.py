"""What goes wrong at the mail providers, fault by fault."""

from __future__ import annotations

from dataclasses import replace

from bot.sandbox.mailbox_faults import Close, Hang, Point, Reply
from bot.sandbox.provider_faults import Fault, PlannedFault
from tests.support.mail_scene import MailScene
from tests.support.mortal import Death
from tests.support.story import Scenario

Row = Scenario[MailScene]

LOST, NEVER = PlannedFault(Fault.DROP, after_accepting=True), PlannedFault(Fault.DROP)
LIMITED = PlannedFault(Fault.RATE_LIMIT, retry_after=7)
HANG, HANG_AFTER = PlannedFault(Fault.HANG), PlannedFault(Fault.HANG, after_accepting=True)
REFUSE = PlannedFault(Fault.REFUSE)


def _fails(name: str, fault: PlannedFault, *, call: int | None = 1, hangs: bool = False) -> Row:
    return Row(name, lambda scene: scene.fail(fault, call=call), hangs=hangs)


def _loses(scene: MailScene) -> None:
    scene.fail(LOST)


def _hangs(scene: MailScene) -> None:
    scene.fail(HANG)


def _second_is_refused(scene: MailScene) -> None:
    scene.fail(LOST)
    scene.fail(PlannedFault(Fault.ERROR, status=422), call=2)


def _hangs_until_the_repeat_is_told_to_wait(scene: MailScene) -> None:
    scene.fail(HANG)
    scene.later(30.0, scene.http.faults.release)


def _first_search_fails(scene: MailScene) -> None:
    scene.fail(LOST)
    scene.fail_search(PlannedFault(Fault.ERROR, status=503))


def _every_search_fails(scene: MailScene) -> None:
    scene.fail(LOST)
    scene.fail_search(PlannedFault(Fault.DROP), call=None)


DEATHS = [
    Row("a worker has died after recording the attempt", killed_at=Death("open.after")),
    Row("a worker has died before the first byte", killed_at=Death("call.before")),
    Row("a worker has died after the answer", killed_at=Death("call.after")),
    Row("a worker has died before it had recorded the answer", killed_at=Death("report.before")),
]
COMMON = [
    Row("nothing"),
    Row(
        "connections are refused, then not any more",
        lambda scene: scene.fail(REFUSE),
        MailScene.listen_again,
    ),
    _fails("connections are refused, for good", REFUSE, call=None),
    _fails(
        "429 with Retry-After, then not any more", PlannedFault(Fault.RATE_LIMIT, retry_after=7)
    ),
    _fails("429 without Retry-After, then not any more", PlannedFault(Fault.RATE_LIMIT)),
    _fails("429, for good", PlannedFault(Fault.RATE_LIMIT), call=None),
    _fails("422 in the provider's shape", PlannedFault(Fault.ERROR, status=422)),
    _fails("500 before accepting", PlannedFault(Fault.ERROR)),
    _fails("500 after accepting", PlannedFault(Fault.ERROR, after_accepting=True)),
    _fails("a proxy's 502 before accepting", PlannedFault(Fault.PROXY_PAGE, status=502)),
    _fails(
        "a proxy's 502 after accepting",
        PlannedFault(Fault.PROXY_PAGE, after_accepting=True, status=502),
    ),
    _fails("the connection drops before accepting", NEVER),
    _fails("the connection drops after accepting", LOST),
    _fails("the connection drops before accepting, every time", NEVER, call=None),
    _fails("the connection drops after accepting, at every sending", LOST, call=None),
    _fails("2xx with a cut body", PlannedFault(Fault.CUT_BODY)),
    _fails("the provider delivers one mail twice", PlannedFault(Fault.DELIVER_TWICE)),
    _fails("no answer, never accepted", HANG, hangs=True),
    _fails("no answer after accepting", HANG_AFTER, hangs=True),
    Row("no answer, accepted after we gave up", _hangs, MailScene.accept_late, hangs=True),
    Row(
        "lost after accepting, and then the run is cancelled", _loses, MailScene.cancel, alone=True
    ),
    Row("lost after accepting, and then we are away for a day", _loses, MailScene.be_away),
    *DEATHS,
]
# What not even a provider that takes keys tells.
NOT_BY_KEY = {
    "the connection drops after accepting, at every sending",
    "lost after accepting, and then the run is cancelled",
    "lost after accepting, and then we are away for a day",
}
RESEND = [
    *(replace(row, learnable=row.name not in NOT_BY_KEY) for row in COMMON),
    Row(
        "no answer, accepted while the repeat is told to wait",
        _hangs_until_the_repeat_is_told_to_wait,
        hangs=True,
        # With a death the third sending, the last that a machine makes, does not tell either.
        learnable=False,
    ),
    Row("the first answer is lost, the repeat is refused", _second_is_refused, learnable=False),
]
POSTMARK = [
    *COMMON,
    Row("lost after accepting, the first search fails", _first_search_fails),
    Row("lost after accepting, every search fails", _every_search_fails, learnable=False),
]


def _smtp(
    name: str,
    point: Point,
    action: Close | Hang | Reply,
    *,
    loses: bool = False,
    hangs: bool = False,
) -> Row:
    return Row(name, lambda scene: scene.fail_at(point, action), loses=loses, hangs=hangs)


FAREWELLS: list[tuple[str, Close | Hang | Reply]] = [
    ("a connection that drops", Close()),
    ("a 421", Reply(421)),
    ("a 550", Reply(550)),
]
SMTP = [
    Row("nothing"),
    *(
        _smtp(
            f"{what} at {point.value}",
            point,
            action,
            loses=isinstance(action, Close) and point in (Point.CONTENT, Point.FINAL),
        )
        for point in Point
        for what, action in FAREWELLS
        if not (point is Point.CONTENT and isinstance(action, Reply))
    ),
    _smtp(
        "the connection drops after accepting",
        Point.FINAL,
        Close(after_accepting=True),
        loses=True,
    ),
    _smtp(
        "no answer after accepting",
        Point.FINAL,
        Hang(after_accepting=True),
        loses=True,
        hangs=True,
    ),
    _smtp("no answer to DATA, never accepted", Point.DATA, Hang(), hangs=True),
    *DEATHS,
]
MAIL = {"resend": RESEND, "postmark": POSTMARK, "smtp": SMTP}

# By the scenario that is told with deaths: those that nobody can tell apart from it without one.
_ALIKE_AT_HTTP = {
    "nothing": ("2xx with a cut body", "the provider delivers one mail twice"),
    "connections are refused, for good": ("429, for good",),
    "500 before accepting": (
        "a proxy's 502 before accepting",
        "the connection drops before accepting",
    ),
    "the connection drops after accepting": (
        "500 after accepting",
        "a proxy's 502 after accepting",
        "no answer after accepting",
    ),
}
_ALIKE_AT_SMTP = {
    "nothing": ("a 550 at ehlo", *(f"{what} at quit" for what, _ in FAREWELLS)),
    "a connection that drops at connect": (
        "a 421 at connect",
        *(
            f"{what} at {point}"
            for point in ("ehlo", "mail", "rcpt", "data")
            for what in ("a connection that drops", "a 421")
        ),
        "a 421 at final",
    ),
    "a 550 at connect": tuple(f"a 550 at {point}" for point in ("mail", "rcpt", "data", "final")),
    "a connection that drops at content": ("a connection that drops at final",),
    "the connection drops after accepting": ("no answer after accepting",),
}
MAIL_ALIKE = {"resend": _ALIKE_AT_HTTP, "postmark": _ALIKE_AT_HTTP, "smtp": _ALIKE_AT_SMTP}

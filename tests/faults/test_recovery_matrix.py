"""Every adapter through every fault of its provider, and through our own death, to the true end.

The table in ``docs/recovery-matrix.md`` is what these runs came to. To write it anew:
``RECOVERY_MATRIX=write pytest -n 0 tests/faults/test_recovery_matrix.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.sandbox import mailbox_faults as smtp
from bot.sandbox.mailbox_faults import Close, Hang, Point, Reply
from bot.sandbox.provider_faults import Fault, PlannedFault
from executor.domain.effect import Capability
from tests.support.matrix import Scenario, Stage, play
from tests.support.office import Office

MATRIX = Path(__file__).parents[2] / "docs" / "recovery-matrix.md"
WRITE = os.environ.get("RECOVERY_MATRIX") == "write"
TITLES = {
    "resend": "Resend (keyed)",
    "postmark": "Postmark (lookup)",
    "smtp": "SMTP (opaque)",
}
HEAD = """# What recovery comes to

Each line is one run of `tests/faults/test_recovery_matrix.py`: the real adapter against a double
of its provider over HTTP or SMTP, one fault at the first attempt unless it says otherwise, and
then everything that our machines do by themselves until nothing is due any more. "accepted" counts
the mails that the provider took responsibility for; it is never more than one. An operation is
`succeeded` only where one was accepted, `partial` (the ticket is closed, the mail was not sent)
only where none was, and `unknown` wherever nobody could find out; then a person is asked.
"""
COLUMNS = """| what goes wrong | accepted | ends as | attempts | searches | how that is learnt |
|---|---|---|---|---|---|"""


def _http(name: str, fault: PlannedFault, *, call: int | None = 1, hasty: bool = False) -> Scenario:
    return Scenario(name, lambda stage: stage.http.fail(fault, call=call), hasty=hasty)


def _smtp(
    name: str, point: Point, action: Close | Hang | Reply, *, hasty: bool = False
) -> Scenario:
    fault = smtp.Fault(point, action, conversation=1)
    return Scenario(name, lambda stage: stage.mailbox.fail(fault), hasty=hasty)


async def _listen_again(stage: Stage) -> None:
    stage.http.faults.clear()
    await stage.http.listen()


async def _late(stage: Stage) -> None:
    stage.http.faults.release()
    await stage.http.accepted_mails.wait_for(lambda mails: mails.accepted == 1)


async def _late_after_a_repeat(stage: Stage) -> None:
    await stage.doubt.pass_time(5.1)
    await stage.doubt.work()
    await _late(stage)


async def _cancelled(stage: Stage) -> None:
    assert stage.operation is not None
    await stage.doubt.office.cancel(await stage.doubt.office.run_of(stage.operation))


async def _a_day_later(stage: Stage) -> None:
    await stage.doubt.pass_time(86_400.0)


LOST, NEVER = PlannedFault(Fault.DROP, after_accepting=True), PlannedFault(Fault.DROP)
HANG = PlannedFault(Fault.HANG)


def _lost(stage: Stage) -> None:
    stage.http.fail(LOST, call=1)


def _hangs(stage: Stage) -> None:
    stage.http.fail(HANG, call=1)


def _second_is_refused(stage: Stage) -> None:
    _lost(stage)
    stage.http.fail(PlannedFault(Fault.ERROR, status=422), call=2)


def _first_search_fails(stage: Stage) -> None:
    _lost(stage)
    stage.postmark.search_faults.plan(PlannedFault(Fault.ERROR, status=503), call=1)


def _every_search_fails(stage: Stage) -> None:
    _lost(stage)
    stage.postmark.search_faults.plan(PlannedFault(Fault.DROP))


COMMON = [
    Scenario("nothing"),
    Scenario(
        "connections are refused, then not any more",
        lambda stage: stage.http.fail(PlannedFault(Fault.REFUSE), call=1),
        _listen_again,
    ),
    _http("connections are refused, for good", PlannedFault(Fault.REFUSE), call=None),
    _http("429, then not any more", PlannedFault(Fault.RATE_LIMIT, retry_after=7)),
    _http("429, for good", PlannedFault(Fault.RATE_LIMIT), call=None),
    _http("422 in the provider's shape", PlannedFault(Fault.ERROR, status=422)),
    _http("500 before accepting", PlannedFault(Fault.ERROR)),
    _http("500 after accepting", PlannedFault(Fault.ERROR, after_accepting=True)),
    _http("a proxy's 502 before accepting", PlannedFault(Fault.PROXY_PAGE, status=502)),
    _http(
        "a proxy's 502 after accepting",
        PlannedFault(Fault.PROXY_PAGE, after_accepting=True, status=502),
    ),
    _http("the connection drops before accepting", NEVER),
    _http("the connection drops after accepting", LOST),
    _http("the connection drops before accepting, every time", NEVER, call=None),
    _http("the connection drops after accepting, at every sending", LOST, call=None),
    _http("2xx with a cut body", PlannedFault(Fault.CUT_BODY)),
    _http("the provider delivers one mail twice", PlannedFault(Fault.DELIVER_TWICE)),
    _http("no answer, never accepted", HANG, hasty=True),
    _http("no answer after accepting", PlannedFault(Fault.HANG, after_accepting=True), hasty=True),
    Scenario("no answer, accepted after we gave up", _hangs, _late, hasty=True),
    Scenario("lost after accepting, and then the run is cancelled", _lost, _cancelled),
    Scenario("lost after accepting, and then we are away for a day", _lost, _a_day_later),
    Scenario("our worker dies after recording the attempt", killed_at="open.after"),
    Scenario("our worker dies before the first byte", killed_at="call.before"),
    Scenario("our worker dies after the answer", killed_at="call.after"),
    Scenario("our worker dies before it has recorded the answer", killed_at="report.before"),
]
# What not even a provider that takes keys tells.
NOT_BY_KEY = {
    "the connection drops after accepting, at every sending",
    "lost after accepting, and then the run is cancelled",
    "lost after accepting, and then we are away for a day",
    "the first answer is lost, the repeat is refused",
}
FAREWELLS: list[tuple[str, Close | Hang | Reply]] = [
    ("a connection that drops", Close()),
    ("a 421", Reply(421)),
    ("a 550", Reply(550)),
]
SCENARIOS: dict[str, list[Scenario]] = {
    "resend": [
        *COMMON,
        Scenario(
            "no answer, accepted while the repeat is told to wait",
            _hangs,
            _late_after_a_repeat,
            hasty=True,
        ),
        Scenario("the first answer is lost, the repeat is refused", _second_is_refused),
    ],
    "postmark": [
        *COMMON,
        Scenario("lost after accepting, the first search fails", _first_search_fails),
        Scenario("lost after accepting, every search fails", _every_search_fails, learnable=False),
    ],
    "smtp": [
        Scenario("nothing"),
        *(
            _smtp(f"{what} at {point.value}", point, action)
            for point in Point
            for what, action in FAREWELLS
            if not (point is Point.CONTENT and isinstance(action, Reply))
        ),
        _smtp("the connection drops after accepting", Point.FINAL, Close(after_accepting=True)),
        _smtp("no answer after accepting", Point.FINAL, Hang(after_accepting=True), hasty=True),
        _smtp("no answer, never accepted", Point.DATA, Hang(), hasty=True),
        *(scenario for scenario in COMMON if scenario.killed_at is not None),
    ],
}


async def _section(provider: str, office: Office) -> str:
    """Play every scenario of one provider and spell its table."""
    rows = []
    for number, scenario in enumerate(SCENARIOS[provider], start=6000):
        ending = await play(provider, scenario, office, str(number))
        name = scenario.name
        assert ending.accepted <= 1, name
        assert ending.status in ("succeeded", "partial", "unknown"), name
        if ending.status == "succeeded":
            assert ending.accepted == 1, name
        if ending.status == "partial":
            assert ending.accepted == 0, name
        learnable = scenario.learnable and not (
            ending.capability is Capability.KEYED and name in NOT_BY_KEY
        )
        if ending.accepted and learnable and ending.capability is not Capability.OPAQUE:
            assert ending.status == "succeeded", name
        rows.append(ending.row(name))
    return f"## {TITLES[provider]}\n\n{COLUMNS}\n" + "\n".join(rows) + "\n"


def _stored() -> dict[str, str]:
    """Read the sections of the checked-in table by their titles."""
    text = MATRIX.read_text(encoding="utf-8") if MATRIX.exists() else HEAD
    return {
        section.partition("\n")[0]: f"## {section.rstrip()}\n"
        for section in text.split("\n## ")[1:]
    }


def _write(sections: dict[str, str]) -> None:
    parts = [sections[title] for title in TITLES.values() if title in sections]
    MATRIX.write_text("\n".join([HEAD, *parts]), encoding="utf-8")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("provider", list(SCENARIOS))
async def test_every_fault_ends_in_the_truth_and_in_the_checked_in_table(
    provider: str, office: Office
) -> None:
    section = await _section(provider, office)
    if WRITE:
        _write(_stored() | {TITLES[provider]: section})
    assert _stored()[TITLES[provider]] == section


def test_the_checked_in_table_holds_these_providers_and_nothing_else() -> None:
    text = MATRIX.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    assert list(_stored()) == list(TITLES.values())

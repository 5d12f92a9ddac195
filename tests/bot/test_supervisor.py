"""Children: started again when they crash, given up when hopeless, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from bot.supervisor import CANNOT_START, Child

WAITS = "import signal\nprint('runs', flush=True)\nsignal.pause()\n"
DIES_AT_ITS_POINT = (
    "import os, signal\n"
    "if 'SIGNOFF_FAILPOINT' in os.environ:\n"
    "    os.kill(os.getpid(), signal.SIGKILL)\n"
    "signal.pause()\n"
)


def child(folder: Path, source: str) -> Child:
    (folder / "program.py").write_text(source, encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    return Child("program", "program", environ, folder / "log")


async def test_a_child_is_killed_at_each_of_its_failpoints_and_then_runs(tmp_path: Path) -> None:
    program = child(tmp_path, DIES_AT_ITS_POINT)
    await program.start("open.before", "open.after")
    async with asyncio.timeout(20):
        await program.wait_for(lambda c: c.starts == 3 and c.running)
    assert program.killed_at == ["open.before", "open.after"]
    await program.stop()
    assert not program.running


async def test_a_child_that_cannot_start_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    program = child(tmp_path, f"import sys\nprint('no settings')\nsys.exit({CANNOT_START})\n")
    await program.start()
    async with asyncio.timeout(20):
        await program.wait_for(lambda c: c.given_up is not None)
    assert program.given_up is not None
    assert program.given_up.code == CANNOT_START
    assert "no settings" in str(program.given_up)
    assert program.starts == 1
    await program.stop()


async def test_a_child_that_crashes_again_and_again_is_given_up(tmp_path: Path) -> None:
    program = child(tmp_path, "raise SystemExit(3)")
    await program.start()
    async with asyncio.timeout(40):
        await program.wait_for(lambda c: c.given_up is not None)
    assert program.starts > 1
    assert "exit code 3" in str(program.given_up)
    await program.stop()


async def test_a_child_can_be_stopped_and_started_again(tmp_path: Path) -> None:
    program = child(tmp_path, WAITS)
    for starts in (1, 2):
        await program.start()
        assert program.starts == starts
        assert program.running
        await program.stop()
        assert not program.running


async def test_a_child_ends_with_a_starter_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WAITS, encoding="utf-8")
    starter = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom bot.supervisor import Child\n"
        "async def main():\n"
        "    program = Child('program', 'program', dict(os.environ), Path(sys.argv[1]) / 'log')\n"
        "    await program.start()\n"
        "    print('started', flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        starter,
        str(tmp_path),
        env={**os.environ, "PYTHONPATH": os.pathsep.join((root, str(tmp_path)))},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            await process.stdout.readline()
        [left] = psutil.Process(process.pid).children()
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    gone, alive = await asyncio.to_thread(psutil.wait_procs, [left], 20)
    assert gone == [left]
    assert alive == []


@pytest.mark.parametrize("ends_by", [signal.SIGTERM, signal.SIGKILL])
async def test_a_child_that_was_ended_from_outside_is_started_again(
    tmp_path: Path, ends_by: signal.Signals
) -> None:
    program = child(tmp_path, WAITS)
    await program.start()
    [process] = psutil.Process().children()
    process.send_signal(ends_by)
    async with asyncio.timeout(20):
        await program.wait_for(lambda c: c.starts == 2)
    assert program.killed_at == []
    await program.stop()

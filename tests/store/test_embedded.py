"""The private PostgreSQL starts for the first, ends with the last, and outlives no mistake."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import psutil
import pytest

from executor.store.address import asyncpg_dsn
from executor.store.embedded import (
    EmbeddedDatabaseFailed,
    embedded_postgres,
    embedded_postgres_blocking,
)

_REPOSITORY = Path(__file__).parents[2]
# The interpreter may lie where only root can read, so the user is changed after it has loaded.
_USER = """
import os
import sys
from pathlib import Path
from executor.store.embedded import embedded_postgres_blocking
if len(sys.argv) > 2:
    os.setgroups([])
    os.setgid(int(sys.argv[2]))
    os.setuid(int(sys.argv[2]))
with embedded_postgres_blocking(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder of a short name, in which no server is left running afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="signoff-home-"))
    yield folder
    leftover = _postmaster(folder)
    if leftover is not None:
        leftover.kill()
    shutil.rmtree(folder)
    assert leftover is None, "the test left a server running"


class _User:
    """Another process that uses the server of ``home`` until it is told to leave."""

    def __init__(self, home: Path, uid: int | None = None) -> None:
        arguments = [str(home)] if uid is None else [str(home), str(uid)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _USER, *arguments],
            cwd=_REPOSITORY,
            env={**os.environ, "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)


def _postmaster(home: Path) -> psutil.Process | None:
    data = home / "postgres" / "data"
    found = [
        process
        for process in psutil.process_iter(["name", "cmdline", "cwd"])
        if process.info["name"] == "postgres"
        and process.info["cwd"] == str(data)
        and not process.info["cmdline"][0].startswith("postgres:")
    ]
    assert len(found) < 2
    return found[0] if found else None


def _kill_server(home: Path) -> None:
    """End every process of the server as a power cut would, and wait until they are gone."""
    postmaster = _postmaster(home)
    assert postmaster is not None
    family = [postmaster, *postmaster.children(recursive=True)]
    for process in family:
        # The others end by themselves as soon as the first is gone.
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=10)


async def _query(url: str, query: str) -> object:
    connection = await asyncpg.connect(dsn=asyncpg_dsn(url))
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def _ask(url: str, query: str) -> object:
    return asyncio.run(_query(url, query))


def test_data_stays_over_a_restart_and_nothing_runs_between(home: Path) -> None:
    with embedded_postgres_blocking(home) as url:
        _ask(url, "CREATE TABLE notes AS SELECT 7 AS id")
    assert _postmaster(home) is None
    assert not list((home / "postgres" / "data").glob(".s.PGSQL*"))
    with embedded_postgres_blocking(home) as url:
        assert _ask(url, "SELECT id FROM notes") == 7


def test_it_is_durable_roomy_and_speaks_utf_8(home: Path) -> None:
    with embedded_postgres_blocking(home) as url:
        assert _ask(url, "SHOW fsync") == "on"
        assert _ask(url, "SHOW synchronous_commit") == "on"
        assert _ask(url, "SHOW server_encoding") == "UTF8"
        assert _ask(url, "SELECT upper('ñ')") == "Ñ"
        assert _ask(url, "SHOW server_version_num").startswith("18")  # type: ignore[attr-defined]
        free = (
            "SELECT current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int >= 200"
        )
        assert _ask(url, free) is True


def test_nobody_else_can_reach_it(home: Path) -> None:
    with embedded_postgres_blocking(home) as url:
        assert _ask(url, "SHOW listen_addresses") == ""
        assert _ask(url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        socket_folder = Path(parse_qs(urlsplit(url).query)["host"][0])
        assert (socket_folder / ".s.PGSQL.5432").stat().st_mode & 0o077 == 0
        assert socket_folder.stat().st_mode & 0o077 == 0
        assert (home / "postgres" / "data").stat().st_mode & 0o077 == 0


def test_processes_that_start_at_once_share_one_server_and_the_last_one_stops_it(
    home: Path,
) -> None:
    users = [_User(home) for _ in range(3)]
    urls = {user.url() for user in users}
    assert len(urls) == 1
    server = _postmaster(home)
    assert server is not None
    for user in users[:2]:
        user.leave()
        assert _postmaster(home) == server
    assert _ask(urls.pop(), "SELECT 1") == 1
    users[2].leave()
    assert _postmaster(home) is None


def test_a_killed_process_does_not_stop_the_server_of_another(home: Path) -> None:
    with embedded_postgres_blocking(home) as url:
        other = _User(home)
        assert other.url() == url
        other.kill()
        assert _ask(url, "SELECT 1") == 1
    # And its registration died with it: the last living user stopped the server.
    assert _postmaster(home) is None


def test_the_server_of_a_killed_process_is_adopted_by_the_next(home: Path) -> None:
    killed = _User(home)
    _ask(killed.url(), "CREATE TABLE notes AS SELECT 7 AS id")
    killed.kill()
    orphan = _postmaster(home)
    assert orphan is not None
    with embedded_postgres_blocking(home) as url:
        assert _postmaster(home) == orphan
        assert _ask(url, "SELECT id FROM notes") == 7
    assert _postmaster(home) is None


def test_a_crash_of_everything_is_recovered_with_what_was_committed(home: Path) -> None:
    user = _User(home)
    _ask(user.url(), "CREATE TABLE notes AS SELECT 7 AS id")
    user.kill()
    _kill_server(home)
    assert (home / "postgres" / "data" / "postmaster.pid").exists()
    with embedded_postgres_blocking(home) as url:
        assert _ask(url, "SELECT id FROM notes") == 7


def test_children_that_have_not_seen_the_death_of_their_parent_are_waited_for(home: Path) -> None:
    user = _User(home)
    _ask(user.url(), "SELECT 1")
    user.kill()
    server = _postmaster(home)
    assert server is not None
    child = next(p for p in server.children() if "checkpointer" in p.cmdline()[0])
    child.suspend()
    server.kill()
    server.wait(10)
    starting = _User(home)
    with pytest.raises(subprocess.TimeoutExpired):
        starting.process.wait(1)
    child.resume()
    assert starting.url().startswith("postgresql+asyncpg://")
    starting.leave()


def test_a_process_that_got_the_number_of_a_dead_server_does_not_stop_the_start(
    home: Path,
) -> None:
    with embedded_postgres_blocking(home) as url:
        owner = (home / "postgres" / "data").stat()
        assert url
    as_owner = {"user": owner.st_uid, "group": owner.st_gid} if os.geteuid() == 0 else {}
    stranger = subprocess.Popen(["sleep", "600"], **as_owner)  # type: ignore[call-overload]
    try:
        pid_file = home / "postgres" / "data" / "postmaster.pid"
        data = pid_file.parent
        lines = [stranger.pid, data, 1700000000, 5432, data, "", "1 1", "ready"]
        pid_file.write_text("".join(f"{line}\n" for line in lines))
        with embedded_postgres_blocking(home) as url:
            assert _ask(url, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_first_start_that_was_killed_half_way_is_begun_again(home: Path) -> None:
    unfinished = home / "postgres" / "data.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    with embedded_postgres_blocking(home) as url:
        assert _ask(url, "SELECT 1") == 1
    assert not unfinished.exists()


def test_a_home_too_deep_for_a_socket_gets_a_private_folder_that_goes_away(home: Path) -> None:
    deep = home / ("long" * 20) / ("name with spaces and $HOME, " + "x" * 40)
    with embedded_postgres_blocking(deep) as url:
        folder = Path(parse_qs(urlsplit(url).query)["host"][0])
        assert not folder.is_relative_to(home)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert _ask(url, "SELECT 1") == 1
    assert not folder.exists()
    user = _User(deep)
    killed_folder = Path(parse_qs(urlsplit(user.url()).query)["host"][0])
    user.kill()
    _kill_server(deep)
    with embedded_postgres_blocking(deep) as url:
        assert _ask(url, "SELECT 1") == 1
    assert not killed_folder.exists()


def test_data_of_another_major_version_is_refused_with_the_remedy(home: Path) -> None:
    data = home / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("16\n")
    with (
        pytest.raises(EmbeddedDatabaseFailed, match=r"made by PostgreSQL 16.*set DATABASE_URL"),
        embedded_postgres_blocking(home),
    ):
        pass


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    with (
        pytest.raises(EmbeddedDatabaseFailed, match="no_such_setting"),
        embedded_postgres_blocking(home, settings={"no_such_setting": "1"}),
    ):
        pass


def test_an_interrupt_from_the_terminal_does_not_reach_the_server(home: Path) -> None:
    with embedded_postgres_blocking(home):
        server = _postmaster(home)
        assert server is not None
        assert os.getsid(server.pid) != os.getsid(0)


async def test_a_start_that_is_cancelled_leaves_nothing_running(home: Path) -> None:
    async def use() -> None:
        async with embedded_postgres(home):
            pytest.fail("the start was cancelled before it ended")

    using = asyncio.ensure_future(use())
    # Its thread has begun by then, and an initdb takes longer than this.
    await asyncio.wait({using}, timeout=0.3)
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    assert _postmaster(home) is None


async def test_the_loop_goes_on_while_the_server_starts(home: Path) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    async with embedded_postgres(home) as url:
        assert ticks > 5
        assert await _query(url, "SELECT 1") == 1
    ticking.cancel()


def test_an_ordinary_user_has_a_server_of_its_own_beside_that_of_another_user(home: Path) -> None:
    # Whoever runs the tests as an ordinary user is that user; root lends the part to nobody.
    ordinary = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    theirs = home / "theirs"
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, ordinary.pw_uid, ordinary.pw_gid)
        home.chmod(0o711)
    with embedded_postgres_blocking(home / "ours") as url:
        user = _User(theirs, ordinary.pw_uid if os.geteuid() == 0 else None)
        their_url = user.url()
        assert their_url not in {"", url}
        server = _postmaster(theirs)
        assert server is not None
        assert server.username() == ordinary.pw_name
        assert _ask(their_url, "SELECT 1") == 1
        user.leave()
        assert _postmaster(theirs) is None
        assert _ask(url, "SELECT 1") == 1

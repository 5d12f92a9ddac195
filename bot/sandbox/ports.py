"""The demo's ports: the same as last time where nobody has taken them, and held while they wait."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class Ports:
    """The ports of this home: those of the last time where nobody has taken them meanwhile."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._last: dict[str, int] = json.loads(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            self._last = {}

    def of(self, name: str) -> int:
        """Return the port of that name, or a free one."""
        last = self._last.get(name)
        return last if last is not None and _is_free(last) else _free_port()

    def remember(self, ports: Mapping[str, int | None]) -> None:
        """Keep what listens where for the next time; ``None`` is what does not listen."""
        listening = {name: port for name, port in ports.items() if port is not None}
        self._file.write_text(json.dumps({**self._last, **listening}), encoding="utf-8")


@contextmanager
def reserved(port: int) -> Iterator[None]:
    """Keep a port from being given to somebody's outgoing connection while the bot is not there.

    Linux lets the bot listen beside a socket that is only bound; elsewhere nothing is done.
    """
    with socket.socket() as held:
        if sys.platform.startswith("linux"):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", port))
        yield


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port

"""Run a server's command on a leash: it is killed when the worker is gone, however that ended.

The leash is a pipe whose other end only the worker holds, so the kernel pulls it even after
SIGKILL. The protocol tells servers to end with their standard input, which not all do. Run by file
with ``python -I -S``: nothing of the worker's settings or packages is read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

NOT_STARTED = 127
"""What shells exit with where a command cannot be started."""


def main() -> int:
    """Run the command behind the first argument, which is the leash's descriptor."""
    leash = int(sys.argv[1])
    # The whole group is told to end, and what holds the leash must not end before the command does.
    # The command inherits nothing of this: what is handled has its default again in what is run.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        # Inherits standard input and output, and the group that the worker made for both of us.
        child = subprocess.Popen(sys.argv[2:])  # noqa: S603 the policy names this command
    except OSError as error:
        print(f"it cannot be started: {error.strerror}", file=sys.stderr)
        return NOT_STARTED
    threading.Thread(target=_watch, args=(leash,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _watch(leash: int) -> None:
    while os.read(leash, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())

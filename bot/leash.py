"""Run one of our programs on a leash: it ends when whoever started it is gone, however that ended.

The leash is standard input: a pipe whose other end only the starter holds, so the kernel pulls it
even when the starter is killed with SIGKILL. A death signal (``PR_SET_PDEATHSIG``) would do that on
Linux alone, and is tied to the thread that made the child rather than to its process.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 30.0
"""How long a program may take to stop once its starter is gone."""

PULLED = 70
"""EX_SOFTWARE of sysexits(3): the exit code of a program that did not stop within its grace."""


def main() -> None:
    """Run the module that the first argument names, as ``python -m`` would."""
    module = sys.argv[1]
    sys.argv = [module, *sys.argv[2:]]
    threading.Thread(target=_watch, name="leash", daemon=True).start()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _watch() -> None:
    _until_end_of_input()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(PULLED)


def _until_end_of_input() -> None:
    try:
        while os.read(0, 1):
            pass
    except OSError:
        # A reset connection is as good an end as any.
        return


if __name__ == "__main__":
    main()

"""How a person or a platform ends a command that runs until it is told to stop."""

from __future__ import annotations

import asyncio
import signal


def until_told_to_stop() -> asyncio.Event:
    """Return an event that Ctrl-C, SIGTERM and the terminal's end set, instead of ending us."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # ``nohup`` asks that the terminal's end be ignored.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    return stop

"""A process of its own that starts and claims runs, beside others that do so at the same moment.

It is told what to do on its command line and prints how many it got.
"""

from __future__ import annotations

import asyncio
import sys

from executor.adapters.host_clock import SystemClock, mint_id
from executor.engine.claims import claim_runs
from executor.engine.engine import Engine
from executor.engine.start import Started, StartRequest, start
from executor.store.database import Database
from tests.support.office import RIKO, TENANT

AT_ONCE = 32


async def _start(engine: Engine, name: str, number: int) -> int:
    request = StartRequest(TENANT, RIKO, "g", f"{name}:{number}", {})
    return sum(isinstance(one, Started) for one in await start(engine, [request]))


async def _start_the_same(engine: Engine, name: str, number: int) -> int:
    return await _start(engine, "both", number)


async def _claim(engine: Engine, name: str, number: int) -> int:
    return len(await claim_runs(engine, f"{name}:{number}", 2))


async def _act(deed: str, url: str, name: str) -> int:
    database = Database.connect(url, application_name=name)
    engine = Engine(database, SystemClock(), mint_id)
    act = {"start": _start, "start_the_same": _start_the_same, "claim": _claim}[deed]
    try:
        return sum(await asyncio.gather(*(act(engine, name, n) for n in range(AT_ONCE))))
    finally:
        await database.dispose()


async def two_processes(deed: str, url: str) -> list[asyncio.subprocess.Process]:
    """Start two of them."""
    return [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", __name__, deed, url, name, stdout=asyncio.subprocess.PIPE
        )
        for name in ("one", "other")
    ]


async def counts(processes: list[asyncio.subprocess.Process]) -> list[int]:
    """Wait for what they got."""
    return [int((await process.communicate())[0]) for process in processes]


if __name__ == "__main__":
    print(asyncio.run(_act(*sys.argv[1:])))

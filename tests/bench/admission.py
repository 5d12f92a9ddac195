"""What admission costs as queues grow, and what one tenant's flood costs another: as ratios.

``python -m tests.bench.admission`` prints them, each of two measurements in one run. Nothing is
asserted about time: how many rows a claim reads, and who is served in it, is asserted in
``tests/store/test_turns.py`` and ``tests/engine/test_fairness.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg

from executor.domain.ids import TenantId
from executor.engine.claims import claim_runs
from executor.engine.start import StartRequest, start
from executor.store.address import asyncpg_dsn
from executor.store.database import Database
from tests.support.database import TestServer, running_server
from tests.support.neighbours import NO_REFERENCES, move_in, pour_runs
from tests.support.office import RIKO, TENANT, Office, policy

QUIET = TenantId("T0QUIET")
ROUNDS = 40
AT_ONCE = 8
LONG = (10_000, 100_000)


@asynccontextmanager
async def _office(server: TestServer, queued: int, limit: int) -> AsyncIterator[Office]:
    """Open an office with as many queued runs, in a database without ties between rows."""
    admission = {"max_queued_runs": limit, "max_active_runs": 10_000}
    async with server.fresh_database() as url:
        database = Database.connect(url, application_name="bench")
        connection = await asyncpg.connect(dsn=asyncpg_dsn(url))
        try:
            await connection.execute(NO_REFERENCES)
            office = await Office.open(database, active=policy(admission=admission))
            await move_in(office, QUIET)
            await pour_runs(connection, TENANT, queued, "")
            await connection.execute("VACUUM ANALYZE")
            yield office
        finally:
            await connection.close()
            await database.dispose()


async def _milliseconds(act: Callable[[int], Awaitable[object]]) -> float:
    """Do something often, and say how long it took in the middle."""
    took = []
    for number in range(ROUNDS):
        begun = time.perf_counter()
        await act(number)
        took.append(1_000 * (time.perf_counter() - begun))
    return statistics.median(took)


async def _claim(server: TestServer, queued: int) -> float:
    async with _office(server, queued, 1_000_000) as office:
        return await _milliseconds(lambda n: claim_runs(office.engine, "w1", AT_ONCE))


async def _start(server: TestServer, queued: int, limit: int) -> float:
    async with _office(server, queued, limit) as office:

        async def one(number: int) -> None:
            await start(office.engine, [StartRequest(TENANT, RIKO, "g", f"s:{number}", {})])

        return await _milliseconds(one)


async def _first_step(server: TestServer, flood: int) -> float:
    """Say how long a quiet tenant's run waits for its claim, as one worker claims one by one."""
    async with _office(server, flood, 1_000_000) as office:
        who = RIKO.replace(TENANT, QUIET)

        async def one(number: int) -> None:
            request = StartRequest(QUIET, type(RIKO)(who), "g", f"q:{number}", {})
            await start(office.engine, [request])
            while QUIET not in {c.key[0] for c in await claim_runs(office.engine, "w1", 1)}:
                pass

        return await _milliseconds(one)


def _tell(what: str, base: float, other: float) -> None:
    print(f"{what}: {base:.1f} ms, {other:.1f} ms: x {other / base:.2f}", flush=True)


async def main(server: TestServer) -> None:
    """Measure and print."""
    few = await _claim(server, ROUNDS * AT_ONCE)
    for many in LONG:
        _tell(
            f"a claim of {AT_ONCE} with few runs queued and with {many:,}",
            few,
            await _claim(server, many),
        )
    free = await _start(server, 10, 1_000_000)
    for many in LONG:
        _tell(
            f"a start with 10 runs queued and with {many:,}",
            free,
            await _start(server, many, 1_000_000),
        )
    _tell("a start far from the limit and near it", free, await _start(server, 10, 100))
    alone = await _first_step(server, 0)
    _tell(
        f"a quiet tenant's first claim without a flood and with {LONG[0]:,}",
        alone,
        await _first_step(server, LONG[0]),
    )


if __name__ == "__main__":
    with running_server(None) as running:
        asyncio.run(main(running))

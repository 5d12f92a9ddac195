"""Notifications wake at once, come back after a loss, and cost nothing while they cannot come."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest
from sqlalchemy import text

from executor.store.database import Database
from executor.store.wakeups import Kind, ListenerTiming, listening, notify
from tests.support.tcp_proxy import tcp_proxy

_QUICK = ListenerTiming(
    check_interval_seconds=0.2,
    check_timeout_seconds=0.2,
    first_delay_seconds=0.05,
    longest_delay_seconds=0.2,
)
# Long enough that only a notification can have ended the wait.
_LONG = 20.0


async def test_a_notification_wakes_who_waits_for_its_kind_and_nobody_else(
    database: Database,
) -> None:
    async with listening(database) as listener:
        await listener.until_listening()
        for kind in Kind:
            assert await listener.wait(kind, 0.1)
        work = asyncio.ensure_future(listener.wait(Kind.WORK, _LONG))
        started = time.monotonic()
        await notify(database, Kind.WORK)
        assert await work
        assert time.monotonic() - started < 1
        assert not await listener.wait(Kind.CARDS, 0.05)


async def test_news_that_came_between_two_waits_is_not_lost(database: Database) -> None:
    async with listening(database) as listener:
        await listener.until_listening()
        assert await listener.wait(Kind.INBOX, _LONG)
        waiting_elsewhere = asyncio.ensure_future(listener.wait(Kind.CARDS, _LONG))
        assert await waiting_elsewhere
        await notify(database, Kind.INBOX)
        await notify(database, Kind.CARDS)
        assert await listener.wait(Kind.CARDS, _LONG)
        assert await listener.wait(Kind.INBOX, 0.05)
        assert not await listener.wait(Kind.INBOX, 0.05)


async def test_a_kind_that_this_release_does_not_know_is_ignored(database: Database) -> None:
    async with listening(database) as listener:
        await listener.until_listening()
        for kind in Kind:
            await listener.wait(kind, 0.1)
        async with database.transaction() as conn:
            await conn.execute(text("SELECT pg_notify('signoff', 'of tomorrow')"))
        await notify(database, Kind.WORK)
        assert await listener.wait(Kind.WORK, _LONG)
        assert not await listener.wait(Kind.CARDS, 0.05)


async def _end_listeners(database: Database) -> int:
    async with database.transaction() as conn:
        ended = await conn.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name LIKE '% listener' AND datname = current_database()"
            )
        )
        return len(ended.all())


async def test_a_listener_whose_backend_was_ended_comes_back_and_says_so_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="executor")
    async with listening(database, _QUICK) as listener:
        await listener.until_listening()
        assert await listener.wait(Kind.WORK, _LONG)
        assert await _end_listeners(database) == 1
        # Coming back counts as news, since notifications may have been missed meanwhile.
        assert await listener.wait(Kind.WORK, _LONG)
        await notify(database, Kind.WORK)
        assert await listener.wait(Kind.WORK, _LONG)
    told = [record.message for record in caplog.records]
    assert len([line for line in told if "do not arrive" in line]) == 1
    assert len([line for line in told if "arrive again" in line]) == 1


async def test_a_half_open_listener_is_noticed_by_its_own_check(
    database: Database, database_url: str
) -> None:
    async with tcp_proxy(database_url) as proxy:
        behind_proxy = Database.connect(proxy.url, application_name="half-open")
        async with listening(behind_proxy, _QUICK) as listener:
            await listener.until_listening()
            assert await listener.wait(Kind.WORK, _LONG)
            proxy.swallow()
            await notify(database, Kind.WORK)
            # Nothing comes through, so the waiter goes on with its sweep …
            assert not await listener.wait(Kind.WORK, 0.1)
            proxy.pass_on_new()
            # … until the check has found out and a new connection stands.
            assert await listener.wait(Kind.WORK, 5)
            await notify(database, Kind.WORK)
            assert await listener.wait(Kind.WORK, 5)
        await behind_proxy.dispose()


def test_the_shipped_check_notices_a_dead_listener_within_a_minute() -> None:
    timing = ListenerTiming()
    assert timing.check_interval_seconds + timing.check_timeout_seconds < 60


async def test_a_database_that_is_away_costs_few_attempts_and_one_line(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="executor")
    async with tcp_proxy(database_url) as proxy:
        behind_proxy = Database.connect(proxy.url, application_name="away")
        async with listening(behind_proxy, _QUICK) as listener:
            await listener.until_listening()
            assert await listener.wait(Kind.WORK, _LONG)
            proxy.refuse()
            before, cpu = proxy.connections_accepted, time.process_time()
            started = time.monotonic()
            waits = 0
            while time.monotonic() - started < 2:
                assert not await listener.wait(Kind.WORK, 0.5)
                waits += 1
            assert waits == 4
            assert not listener.is_listening
            # After delays of 0.05, 0.1 and then 0.2 s.
            assert proxy.connections_accepted - before <= 12
            assert time.process_time() - cpu < 0.2 * 2
            proxy.pass_on()
            assert await listener.wait(Kind.WORK, 5)
        await behind_proxy.dispose()
    assert len([line for line in caplog.messages if "do not arrive" in line]) == 1


async def test_a_connection_that_dies_as_soon_as_it_lives_is_not_retried_faster(
    database: Database,
) -> None:
    timing = ListenerTiming(first_delay_seconds=0.1, longest_delay_seconds=10)
    async with listening(database, timing) as listener:
        assert await listener.wait(Kind.CARDS, _LONG)
        started = time.monotonic()
        for _ in range(3):
            assert await _end_listeners(database) == 1
            assert await listener.wait(Kind.CARDS, _LONG)
    assert time.monotonic() - started > 0.1 + 0.2 + 0.4


async def test_the_listening_connection_ends_with_its_block(database: Database) -> None:
    async with listening(database) as listener:
        await listener.until_listening()
    async with database.transaction() as conn:
        left = text(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'test listener'"
        )
        for _ in range(100):
            if (await conn.execute(left)).scalar_one() == 0:
                return
            await conn.execute(text("SELECT pg_stat_clear_snapshot(), pg_sleep(0.05)"))
    pytest.fail("the connection is still there after 5 s")

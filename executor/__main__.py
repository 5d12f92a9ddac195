"""The worker process: ``python -m executor``. The only place that puts its parts together."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping

from executor.adapters.choice import ChoiceInvalid
from executor.adapters.host_clock import SystemClock, mint_id
from executor.adapters.mail.provider_choice import mail_from
from executor.adapters.models.model_choice import model_from
from executor.adapters.tickets.desk_choice import desk_from
from executor.adapters.tools.server_choice import McpServers, problems_with
from executor.config import (
    ExecutorSettings,
    PolicyInvalid,
    SettingsInvalid,
    executor_settings,
    load_policy,
)
from executor.domain.errors import ExecutorError
from executor.domain.ids import operator_principal
from executor.domain.lease import LeaseTerms
from executor.domain.policy import Policy
from executor.domain.secret_text import Secrets, secrets_among
from executor.domain.transition import Refused
from executor.engine.closure_email import ClosureEmails
from executor.engine.compensating import compensate_until_cancelled
from executor.engine.driver import Crew
from executor.engine.engine import Bell, Durations, Engine
from executor.engine.failpoint import failpoints_from
from executor.engine.ports import ModelPort, ModelRequest
from executor.engine.providers import Providers
from executor.engine.recovering import recover_until_cancelled
from executor.engine.redaction import redact_root
from executor.engine.setup import activate_policy
from executor.engine.sweeper import sweep_until_cancelled
from executor.engine.worker import Worker, WorkerTerms
from executor.store.address import UnsupportedAddress
from executor.store.database import Database
from executor.store.embedded import EmbeddedDatabaseFailed
from executor.store.installation import installed_database
from executor.store.migrate import MigrationRefused
from executor.store.wakeups import listening

_log = logging.getLogger("executor")

MODEL_ALLOWANCE_SECONDS = 10.0
"""How much longer the engine waits for a model than the model for its server: who is nearer to the
exchange can say what became of it.
"""

CANNOT_START = 78
"""EX_CONFIG of sysexits(3): starting again without changing something does not help."""


def main() -> int:
    """Run the worker until SIGTERM or SIGINT; returns the process's exit code."""
    try:
        settings = executor_settings(os.environ)
        logging.basicConfig(
            level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )
        redact_root(secrets_among(os.environ))
        asyncio.run(_run(settings))
    except (
        SettingsInvalid,
        PolicyInvalid,
        MigrationRefused,
        EmbeddedDatabaseFailed,
        UnsupportedAddress,
    ) as error:
        print(f"signoff executor cannot start:\n{error}", file=sys.stderr)
        return CANNOT_START
    except ExecutorError as error:
        print(f"signoff executor stopped: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(settings: ExecutorSettings) -> None:
    policy = load_policy(settings.policy_path)
    missing = problems_with(policy.servers, os.environ)
    if missing:
        raise SettingsInvalid(missing)
    confided = [name for section in policy.servers.values() for name in section.variables]
    secrets = secrets_among(os.environ, confided)
    redact_root(secrets)
    servers = McpServers(os.environ)
    crew = _crew(os.environ, settings.model_timeout_seconds, servers)
    _warn_of_no_price(crew.model, policy)
    owner = f"{socket.gethostname()}:{os.getpid()}:{mint_id().hex[-8:]}"
    async with installed_database(
        settings.database_url,
        settings.home,
        application_name="signoff executor",
        pool_size=settings.pool_size,
    ) as database:
        bell = Bell(database)
        engine = _engine(settings, database, bell, Secrets(secrets))
        if await activate_policy(
            engine, policy, operator_principal(f"executor at {socket.gethostname()}")
        ):
            _log.info("policy %s is active", policy.version)
        async with listening(database) as listener:
            worker = Worker(
                engine,
                crew,
                listener,
                owner,
                WorkerTerms(
                    grace_seconds=settings.grace_seconds, poll_seconds=settings.sweep_seconds
                ),
            )
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, worker.stop)
            async with asyncio.TaskGroup() as background:
                ringing = background.create_task(bell.run(), name="bell")
                sweeping = background.create_task(sweep_until_cancelled(engine), name="sweeper")
                recovering = background.create_task(
                    recover_until_cancelled(engine, crew.providers), name="recovery"
                )
                compensating = background.create_task(
                    compensate_until_cancelled(engine, crew.providers), name="compensation"
                )
                _log.info("worker %s is ready", owner)
                await worker.run()
                ringing.cancel()
                sweeping.cancel()
                recovering.cancel()
                compensating.cancel()
        await servers.close()
        _log.info("worker %s has stopped", owner)


def _warn_of_no_price(model: ModelPort, policy: Policy) -> None:
    bound = model.cost_bound(ModelRequest("", (), (), 1, prices=policy.prices))
    if isinstance(bound, Refused):
        _log.warning(
            'the model %s has no price, so every run will end: write [prices."%s"] in the policy',
            model.name,
            model.name,
        )


def _engine(settings: ExecutorSettings, database: Database, bell: Bell, secrets: Secrets) -> Engine:
    durations = Durations(
        lease=LeaseTerms(
            settings.lease_ttl_seconds, settings.lease_margin_seconds, settings.heartbeat_seconds
        ),
        first_byte_seconds=settings.first_byte_seconds,
        clock_allowance_seconds=settings.clock_allowance_seconds,
        model_call_seconds=settings.model_timeout_seconds + MODEL_ALLOWANCE_SECONDS,
        retry_seconds=settings.retry_seconds,
        sweep_seconds=settings.sweep_seconds,
    )
    return Engine(
        database,
        SystemClock(),
        mint_id,
        durations,
        failpoints_from(settings.failpoint),
        bell,
        secrets,
    )


def _crew(environ: Mapping[str, str], model_seconds: float, servers: McpServers) -> Crew:
    problems: list[str] = []
    try:
        mail = mail_from(environ)
    except ChoiceInvalid as error:
        problems += error.problems
    try:
        desk = desk_from(environ)
    except ChoiceInvalid as error:
        problems += error.problems
    try:
        model = model_from(environ, model_seconds)
    except ChoiceInvalid as error:
        problems += error.problems
    if problems:
        raise SettingsInvalid(problems)
    providers = Providers(mail, desk, servers)
    _log.info(
        "mail leaves through %s, tickets are at %s, the model is %s",
        mail.provider,
        providers.desk_name,
        model.name,
    )
    return Crew(model, providers, ClosureEmails())


if __name__ == "__main__":
    sys.exit(main())

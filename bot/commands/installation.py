"""The database and the policy that a command works with, from the same settings as our programs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import platformdirs

from executor.adapters.host_clock import SystemClock, mint_id
from executor.adapters.sealing import FernetSealer, is_key
from executor.config import POLICY_HELP, SettingsInvalid, load_policy
from executor.domain.ids import TenantId
from executor.domain.policy import Policy
from executor.engine.doubt import known_tenants
from executor.engine.engine import Engine
from executor.engine.setup import activate_policy
from executor.store import tenants
from executor.store.database import Database
from executor.store.embedded import embedded_postgres
from executor.store.installation import installed_database

APPLICATION = "signoff command"
POOL_SIZE = 2


def home() -> Path:
    """Return the folder of the private database and of the demo."""
    given = os.environ.get("SIGNOFF_HOME")
    return Path(given) if given else Path(platformdirs.user_data_dir("signoff"))


@asynccontextmanager
async def connected() -> AsyncIterator[Database]:
    """Connect to the database as it is, be it behind this code or not."""
    url = os.environ.get("DATABASE_URL")
    if url:
        database = Database.connect(url, pool_size=POOL_SIZE, application_name=APPLICATION)
        try:
            yield database
        finally:
            await database.dispose()
        return
    async with embedded_postgres(home() / "postgres") as private:
        database = Database.connect(private, pool_size=POOL_SIZE, application_name=APPLICATION)
        try:
            yield database
        finally:
            await database.dispose()


@asynccontextmanager
async def of_tenant() -> AsyncIterator[tuple[Database, TenantId]]:
    """Open the database for the tenant of the policy file.

    A tenant that is not known yet is made known with this policy, as our programs do at their
    start; one that is known keeps the policy that is active. Raises ``SettingsInvalid``,
    ``PolicyInvalid``, ``MigrationRefused``.
    """
    policy = _policy()
    async with _installed() as database:
        async with database.transaction() as conn:
            known = await tenants.share_policies(conn, [policy.tenant_id])
        if not known:
            await activate_policy(Engine(database, SystemClock(), mint_id), policy)
        yield database, policy.tenant_id


@asynccontextmanager
async def engine_of_installation() -> AsyncIterator[Engine]:
    """Open the database for all of its tenants, as an engine. Raises ``MigrationRefused``."""
    async with _installed() as database:
        yield Engine(database, SystemClock(), mint_id)


@asynccontextmanager
async def engine_for(tenant: str | None) -> AsyncIterator[tuple[Engine, TenantId]]:
    """Open the database for the tenant that is named, else that of the policy file, else the only
    one.

    Our programs see what a command changed at a sweep. Raises ``SettingsInvalid`` where that names
    nobody, or no tenant of this database.
    """
    named = tenant
    if named is None and os.environ.get("SIGNOFF_POLICY"):
        named = _policy().tenant_id
    async with engine_of_installation() as engine:
        yield engine, _choose(named, await known_tenants(engine))


def sealer() -> FernetSealer:
    """Return what seals second factors; raises ``SettingsInvalid`` where no key is set."""
    keys = [k.strip() for k in os.environ.get("SIGNOFF_SEALING_KEY", "").split(",") if k.strip()]
    if not keys or not all(map(is_key, keys)):
        raise SettingsInvalid(
            [
                "SIGNOFF_SEALING_KEY is missing or no key; print one with "
                "`signoff second-factor key` and give it to the bot as well"
            ]
        )
    return FernetSealer(keys)


def _installed() -> AbstractAsyncContextManager[Database]:
    return installed_database(
        os.environ.get("DATABASE_URL") or None,
        home(),
        application_name=APPLICATION,
        pool_size=POOL_SIZE,
    )


def _choose(named: str | None, known: Sequence[TenantId]) -> TenantId:
    listed = ", ".join(known) or "none yet"
    if named is None:
        if len(known) == 1:
            return known[0]
        raise SettingsInvalid([f"say which tenant is meant with --tenant; there are: {listed}"])
    if named not in known:
        raise SettingsInvalid([f"there is no tenant {named!r}; there are: {listed}"])
    return TenantId(named)


def _policy() -> Policy:
    given = os.environ.get("SIGNOFF_POLICY")
    if not given:
        raise SettingsInvalid(
            [f"SIGNOFF_POLICY is missing: {POLICY_HELP}; `signoff policy example` prints one"]
        )
    return load_policy(Path(given))

"""How a command ends when something is wrong: one clear message, and a code that says why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

FAILED = 1
CANNOT_START = 78
"""EX_CONFIG of sysexits(3): settings or the installation have to be changed first."""


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End the command with a message on standard error."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)
    sys.exit(code)


@contextmanager
def explained() -> Iterator[None]:
    """Turn what a person can mend into a message that says how; all else stays a traceback."""
    from executor.config import PolicyInvalid, SettingsInvalid
    from executor.domain.errors import DatabaseUnavailable, InvalidContent
    from executor.store.address import UnsupportedAddress
    from executor.store.embedded import EmbeddedDatabaseFailed
    from executor.store.migrate import MigrationRefused

    try:
        yield
    except (SettingsInvalid, PolicyInvalid, UnsupportedAddress, EmbeddedDatabaseFailed) as error:
        fail(str(error), CANNOT_START)
    except MigrationRefused as error:
        fail(str(error), CANNOT_START)
    except DatabaseUnavailable as error:
        fail(f"the database cannot be reached: {error}. Look at DATABASE_URL.")
    except InvalidContent as error:
        fail(str(error))
    except PermissionError as error:
        fail(f"{error}. Choose a folder that may be written to.", CANNOT_START)

"""``signoff audit``: the journal as a file, and its check with nothing but that file."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from bot.commands.failing import FAILED, explained, fail
from bot.commands.options import AS_JSON, RUN, TENANT, as_json_text

if TYPE_CHECKING:
    from executor.domain.audit import Broken, Whole
    from executor.domain.audit_file import Header
    from executor.engine.auditing import Export

UNUSABLE = 2
_LONGEST_PROBLEM = 400


@click.group(short_help="Export the journal, and check an export.")
def audit() -> None:
    """Export the journal to a file that can be checked without the database.

    docs/audit.md describes the file, and what its check cannot find.
    """


@audit.command()
@click.argument("number", metavar="[RUN]", type=RUN, required=False)
@TENANT
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file that is not there yet; else it is printed.",
)
def export(number: int | None, tenant: str | None, out: Path | None) -> None:
    """Export the journal of RUN (run_7), or, with --tenant TEAM alone, of the whole tenant.

    \b
    For example:
      signoff audit export run_7 --out run_7.jsonl
    """
    if number is None and tenant is None:
        raise click.UsageError("say which run (run_7), or which tenant with --tenant TEAM")
    if out is None and sys.stdout.isatty():
        raise click.UsageError("it is for a file: give --out FILE, or redirect the output")
    try:
        with explained():
            header = asyncio.run(_export(number, tenant, out))
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"it could not be written: {error.strerror}.")
    if header is None:
        fail(f"this tenant has no run_{number} with a journal.")
    click.echo("\n".join(_about(header)), err=True)


@audit.command()
@click.argument("file", type=click.File("rb"))
@AS_JSON
def verify(file: BinaryIO, as_json: bool) -> None:
    """Check an exported FILE (- for standard input), with nothing but the file.

    Exit code 0 if it is whole, 1 if it is broken, 2 if it is no export.
    """
    from executor.domain.audit import Broken, audit
    from executor.domain.audit_file import Unusable

    try:
        found = audit(_lines(file))
    except (Unusable, OSError) as error:
        if as_json:
            click.echo(as_json_text({"whole": None, "unusable": str(error)}))
        fail(f"this is no export of an audit: {error}.", UNUSABLE)
    if as_json:
        click.echo(as_json_text(_as_json(found)))
    else:
        click.echo("\n".join(_told(found)))
    sys.exit(FAILED if isinstance(found, Broken) else 0)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    from executor.domain.audit_file import LONGEST_LINE

    while line := file.readline(LONGEST_LINE + 1):
        yield line


async def _export(number: int | None, tenant: str | None, out: Path | None) -> Header | None:
    from bot.commands.installation import engine_for
    from executor.engine import auditing

    async with engine_for(tenant) as (engine, chosen):
        found = await auditing.export(engine, chosen, number)
        if found is None:
            return None
        with _target(out) as target:
            await _write(found, target)
    return found.header


async def _write(found: Export, target: BinaryIO) -> None:
    async for line in found.lines:
        target.write(line)
    target.flush()


@contextmanager
def _target(out: Path | None) -> Iterator[BinaryIO]:
    """Open what is written to; a file that could not be finished is not left behind."""
    if out is None:
        yield sys.stdout.buffer
        return
    try:
        # For its owner alone: notes and names of people are in it.
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        fail(f"{out} is there already; an export does not take its place.")
    except OSError as error:
        fail(f"{out} cannot be written: {error.strerror}.")
    try:
        with os.fdopen(descriptor, "wb") as target:
            yield target
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def _about(header: Header) -> Iterator[str]:
    from bot.card_parts import one_line

    what = "everything" if header.run is None else f"run_{header.run}"
    entries = sum(end.position for end in header.chains)
    yield (
        f"{what} of {one_line(header.tenant_id, 80)} at {header.exported_at.isoformat()}: "
        f"{entries} entries in {len(header.chains)} chain(s)."
    )
    yield f"Fingerprint: {header.fingerprint.hex()}"


def _told(found: Whole | Broken) -> Iterator[str]:
    from bot.card_parts import one_line
    from executor.domain.audit import Whole

    if isinstance(found, Whole):
        yield "Whole: every hash, every move and every approval fits."
        yield from _about(found.header)
        return
    where = "the header"
    if found.subject is not None:
        where = f"entry {found.position} of {found.subject}"
    problem = one_line(found.problem, _LONGEST_PROBLEM)
    yield f"Broken at line {found.line}, where {where} belongs: {problem}."


def _as_json(found: Whole | Broken) -> dict[str, object]:
    from executor.domain.audit import Broken

    if isinstance(found, Broken):
        return {
            "whole": False,
            "line": found.line,
            "subject": None if found.subject is None else str(found.subject),
            "position": found.position,
            "problem": found.problem,
        }
    header = found.header
    return {
        "whole": True,
        "tenant": header.tenant_id,
        "run": None if header.run is None else f"run_{header.run}",
        "exported_at": header.exported_at,
        "chains": len(header.chains),
        "entries": found.entries,
        "fingerprint": header.fingerprint.hex(),
    }

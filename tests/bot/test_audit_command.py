"""``signoff audit``: the journal leaves as a file, and the file is checked with nothing else."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from executor.store.database import Database
from tests.support.audit_sample import sample
from tests.support.fake_mail import applied
from tests.support.office import TEAM, Office
from tests.support.operator import Operator

ALONE: dict[str, str | None] = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
"""Settings with which no database can be reached."""


def verify(file: Path | str, *more: str, stdin: bytes = b"") -> Result:
    arguments = ["audit", "verify", str(file), *more]
    return CliRunner().invoke(main, arguments, env=ALONE, input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A whole export."""
    file = tmp_path / "audit.jsonl"
    file.write_bytes(b"".join(sample()))
    return file


async def test_what_an_operator_exports_is_whole_elsewhere(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    operator = Operator(await Office.open(database), database_url, tmp_path / "policy.toml")
    claimed, opened = await operator.office.opened()
    await operator.office.report(claimed, opened, applied())
    out = tmp_path / "run.jsonl"
    result = await operator.run("audit", "export", "run_1", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    told = verify(out)
    assert told.exit_code == 0, told.output
    whole, what, fingerprint = told.stdout.splitlines()
    assert whole == "Whole: every hash, every move and every approval fits."
    assert what.startswith(f"run_1 of {TEAM} at 20")
    assert result.stderr.splitlines() == [what, fingerprint]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    printed = await operator.run("audit", "export", "--tenant", TEAM)
    assert verify("-", stdin=printed.stdout_bytes).exit_code == 0
    assert len(printed.stdout_bytes.splitlines()) > len(out.read_bytes().splitlines())
    # An export never takes the place of an earlier one, and what there is not leaves no file.
    again = await operator.run("audit", "export", "run_1", "--out", str(out))
    assert (again.exit_code, again.stdout) == (1, "")
    assert "is there already" in again.stderr
    none = await operator.run("audit", "export", "run_9", "--out", str(tmp_path / "none"))
    assert none.exit_code == 1
    assert "no run_9" in none.stderr
    assert not (tmp_path / "none").exists()


def test_without_a_run_or_a_tenant_nothing_is_exported() -> None:
    result = CliRunner().invoke(main, ["audit", "export"], env=ALONE)
    assert result.exit_code == 2
    assert "say which run (run_7)" in result.stderr
    assert CliRunner().invoke(main, ["audit", "export", "seven"], env=ALONE).exit_code == 2


def test_a_broken_file_is_told_with_its_first_wrong_line(file: Path) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    lines[8] = lines[8].replace(b"approve", b"reject")
    file.write_bytes(b"".join(lines))
    result = verify(file)
    assert result.exit_code == 1
    subject = "00000000-0000-0000-0000-0000000003e8"
    assert result.stdout == (
        f"Broken at line 9, where entry 6 of {subject} belongs: "
        "what it says does not give its hash: one of them was changed.\n"
    )
    found = json.loads(verify(file, "--json").stdout)
    assert (found["whole"], found["line"], found["subject"]) == (False, 9, subject)


def test_as_json_a_whole_file_tells_what_is_in_it(file: Path) -> None:
    result = verify(file, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (found["whole"], found["tenant"], found["run"]) == (True, "T1", None)
    assert (found["chains"], found["entries"]) == (3, 28)
    assert len(found["fingerprint"]) == 64


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\x00\xff" * 40, b'{"format":"x"}\n'])
def test_what_is_no_export_is_an_error_of_its_own(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    result = verify(file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "this is no export of an audit" in result.stderr
    assert json.loads(verify(file, "--json").stdout)["whole"] is None
    assert verify(file.with_name("missing")).exit_code == 2


def test_what_a_file_says_cannot_deceive_a_terminal(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"version":1', b'"version":1,"\\u001b[2J":1', 1))
    for told in (verify(file), verify(file, "--json")):
        assert told.exit_code == 1
        assert "\x1b" not in told.output

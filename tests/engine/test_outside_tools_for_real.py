"""Tools of real servers, from what a model asks for to what is done: a published one, a rogue."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from executor.domain.ids import operator_principal
from executor.engine.setup import activate_policy
from executor.store.database import Database
from tests.support import invariants
from tests.support.fake_model import calls, says
from tests.support.mcp_scene import done, reached, rogue
from tests.support.office import Office, policy
from tests.support.tool_scene import ToolScene

ADA = operator_principal("ada")
DONE = says("All done.")


@pytest.fixture
async def scene(database: Database) -> AsyncIterator[ToolScene]:
    office = await Office.open(database)
    async with reached() as servers:
        office.tools = servers
        yield ToolScene(office)
    await invariants.check(database)


async def _lend(scene: ToolScene, **servers: Any) -> None:
    await activate_policy(scene.office.engine, policy(servers=servers), ADA)


def _git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@acme.example")
    run = subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout


async def test_a_published_server_reads_at_once_and_changes_only_what_people_approved(
    scene: ToolScene, tmp_path: Path
) -> None:
    _git(tmp_path, "init", "-q", "-b", "main")
    _git(tmp_path, "commit", "-q", "--allow-empty", "-m", "the only commit")
    command = [sys.executable, "-m", "mcp_server_git", "--repository", str(tmp_path)]
    await _lend(scene, git={"command": command, "reads": ["git_log", "git_status"]})
    repository = {"repo_path": str(tmp_path)}
    branch = {**repository, "branch_name": "billing-fix"}
    working = await scene.run(
        says("", calls("git__git_log", repository)),
        says("", calls("git__git_create_branch", repository)),
        says("", calls("git__git_create_branch", branch)),
        DONE,
    )
    read, refused = await working.told()
    assert "the only commit" in str(read["words_of_others"])
    assert refused["error"] == "arguments_invalid"
    assert _git(tmp_path, "branch", "--list", "billing-fix") == ""
    await scene.office.show()
    [operation] = await working.operations()
    call = (await scene.record(operation)).tool_call
    assert call is not None
    assert (call.server, call.tool, call.arguments) == ("git", "git_create_branch", branch)
    await scene.office.click(operation)
    await scene.do(operation)
    assert await scene.status(operation) == "succeeded"
    assert "billing-fix" in _git(tmp_path, "branch", "--list")
    await scene.go_on(working)
    assert "billing-fix" in str((await working.told())[-1]["words_of_others"])


async def test_a_server_that_dies_in_a_call_leaves_a_doubt_and_asks_a_person(
    scene: ToolScene, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    await _lend(scene, rogue=rogue(log).model_dump(mode="json"))
    _, operation = await scene.asked(says("", calls("rogue__die", {})), DONE)
    await scene.office.click(operation)
    await scene.do(operation)
    assert await scene.status(operation) == "unknown"
    assert (await scene.record(operation)).doubt is not None
    assert not await scene.office.claim_operations()
    assert done(log) == ["die {}"]

"""One press that may put an operation in the place of another, from the look at the desk on.

The hash of the signed request is remembered in the very commit of what it comes to. Refusals are
journaled, and whoever pressed is told by a notice of the same commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from executor.domain.errors import CommitUnknown
from executor.domain.payloads import JsonObject
from executor.domain.transition import NoChange, Refused
from executor.engine.click import NotConfirmed
from executor.engine.engine import Engine
from executor.engine.failpoint import Commit
from executor.engine.replacement import AskAgain, Edit, EditResult, Replaced, answer
from executor.engine.replacement_scene import LookedTooLongAgo, Scene, Workshop, lock_scene
from executor.engine.sighting import Sight, see
from executor.store import (
    approvals,
    cards,
    journal,
    operation_lookups,
    operations,
    outside_tickets,
    revisions,
)
from executor.store.cards import Notice
from executor.store.connection import Connection
from executor.store.operations import OperationKey
from executor.store.wakeups import Kind

MOST_LOOKS = 2
"""Looks at an outside ticket for one press; one that is too old when it is decided on is void."""


async def press(
    shop: Workshop,
    commit: Commit,
    asked: Edit | AskAgain,
    judge: Callable[[Scene], Awaitable[EditResult]],
    *,
    looks: bool = True,
) -> EditResult:
    """Let ``judge`` decide under every lock and carry it out; returns what it came to.

    Opens its own transactions. The same signed request again changes nothing. Without ``looks`` an
    outside ticket is not looked at. Raises ``CommitUnknown``: see ``read_back``.
    """
    ticket = await _outside_ticket(shop, asked.key) if looks else None
    for looks_left in reversed(range(MOST_LOOKS)):
        sight = None
        if shop.providers.desk is not None and ticket is not None:
            sight = await see(shop.engine, shop.providers.desk, ticket)
        try:
            result = await _press(shop, commit, asked, judge, sight, last_look=not looks_left)
        except LookedTooLongAgo:
            continue
        shop.engine.ring(Kind.WORK)
        shop.engine.ring(Kind.CARDS)
        return result
    raise AssertionError("the last look is decided on, whatever its age")


async def read_back(engine: Engine, asked: Edit | AskAgain) -> Replaced | NotConfirmed:
    """After ``CommitUnknown``: say whether what this person asked for stands there.

    A refusal leaves nothing behind that could be read. Opens its own transaction.
    """
    try:
        async with engine.database.transaction() as conn:
            # Waits for the transaction in doubt, if it is still under way.
            await operations.lock(conn, [asked.key])
            after = await revisions.successor_of(conn, asked.key)
    except CommitUnknown:
        return NotConfirmed()
    theirs = isinstance(asked, AskAgain) or (after and after.editor == asked.principal)
    if after is None or not theirs:
        return NotConfirmed()
    return Replaced(after.number, after.content_revision)


async def _outside_ticket(shop: Workshop, key: OperationKey) -> str | None:
    if shop.providers.desk is None:
        return None
    async with shop.engine.database.transaction() as conn:
        named = await operation_lookups.peek(conn, [key])
    tickets = [n.ticket for n in named if n.ticket is not None]
    return next((id_ for desk, id_ in tickets if desk == shop.providers.desk_name), None)


async def _press(
    shop: Workshop,
    commit: Commit,
    asked: Edit | AskAgain,
    judge: Callable[[Scene], Awaitable[EditResult]],
    sight: Sight | None,
    *,
    last_look: bool,
) -> EditResult:
    async with shop.engine.committing(commit) as conn:
        request = (asked.tenant_id, asked.request_hash)
        if not await approvals.remember_requests(conn, [request]):
            return NoChange()
        scene = await lock_scene(conn, shop, asked, sight, last_look=last_look)
        if isinstance(scene, Refused):
            return scene
        result = await judge(scene)
        if isinstance(result, Refused):
            await _note_refusal(conn, scene, asked, result)
        if sight is not None:
            # What was seen is kept, so that cards can say what changed.
            await outside_tickets.keep(conn, sight.seen_by(asked.tenant_id))
        said = answer(asked, result, scene.row.number)
        if said is not None:
            notice = Notice(asked.tenant_id, shop.engine.mint(), asked.channel, asked.user_id, said)
            await cards.queue_notices(conn, [notice], scene.chain.now)
        await journal.advance(conn, scene.chain)
    return result


async def _note_refusal(
    conn: Connection, scene: Scene, asked: Edit | AskAgain, refused: Refused
) -> None:
    detail: JsonObject = {
        "asked": "edit" if isinstance(asked, Edit) else "propose_again",
        "reason": refused.reason.value,
    }
    row = scene.row
    entry = scene.chain.note(
        row.tenant_id, row.run_id, scene.consent.id, "decision_refused", asked.principal, detail
    )
    await journal.write_notes(conn, [entry])

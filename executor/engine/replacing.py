"""Puts an operation in the place of another at a person's word.

The one before ends, and everything that waited for it, linked runs too, waits for the one after
instead, all in one commit. Whoever asked for the one before has asked for the one after, so none of
them may approve it. The content is frozen, digested, assessed and put under the policy's terms
anew. Runs in the transaction that holds the scene's locks.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.domain import operation
from executor.domain.closing_draft import ClosingDraft
from executor.domain.email import EmailContent
from executor.domain.ids import PrincipalId, RunId, policy_principal
from executor.domain.intent import Intent
from executor.domain.operation import UNOPENED
from executor.domain.payloads import JsonObject
from executor.domain.risk import RiskFacts, assess
from executor.domain.run import RunStatus
from executor.domain.terms import terms_for
from executor.engine import endings, undriven
from executor.engine.composing import compose_drafted
from executor.engine.minting import new_approval, new_effects, new_operation
from executor.engine.policy_consent import consent_by_policy
from executor.engine.replacement import Replaced
from executor.engine.replacement_scene import Scene
from executor.store import approvals, cards, effects, journal, operations, proposals
from executor.store.cards import SubjectKind
from executor.store.proposals import Asking

_LEAVES_BE = frozenset({RunStatus.WAITING, RunStatus.PAUSED})
"""A run that stands so has no worker that could be answering one of its calls."""


async def replace(
    scene: Scene,
    draft: ClosingDraft,
    *,
    editor: PrincipalId | None,
    asker: PrincipalId | None,
    stale: operation.RevalidationFailed | None,
    told: JsonObject,
    origin: str,
) -> Replaced:
    """Put an operation with this content in the place of the scene's; raises ``InvalidContent``.

    The one before, where it has not ended, ends as ``stale`` or else superseded; ``told`` is what
    the journal alone keeps of that. ``asker`` counts as a requester. Where the run does not wait
    for it any more, ``origin`` names what starts a run without a driver.
    """
    conn, row, chain = scene.conn, scene.row, scene.chain
    # What cannot be composed is refused before anything is written.
    intent, email = _compose(scene, draft, editor)
    risks = await _assess(scene, email)
    waiting = _waiting(scene)
    run_id = await _run_for(scene, waiting, origin)
    minted = new_operation(
        scene.shop.engine,
        chain,
        scene.policy,
        (row.tenant_id, run_id),
        row.requester,
        scene.found,
        intent,
        risks=risks,
        revision=row.content_revision + 1,
        editor=editor,
        replaces=row.id,
        actor=scene.pressed.principal,
    )
    if row.status in UNOPENED:
        ending = (row, scene.consent, stale or operation.Superseded(str(minted.id)))
        await endings.end_unopened(
            conn, [ending], scene.pressed.principal, chain, told={row.key: told}
        )
    number = (await operations.insert(conn, [minted], chain.now))[minted.id]
    await effects.insert(conn, new_effects(chain, minted))
    await _ask(scene, minted, waiting, asker)
    await _open_approval(scene, minted)
    both = [(row.tenant_id, id_, SubjectKind.OPERATION) for id_ in (row.id, minted.id)]
    await cards.want(conn, both, chain.now)
    return Replaced(number, minted.content_revision)


def _compose(
    scene: Scene, draft: ClosingDraft, editor: PrincipalId | None
) -> tuple[Intent, EmailContent]:
    row, shop = scene.row, scene.shop
    return compose_drafted(
        shop.engine.mint,
        shop.providers,
        shop.emails,
        scene.policy,
        (row.tenant_id, row.requester),
        scene.found,
        scene.key,
        draft,
        row.risks.language,
        editor,
    )


async def _assess(scene: Scene, email: EmailContent) -> RiskFacts:
    tenant = scene.row.tenant_id
    contacts = await effects.known_recipients(scene.conn, tenant, email.recipients())
    return assess(
        email,
        scene.found.ticket,
        scene.row.risks.language,
        own_domains=scene.policy.email.domains,
        contacts=contacts,
    )


async def _open_approval(scene: Scene, minted: operations.NewOperation) -> None:
    """Put it before people under the terms of now; what a person wrote never goes by itself."""
    by_a_person = minted.editor is not None
    terms = terms_for(scene.policy, minted.intent.kind, minted.risks, by_a_person=by_a_person)
    told: JsonObject = {"by_policy": terms.asks_nobody}
    opened = new_approval(scene.shop.engine, scene.chain, minted, terms, told)
    await approvals.insert(scene.conn, [opened], scene.chain.now)
    if terms.asks_nobody:
        who = policy_principal(scene.policy.version)
        await consent_by_policy(scene.conn, scene.chain, [(minted, opened.approval)], who)


def _waiting(scene: Scene) -> list[Asking]:
    """List the tool calls that wait for the operation: all, until it has ended."""
    if scene.row.status in UNOPENED:
        return list(scene.askings)
    tenant = scene.row.tenant_id
    return [
        asking
        for asking in scene.askings
        if not asking.answered
        and (run := scene.runs.get((tenant, asking.run_id))) is not None
        and run.status in _LEAVES_BE
    ]


async def _run_for(scene: Scene, waiting: Sequence[Asking], origin: str) -> RunId:
    """Name the run that the new operation belongs to: its own, or one that nobody drives."""
    row = scene.row
    if row.status in UNOPENED or any(asking.run_id == row.run_id for asking in waiting):
        return row.run_id
    run_id = RunId(scene.shop.engine.mint())
    born = await journal.lock_chain(scene.conn, [(row.tenant_id, run_id)])
    scene.chain.heads.update(born.heads)
    await undriven.start_waiting(
        scene.conn,
        scene.chain,
        scene.policy,
        (row.tenant_id, run_id),
        goal=scene.run.goal,
        requester=scene.pressed.principal,
        origin=origin,
    )
    return run_id


async def _ask(
    scene: Scene,
    minted: operations.NewOperation,
    waiting: Sequence[Asking],
    asker: PrincipalId | None,
) -> None:
    """Let whatever waited wait for the new operation, and count everybody who has asked for it."""
    key = (minted.tenant_id, minted.id)
    await proposals.repoint(scene.conn, waiting, key)
    counted = {asking.requester for asking in waiting}
    asked = {asking.requester for asking in scene.askings} | {scene.row.requester}
    if asker is not None:
        asked.add(asker)
    await proposals.add_askers(
        scene.conn, key, minted.run_id, sorted(asked - counted), scene.chain.now
    )

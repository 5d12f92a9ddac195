"""Freezes what a raise of a limit would do: from where to where, and why it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from executor.domain.effect import Capability, EffectKind
from executor.domain.ids import EffectId, PrincipalId
from executor.domain.intent import RAISE_BUDGET, Intent, PlannedEffect, intent_document
from executor.domain.payloads import canonical
from executor.domain.policy import Policy
from executor.domain.raising import Raising

PROVIDER = "budget"
PROMISE = (
    "The limit is raised together with its record, if it still stands as shown, or not at all."
)


def compose_raise(
    mint: Callable[[], UUID], policy: Policy, requester: PrincipalId, raising: Raising
) -> Intent:
    """Make the intent of *let this run, or this day, cost more*."""
    asked = raising.as_json()
    effect = PlannedEffect(
        EffectId(mint()),
        EffectKind.BUDGET_RAISE,
        Capability.TRANSACTIONAL,
        PROVIDER,
        canonical(asked),
        {},
        {"to_microusd": raising.new_microusd},
        PROMISE,
    )
    document = intent_document(
        RAISE_BUDGET,
        tenant=policy.tenant_id,
        requested_by=requester,
        policy_version=policy.version,
        about={"raise": asked},
        effects=(effect,),
        templates={},
    )
    key = raising.limit.key(raising.current_microusd, policy)
    return Intent(RAISE_BUDGET, key, document, (effect,))

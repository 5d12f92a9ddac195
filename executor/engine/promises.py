"""What a capability promises, in one sentence for the card and for the operator's page."""

from __future__ import annotations

from typing import assert_never

from executor.domain.effect import Capability, EffectKind


def promise(kind: EffectKind, capability: Capability) -> str:
    """Say what can be promised of an effect whose provider has this capability."""
    what = {EffectKind.TICKET_CLOSE: "Closing", EffectKind.EMAIL_SEND: "Email"}[kind]
    match capability:
        case Capability.TRANSACTIONAL:
            return f"{what}: done together with its record, or not at all."
        case Capability.CONDITIONAL:
            return f"{what}: done only if nothing has changed since; a lost answer is read back."
        case Capability.KEYED:
            return f"{what}: the provider drops repeats while it remembers the key."
        case Capability.LOOKUP:
            return f"{what}: sent at most once; a lost answer is looked up at the provider."
        case Capability.OPAQUE:
            return (
                f"{what}: sent at most once; if the answer is lost, nobody can look it up and a "
                "person has to find out whether it arrived."
            )
        case _:
            assert_never(capability)

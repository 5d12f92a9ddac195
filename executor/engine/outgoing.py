"""Takes what was frozen and approved out of the record, as the ports want it: the stored bytes,
compared with their digest."""

from __future__ import annotations

import hashlib
from datetime import datetime

from executor.domain.errors import Corrupt
from executor.domain.stamp import stamp_from
from executor.engine.desk_port import OutgoingChange
from executor.engine.ports import OutgoingMail
from executor.engine.tool_port import OutgoingCall
from executor.store.effects import EffectRow


def outgoing_mail(part: EffectRow, opened_at: datetime) -> OutgoingMail:
    """Take an email; its ``Date`` is that of its first attempt. Raises ``Corrupt``."""
    recipients = part.envelope["to"]
    assert isinstance(recipients, list | tuple)
    return OutgoingMail(
        str(part.envelope["from"]),
        tuple(str(to) for to in recipients),
        _payload(part),
        part.first_attempt_at or opened_at,
        part.idempotency_key,
        part.id.hex,
    )


def outgoing_change(part: EffectRow) -> OutgoingChange:
    """Take a change of an outside ticket. Raises ``Corrupt``."""
    stamp = stamp_from(part.envelope.get("stamp"))
    if stamp is None:
        raise Corrupt(f"the version that effect {part.id} is conditional on cannot be read")
    return OutgoingChange(
        str(part.envelope["ticket"]), _payload(part), stamp, str(part.envelope["marker"])
    )


def outgoing_call(part: EffectRow) -> OutgoingCall:
    """Take a call of a tool. Raises ``Corrupt``."""
    return OutgoingCall(_payload(part), str(part.envelope["tool_digest"]))


def _payload(part: EffectRow) -> bytes:
    if hashlib.sha256(part.payload).digest() != part.payload_digest:
        raise Corrupt(f"the payload of effect {part.id} is not what was approved")
    return part.payload

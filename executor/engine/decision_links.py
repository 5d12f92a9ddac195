"""One-time links under which somebody decides on a page, where a click in Slack is not enough.

A link is given to one person for one approval as it was shown, and ends after minutes. Looking at
it, as mail scanners and previews do, decides nothing; a decision is made once under the link's
hash. Only that hash is stored.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from executor.domain.approval import ApprovalStatus, Vote
from executor.domain.ids import TenantId, slack_user
from executor.domain.transition import Reason, Refused
from executor.engine.card_record import OperationRecord
from executor.engine.click import Click
from executor.engine.engine import Engine
from executor.engine.records import read_operation
from executor.store import clock, second_factors, tenants
from executor.store.second_factors import DecisionLink

VALID_FOR = timedelta(minutes=10)
_TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Shown:
    """What a link leads to: the operation as it is now, and what its owner was shown.

    ``asks_for_code``: by the rules of then or of now an approval needs a second factor.
    """

    link: DecisionLink
    record: OperationRecord

    asks_for_code: bool

    @property
    def may_be_decided(self) -> bool:
        """Whether it still is open, and unchanged since the link was given."""
        return self.record.approval.status is ApprovalStatus.OPEN and self.is_what_was_shown

    @property
    def is_what_was_shown(self) -> bool:
        """Whether the content still is the one that the link was given for."""
        record = self.record
        shown = (self.link.digest, self.link.content_revision)
        return shown == (record.digest, record.content_revision)


async def issue(engine: Engine, click: Click) -> str:
    """Make a link for whoever clicked and return its token; opens its own transaction."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    async with engine.database.transaction() as conn:
        now = await clock.now(conn)
        link = DecisionLink(
            click.tenant_id,
            _hash(token),
            click.operation_id,
            click.approval_id,
            click.principal,
            click.digest,
            click.content_revision,
            click.nonce,
            click.channel,
            click.message_ts,
            now + VALID_FOR,
        )
        await second_factors.insert_link(conn, link, now)
    return token


async def look(engine: Engine, tenant: TenantId, token: str) -> Shown | Refused:
    """Read what a link leads to; opens its own transaction and uses nothing up."""
    async with engine.database.transaction() as conn:
        link = await second_factors.read_link(conn, tenant, _hash(token))
        now = await clock.now(conn)
        if link is None or now >= link.expires_at:
            return Refused(Reason.LINK_ENDED)
        record = await read_operation(conn, tenant, link.operation_id)
        policy = (await tenants.share_policies(conn, [tenant])).get(tenant)
    terms = record.approval.terms
    if policy is not None:
        terms = terms.under(policy, record.kind, record.risks)
    return Shown(link, record, terms.step_up)


def click_by_link(link: DecisionLink, vote: Vote, note: str, *, second_factor: bool) -> Click:
    """Make the click that a decision on a link's page is; once, whatever comes twice."""
    user = slack_user(link.principal)
    return Click(
        tenant_id=link.tenant_id,
        operation_id=link.operation_id,
        approval_id=link.approval_id,
        digest=link.digest,
        content_revision=link.content_revision,
        nonce=link.nonce,
        principal=link.principal,
        vote=vote,
        note=note,
        channel=link.channel,
        message_ts=link.message_ts,
        request_hash=hashlib.sha256(b"link:" + link.token_hash).digest(),
        user_id="" if user is None else user[1],
        second_factor=second_factor,
    )


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

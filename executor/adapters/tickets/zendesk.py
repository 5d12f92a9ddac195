"""Zendesk: a ticket is solved by one conditional request, with its note and its marker or not at
all.

The condition is ``safe_update`` with ``updated_stamp``, the ``updated_at`` that was last seen;
Zendesk answers 409 when the ticket has moved (Creating and updating tickets, *Protecting against
ticket update collisions*, read 2026-11). It answers 409 for collisions of its own as well
(zendesk_api_client_php#314) and for the repeat of a close of ours that was applied, so that no 409
proves anything: the ticket is read back, and the reading decides. Never is a newer stamp fetched to
try again with.

The stamp has a resolution of one second. A change in the very second of the stamp passes the
condition; the hash in ``Stamp`` shows it to the reading before the request, and to nothing later.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from dataclasses import dataclass, field
from datetime import timedelta

from pydantic import ValidationError

from executor.adapters.http_exchange import Answered, Exchanges, parse_endpoint, require_secret
from executor.adapters.tickets.answers import (
    LARGEST_ANSWER,
    Refusal,
    conclude,
    fetch,
    json_object,
    quote,
)
from executor.adapters.tickets.zendesk_ticket import (
    AUDITS_PAGE,
    TICKET_PAGE,
    UPDATED,
    AuditsPage,
    TicketPage,
    ZendeskAudit,
    changes,
    observation,
    stamp_of,
)
from executor.domain.declaration import Declaration, Guard, Notices
from executor.domain.effect import Capability, EffectKind, Outcome, OutcomeKind
from executor.domain.errors import InvalidContent
from executor.domain.finding import Finding
from executor.domain.payloads import JsonObject, canonical
from executor.domain.stamp import Stamp, moment
from executor.engine.desk_port import DeskUnavailable, Observation, OutgoingChange

LONGEST_REQUEST_SECONDS = 60.0
"""Default bound of one request."""

LONGEST_NOTE = 60_000
"""Bytes of the longest note; Zendesk takes comments of 64 kB."""

_TICKET_ID = re.compile(r"[1-9][0-9]{0,18}")
_MARKER = re.compile(r"[a-z0-9_-]{8,80}")
_PAGE_SIZE = 100
_MOST_PAGES = 20
_MOST_TOLD = 10


DECLARED = Declaration(
    "Zendesk",
    EffectKind.TICKET_CLOSE,
    Capability.CONDITIONAL,
    "whoever can read the ticket's events in Zendesk",
    version_resolution=timedelta(seconds=1),
    guard=Guard.COMPARED,
    notices=Notices.AS_SET,
)


@dataclass(frozen=True, slots=True)
class ZendeskSettings:
    """One agent's access to one Zendesk account.

    ``url`` is ``https://ACCOUNT.zendesk.com``. ``notifies_on_close`` has no default: whether the
    account's triggers and automations mail the requester when a ticket is solved is known to its
    administrators only. ``closing_tag`` is one that those triggers exclude.
    """

    url: str
    email: str
    api_token: str = field(repr=False)
    notifies_on_close: bool
    closing_tag: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no request could be made from."""
        parse_endpoint(self.url, setting="ZENDESK_URL")
        require_secret(self.api_token, setting="ZENDESK_API_TOKEN")
        if self.closing_tag is not None and not re.fullmatch(r"[a-z0-9_-]{1,80}", self.closing_tag):
            raise ValueError("the closing tag must be of lower-case letters, digits, _ and -")


class Zendesk:
    """One Zendesk account; implements ``TicketDesk``."""

    def __init__(
        self,
        settings: ZendeskSettings,
        *,
        longest_request_seconds: float = LONGEST_REQUEST_SECONDS,
        tls_context: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._longest_request_seconds = longest_request_seconds
        endpoint = parse_endpoint(settings.url, setting="ZENDESK_URL")
        self._authority = endpoint.authority
        token = require_secret(settings.api_token, setting="ZENDESK_API_TOKEN")
        credentials = base64.b64encode(f"{settings.email}/token:{token}".encode()).decode()
        self._headers = {"authorization": f"Basic {credentials}"}
        self._exchanges = Exchanges(
            endpoint,
            longest_request_seconds,
            tls_context,
            most_answer_octets=LARGEST_ANSWER,
            secrets=(credentials, token),
        )

    @property
    def name(self) -> str:
        """The account, or host and port where it is not at Zendesk itself."""
        return f"zendesk:{self._authority.removesuffix('.zendesk.com')}"

    @property
    def declaration(self) -> Declaration:
        """What can be promised of this account."""
        return DECLARED

    @property
    def capability(self) -> Capability:
        """Compare-and-set on ``updated_at``."""
        return self.declaration.capability

    @property
    def notifies_on_close(self) -> bool:
        """As the settings declare; our own note is private and mails nobody."""
        return self._settings.notifies_on_close

    @property
    def longest_request_seconds(self) -> float:
        """Upper bound of one changing request."""
        return self._longest_request_seconds

    async def read(self, ticket_id: str) -> Observation | None:
        """Read the record first and then its audits, so that the stamp is never too new."""
        page = await self._record(ticket_id)
        if page is None:
            return None
        audits: list[ZendeskAudit] = []
        users = {user.id: user for user in page.users}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            found = await self._audits(ticket_id, newest_first=False, cursor=cursor)
            audits.extend(found.audits)
            users.update({user.id: user for user in found.users})
            cursor = found.meta.after_cursor if found.meta.has_more else None
            if cursor is None:
                audits.sort(key=lambda audit: audit.id)
                return observation(self.name, page, audits, users)
        raise DeskUnavailable("the ticket has a longer history than can be shown")

    def freeze_close(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the request that solves the ticket; ``closed`` would be final, ``solved`` is not.

        Tags can only be replaced as a whole, so those that were seen are sent along; the condition
        keeps them from undoing anybody's change.
        """
        tags = [*seen.labels, marker]
        if self._settings.closing_tag is not None:
            tags.append(self._settings.closing_tag)
        return _freeze("solved", seen.stamp, tags, marker, note)

    def freeze_reopen(self, seen: Observation, marker: str, note: str) -> bytes:
        """Make the request that sets the ticket to ``open``, without the closing tag."""
        tags = [tag for tag in seen.labels if tag != self._settings.closing_tag]
        return _freeze("open", seen.stamp, [*tags, marker], marker, note)

    async def close(self, change: OutgoingChange) -> Outcome:
        """Send the frozen request once."""
        return await self._change(change)

    async def reopen(self, change: OutgoingChange) -> Outcome:
        """Send the frozen request once."""
        return await self._change(change)

    async def read_back(self, change: OutgoingChange) -> Outcome:
        """Read the record, and only then the audits.

        A record that has moved without our marker shuts out every request with the old stamp, and
        what had been applied until then is in the audits that are read later. In the other order
        only the tag would tell of a request that lands between the two, and anybody can remove it.
        """
        try:
            page = await self._record(change.ticket_id)
            if page is None:
                return self._unread("the ticket is not there any more")
            tagged = change.marker in page.ticket.tags
            found = await self._audits(change.ticket_id, newest_first=True, cursor=None)
        except DeskUnavailable as error:
            return self._unread(error.problem)
        return self._conclude_reading(change, page, found, tagged=tagged)

    async def _change(self, change: OutgoingChange) -> Outcome:
        unfit = _unfit(change)
        if unfit:
            return Outcome(OutcomeKind.NOT_APPLIED, {"desk": self.name, "problem": unfit})
        path = f"/api/v2/tickets/{change.ticket_id}.json"
        ending = await self._exchanges.put(path, self._headers, change.payload)
        outcome = conclude(self.name, ending, read_refusal)
        if outcome.kind is not OutcomeKind.APPLIED or not isinstance(ending, Answered):
            return outcome
        return Outcome(outcome.kind, {**outcome.evidence, **_told_by(ending)})

    def _conclude_reading(
        self, change: OutgoingChange, page: TicketPage, found: AuditsPage, *, tagged: bool
    ) -> Outcome:
        audits = sorted(found.audits, key=lambda audit: audit.id)
        ours = next((audit for audit in audits if audit.holds(change.marker)), None)
        evidence: JsonObject = {
            "desk": self.name,
            "ticket_status": page.ticket.status,
            "updated_at": page.ticket.updated_at,
        }
        if tagged or ours is not None:
            evidence = {**evidence, "finding": Finding.MARKER.value}
            # Only a version that nobody has changed since is our own, to be undone by us.
            if tagged and ours is not None and ours.id == audits[-1].id:
                stamp = stamp_of(page.ticket, ours.id)
                evidence = {**evidence, "audit": str(ours.id), "stamp": stamp.as_json()}
            return Outcome(OutcomeKind.APPLIED, evidence)
        if page.ticket.updated_at == change.stamp.updated_at:
            return Outcome(OutcomeKind.UNKNOWN, {**evidence, "finding": Finding.UNCHANGED.value})
        seen_at = moment(change.stamp.updated_at)
        if found.meta.has_more and audits and audits[0].created_at >= seen_at:
            return self._unread("more has happened since than one reading shows")
        users = {user.id: user for user in (*page.users, *found.users)}
        later = [audit for audit in audits if audit.created_at > seen_at]
        told: list[JsonObject] = [
            {"kind": each.kind.value, "author": quote(each.author)}
            for each in changes(later[-_MOST_TOLD:], page.ticket.requester_id, users)
        ]
        return Outcome(
            OutcomeKind.NOT_APPLIED,
            {**evidence, "finding": Finding.MOVED.value, "changes": told},
        )

    def _unread(self, problem: str) -> Outcome:
        return Outcome(
            OutcomeKind.UNKNOWN,
            {"desk": self.name, "finding": Finding.UNREAD.value, "problem": problem},
        )

    async def _record(self, ticket_id: str) -> TicketPage | None:
        if not _TICKET_ID.fullmatch(ticket_id):
            return None
        path = f"/api/v2/tickets/{ticket_id}.json"
        return await fetch(
            self._exchanges, path, self._headers, {"include": "users"}, TICKET_PAGE, read_refusal
        )

    async def _audits(
        self, ticket_id: str, *, newest_first: bool, cursor: str | None
    ) -> AuditsPage:
        query = {
            "include": "users",
            "page[size]": str(_PAGE_SIZE),
            "sort": "-created_at" if newest_first else "created_at",
        }
        if cursor is not None:
            query["page[after]"] = cursor
        path = f"/api/v2/tickets/{ticket_id}/audits.json"
        page = await fetch(self._exchanges, path, self._headers, query, AUDITS_PAGE, read_refusal)
        if page is None:
            raise DeskUnavailable("the ticket went away while it was read")
        return page


def read_refusal(answer: Answered) -> Refusal | None:
    """Recognise Zendesk's own refusals: ``{"error": "RecordInvalid", "description": "…"}``, or
    ``error`` as an object with ``title`` and ``message``.

    Its 429 may be plain text (API reference, *Rate limits*, read 2026-11); that is recognised by
    ``Retry-After`` together with a header that only Zendesk sets.
    """
    limited = answer.status == 429
    wait = answer.retry_after
    body = json_object(answer) or {}
    error = body.get("error")
    if isinstance(error, dict) and isinstance(error.get("title"), str):
        return Refusal({"error": quote(error["title"])}, limited, wait)
    if isinstance(error, str):
        said = body.get("description")
        words = {"error": quote(error)}
        if isinstance(said, str):
            words["description"] = quote(said)
        return Refusal(words, limited, wait)
    own = {"x-zendesk-request-id", "x-rate-limit"} & set(answer.headers)
    if limited and wait is not None and own:
        return Refusal({}, limited, wait)
    return None


def _freeze(status: str, stamp: Stamp, tags: list[str], marker: str, note: str) -> bytes:
    if not _MARKER.fullmatch(marker):
        raise InvalidContent("marker", "it cannot be a tag", "Use a-z, 0-9, _ and -.")
    if len(note.encode(errors="replace")) > LONGEST_NOTE:
        raise InvalidContent(
            "note", f"it is longer than {LONGEST_NOTE} bytes", "Write a shorter note."
        )
    return canonical(
        {
            "ticket": {
                "status": status,
                "safe_update": True,
                "updated_stamp": stamp.updated_at,
                "tags": sorted(set(tags)),
                "comment": {"body": f"{note}\n\n({marker})".strip(), "public": False},
            }
        }
    )


def _unfit(change: OutgoingChange) -> str | None:
    """Name what keeps this request from leaving exactly as it is stored, if anything does."""
    if not _TICKET_ID.fullmatch(change.ticket_id):
        return "there can be no ticket of this id"
    try:
        ticket = json.loads(change.payload)["ticket"]
        guarded = ticket["safe_update"] is True
        stamp, tags = ticket["updated_stamp"], ticket["tags"]
    except (ValueError, KeyError, TypeError):
        return "the stored request is not one of ours"
    if not guarded or stamp != change.stamp.updated_at:
        return "the stored request is not conditional on the version that was approved"
    if change.marker not in tags:
        return "the stored request does not carry its marker"
    return None


def _told_by(answer: Answered) -> JsonObject:
    """Take the new version from the answer to an update, as far as it came."""
    try:
        updated = UPDATED.validate_json(answer.body or b"")
    except ValidationError:
        return {"answer": "broken"}
    return {
        "ticket_status": updated.ticket.status,
        "audit": str(updated.audit.id),
        "stamp": stamp_of(updated.ticket, updated.audit.id).as_json(),
    }

"""What a decision about a machine can be: a transition, no change, or a refusal; never an
exception.

Every machine (run, operation, effect, attempt, approval, reservation) decides with a pure, total
``decide(state, event, *, now)`` and ends in ``assert_never``. The store applies a transition only
where the row still is in its source; the edge table refuses every edge that is not in ``EDGES``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from executor.domain.payloads import JsonObject

BORN = "born"
"""The source of a record's first journal row."""


class Machine(StrEnum):
    """The machines whose history the journal holds."""

    RUN = "run"
    OPERATION = "operation"
    EFFECT = "effect"
    ATTEMPT = "attempt"
    APPROVAL = "approval"
    RESERVATION = "reservation"
    GRANT = "grant"


class Reason(StrEnum):
    """Why something was refused or ended; each has a sentence in ``bot/reason_text.py``."""

    # Deciding (T3).
    NOT_PERMITTED = "not_permitted"
    IDENTITY_UNKNOWN = "identity_unknown"
    IDENTITY_REFUSED = "identity_refused"
    OTHER_WORKSPACE = "other_workspace"
    OWN_REQUEST = "own_request"
    LINKED_REQUEST = "linked_request"
    OWN_EDIT = "own_edit"
    SECOND_FACTOR_NEEDED = "second_factor_needed"
    SECOND_FACTOR_WRONG = "second_factor_wrong"
    SECOND_FACTOR_BLOCKED = "second_factor_blocked"
    NO_SECOND_FACTOR = "no_second_factor"
    LINK_ENDED = "link_ended"
    CONTENT_CHANGED = "content_changed"
    NOT_SHOWN = "not_shown"
    ALREADY_VOTED = "already_voted"
    ALREADY_GRANTED = "already_granted"
    ALREADY_DENIED = "already_denied"
    ALREADY_SENDING = "already_sending"
    ALREADY_ENDED = "already_ended"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    NOT_YOURS_TO_WITHDRAW = "not_yours_to_withdraw"
    WITHDRAWN_BY_REQUESTER = "withdrawn_by_requester"
    WITHDRAWN_BY_OPERATOR = "withdrawn_by_operator"
    SUPERSEDED = "superseded"
    # Editing, and proposing again.
    NOTHING_EDITED = "nothing_edited"
    NOT_OUT_OF_DATE = "not_out_of_date"
    NOT_REPLACEABLE = "not_replaceable"
    # Asking the agent about what waits.
    NOBODY_TO_ASK = "nobody_to_ask"
    QUESTION_LIMIT = "question_limit"
    QUESTION_OVERTAKEN = "question_overtaken"
    # Accepting (T1).
    CONFLICTS_WITH = "conflicts_with"
    ALREADY_DONE = "already_done"
    DESK_UNAVAILABLE = "desk_unavailable"
    NOT_CONFIGURED = "not_configured"
    DESK_NOTIFIES = "desk_notifies"
    DESK_CANNOT_SEARCH = "desk_cannot_search"
    TICKET_UNKNOWN = "ticket_unknown"
    TICKET_CLOSED = "ticket_closed"
    VERSION_NOT_READ = "version_not_read"
    VERSION_CHANGED = "version_changed"
    CONTENT_INVALID = "content_invalid"
    CONTENT_TOO_LONG = "content_too_long"
    TOOL_UNKNOWN = "tool_unknown"
    ARGUMENTS_INVALID = "arguments_invalid"
    SERVER_AWAY = "server_away"
    TOOL_FAILED = "tool_failed"
    RUN_ENDING = "run_ending"
    # Opening (T4) and after it.
    LEASE_LOST = "lease_lost"
    RUN_HELD = "run_held"
    APPROVAL_MISSING = "approval_missing"
    DIGEST_MISMATCH = "digest_mismatch"
    TIME_TO_USE_OVER = "time_to_use_over"
    POLICY_CHANGED = "policy_changed"
    PROVIDER_CHANGED = "provider_changed"
    REFUSED_BY_PROVIDER = "refused_by_provider"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    OUTCOME_LOST = "outcome_lost"
    # A person's word about what no machine can find out.
    ATTEMPT_CHANGED = "attempt_changed"
    SAID_NOT_SENT = "said_not_sent"
    # What becomes of a close whose email was not sent.
    LEFT_BY_POLICY = "left_by_policy"
    CHANGED_SINCE_CLOSE = "changed_since_close"
    NOT_REOPENED = "not_reopened"
    NOTHING_TO_UNDO = "nothing_to_undo"
    # Grants.
    GRANT_UNKNOWN = "grant_unknown"
    GRANT_INVALID = "grant_invalid"
    ROLE_UNKNOWN = "role_unknown"
    # Runs.
    CANCELLED = "cancelled"
    REJECTED_AND_STOPPED = "rejected_and_stopped"
    COMPLETED = "completed"
    STEP_LIMIT = "step_limit"
    TIME_LIMIT = "time_limit"
    BUDGET_LIMIT = "budget_limit"
    BUDGET_NOT_RAISED = "budget_not_raised"
    LIMIT_CHANGED = "limit_changed"
    NOBODY_WAITS = "nobody_waits"
    MODEL_UNPRICED = "model_unpriced"
    CHARGE_NOT_FOUND = "charge_not_found"
    CHARGE_NOT_UNKNOWN = "charge_not_unknown"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 - not a secret
    PARKED_TOO_LONG = "parked_too_long"
    REJECTION_LIMIT = "rejection_limit"
    NOBODY_DECIDED = "nobody_decided"
    TOOL_ERROR_LIMIT = "tool_error_limit"
    REPEATED_PROPOSAL = "repeated_proposal"
    MODEL_FAILED = "model_failed"
    MODEL_SILENT = "model_silent"
    KEEPS_FAILING = "keeps_failing"
    QUEUE_FULL = "queue_full"
    RUN_UNKNOWN = "run_unknown"
    ALREADY_STARTED = "already_started"


StatusT = TypeVar("StatusT", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Transition(Generic[StatusT]):
    """A move of one record from ``source`` to ``target``, with what the journal keeps of it."""

    source: StatusT
    target: StatusT
    event: str
    reason: Reason | None = None
    detail: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoChange:
    """The honest answer to a duplicate: the record already says so."""

    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A business no, with a reason that a person reads and what the sentence needs."""

    reason: Reason
    detail: JsonObject = field(default_factory=dict)

"""Why something was refused or ended, and what to do next: one sentence for every reason.

Nothing that a model, a customer or a provider wrote is in one of them. A sentence may stand in
``mrkdwn``: people are mentioned by our own ids alone, everything else is a constant, a number, or a
name of ours with ``&``, ``<`` and ``>`` escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from bot.effect_words import words_for
from bot.mrkdwn import hint, mention
from bot.state_text import operation_state
from executor.domain.ids import PrincipalId, operation_label, run_label
from executor.domain.operation import OperationStatus
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason

_ROLES = {
    "request": "start runs",
    "approve": "decide",
    "cancel": "cancel runs",
    "edit": "edit proposals",
    "operate": "give or revoke roles of others",
    "own_role": "pass on a role that is not your own",
    "see_money": "see what this has cost",
    "settle_charge": "say what calls have cost",
}
_GRANT_PROBLEMS = {
    "resource": "A grant is about everything (*), or kind:, desk: or ticket: and a name.",
    "person": "A role can be given to a member of this workspace only.",
    "times": "A grant has to end later than it begins, and later than now.",
    "delegation": "Whoever passes a role on gives it to somebody else, and until a date.",
}
_KINDS = {
    "deactivated": "deactivated accounts",
    "bot": "bots",
    "guest": "guests",
    "app": "accounts that only use the app",
    "unknown": "people whom it does not know in this workspace",
}


def sentence(reason: Reason, detail: JsonObject) -> str:
    """Say why something was refused or ended, and what to do next.

    Used from ``detail``, where present and of the right shape: ``by`` (a principal), ``missing``
    (a permission), ``is`` (what an identity is), ``run`` and ``operation`` (numbers), ``effect``
    (a kind of effect), ``successor`` (a number), ``editor`` (a principal) and ``stops_run``.
    """
    match reason:
        case Reason.NOT_PERMITTED:
            what = _ROLES.get(str(detail.get("missing")), "do this")
            return f"You may not {what} here. Ask whoever keeps the policy to add you."
        case Reason.IDENTITY_UNKNOWN if "who" in detail:
            return "Slack did not tell in time whether the people it rests on are still members."
        case Reason.IDENTITY_UNKNOWN:
            return "Slack has not told us yet who you are. Try again in a few seconds."
        case Reason.IDENTITY_REFUSED:
            who = _KINDS.get(str(detail.get("is")), "accounts of this kind")
            return f"Slack says that {who} may not act here. Ask a full member of the workspace."
        case Reason.OTHER_WORKSPACE:
            return "You belong to another workspace. Ask a member of this one."
        case Reason.OWN_REQUEST:
            return "You asked for this, so somebody else has to approve it."
        case Reason.LINKED_REQUEST:
            return "You asked for the same in another run, so somebody else has to approve it."
        case Reason.OWN_EDIT:
            return "You edited this, so somebody else has to approve it."
        case Reason.SECOND_FACTOR_NEEDED:
            return "This needs a second factor. Follow the link that we sent you to decide on it."
        case Reason.SECOND_FACTOR_WRONG:
            return "This code is wrong, or was used before. Wait for the next one and try again."
        case Reason.SECOND_FACTOR_BLOCKED:
            return "Too many wrong codes. Wait a quarter of an hour, then click the card again."
        case Reason.NO_SECOND_FACTOR:
            return "You have no second factor here yet. Ask an operator to give you one."
        case Reason.LINK_ENDED:
            return "This link has ended. Click the card in Slack again for a new one."
        case Reason.GRANT_UNKNOWN:
            return f"There is no such grant. {hint('grants')} lists them."
        case Reason.GRANT_INVALID:
            return _GRANT_PROBLEMS.get(
                str(detail.get("problem")), "This grant cannot be given as it is. Correct it."
            )
        case Reason.ROLE_UNKNOWN:
            return "There is no such role. The policy file names the roles of this workspace."
        case Reason.CONTENT_CHANGED:
            return "The content has changed since you looked. Decide on the newest card."
        case Reason.NOT_SHOWN:
            return "This has not been shown in Slack yet. Wait for its card and decide there."
        case Reason.ALREADY_VOTED:
            return "Your vote is already recorded. Others have to decide now."
        case Reason.ALREADY_GRANTED:
            return f"This was already approved{_by(detail)}. Nothing more is needed."
        case Reason.ALREADY_DENIED:
            return f"This was already rejected{_by(detail)}. The agent may propose it anew."
        case Reason.ALREADY_SENDING:
            return "Too late: it is already being sent. The card will show how it ended."
        case Reason.ALREADY_ENDED:
            return "This has already ended. The card shows how."
        case Reason.EXPIRED if detail.get("stops_run"):
            return "Nobody decided in time, so nothing was done, and the run was stopped with it."
        case Reason.EXPIRED:
            return "The time to decide is over and nothing was done. Ask for it again if needed."
        case Reason.WITHDRAWN:
            return "This was withdrawn and nothing was done. The card says why."
        case Reason.NOT_YOURS_TO_WITHDRAW:
            return "Only whoever asked for it or an operator can withdraw it. You may reject it."
        case Reason.WITHDRAWN_BY_REQUESTER:
            return "Whoever asked for it has withdrawn it."
        case Reason.WITHDRAWN_BY_OPERATOR:
            return "An operator has withdrawn it."
        case Reason.NOBODY_TO_ASK:
            return "No agent works on this, so nobody could answer. Decide by what the card shows."
        case Reason.QUESTION_LIMIT:
            return "As many questions as the policy allows were asked about this. Decide on it."
        case Reason.QUESTION_OVERTAKEN:
            return "It was decided or replaced before the agent had answered."
        case Reason.SUPERSEDED if "successor" in detail:
            after = _numbered(detail, "successor", operation_label) or "Something else"
            editor = detail.get("editor")
            by = f", edited by {mention(PrincipalId(editor))}," if isinstance(editor, str) else ""
            return f"{after}{by} has taken its place. Look at its card."
        case Reason.NOTHING_EDITED:
            return "You changed nothing, so everything stays as it is."
        case Reason.NOT_OUT_OF_DATE:
            return "The ticket still stands as it was proposed. Decide on this card."
        case Reason.NOT_REPLACEABLE:
            return "Only closure emails can be edited or proposed again. Approve this or reject it."
        case Reason.SUPERSEDED:
            return "A newer proposal has taken its place. Decide on the newest card."
        case Reason.CONFLICTS_WITH:
            other = _numbered(detail, "operation", operation_label) or "Another proposal"
            return f"{other} already wants something else for this ticket. Decide that one first."
        case Reason.ALREADY_DONE:
            return "This has already been done, so it is not done again."
        case Reason.DESK_UNAVAILABLE:
            return "The ticket desk could not be read. Try again when it answers."
        case Reason.NOT_CONFIGURED:
            return (
                "Nothing can be proposed from here: the bot lacks the executor's settings of mail "
                "and desk. Tell an operator."
            )
        case Reason.DESK_NOTIFIES:
            return (
                "The ticket desk itself would mail the customer as well. Switch that off, "
                "or allow it in the policy (tickets.allow_desk_notification)."
            )
        case Reason.DESK_CANNOT_SEARCH:
            return "This ticket desk cannot be searched from here. Name the ticket by its number."
        case Reason.TICKET_UNKNOWN:
            return "There is no such ticket. Check its number."
        case Reason.TICKET_CLOSED:
            return "The ticket is already closed, so there is nothing to close."
        case Reason.VERSION_NOT_READ:
            return "The ticket's version could not be read. Try again when the desk answers."
        case Reason.VERSION_CHANGED:
            return "The ticket has changed since it was read. Ask for a fresh proposal."
        case Reason.CONTENT_INVALID:
            return "The email holds something that cannot be shown and sent unchanged."
        case Reason.CONTENT_TOO_LONG:
            return "The email is too long. It has to be shortened."
        case Reason.TOOL_UNKNOWN:
            return "The agent asked for something that does not exist here."
        case Reason.ARGUMENTS_INVALID:
            return "The agent's request was incomplete or wrong."
        case Reason.SERVER_AWAY:
            return "A server of tools does not answer. Try again when it does."
        case Reason.TOOL_FAILED:
            return "A tool of a server says that it failed."
        case Reason.RUN_ENDING:
            return "The run is ending, so nothing new is taken on. Start a new run."
        case Reason.LEASE_LOST:
            return "Another worker has taken over. It goes on by itself."
        case Reason.RUN_HELD:
            return "The run is on hold. Nothing is done until somebody lets it go on."
        case Reason.APPROVAL_MISSING:
            return "There is no valid approval for it. Ask for it again."
        case Reason.DIGEST_MISMATCH:
            return "It was not what had been approved, so it was not sent. Tell an operator."
        case Reason.TIME_TO_USE_OVER:
            return "The approval was not used in time and nothing was done. Ask for it again."
        case Reason.POLICY_CHANGED:
            return "The policy has changed since and no longer allows it."
        case Reason.PROVIDER_CHANGED:
            return "The email provider has changed since the approval. Ask for a fresh proposal."
        case Reason.REFUSED_BY_PROVIDER:
            return "The provider refused it. Its answer tells what to correct."
        case Reason.ATTEMPTS_EXHAUSTED:
            return "The provider could not take it, and every try is used up. Ask again later."
        case Reason.OUTCOME_LOST:
            return "The answer was lost. Somebody has to look what came of it."
        case Reason.ATTEMPT_CHANGED:
            return "Something was tried since you looked. Look at the newest card and say it there."
        case Reason.SAID_NOT_SENT:
            done = words_for(str(detail.get("effect", "email.send"))).done
            return f"Somebody found out that it was not {done}."
        case Reason.LEFT_BY_POLICY:
            return "The policy says to leave the ticket closed when its email was not sent."
        case Reason.CHANGED_SINCE_CLOSE:
            return (
                "The ticket does not stand any more where our own close left it, so it is not "
                "opened again: nobody's later change is undone."
            )
        case Reason.NOT_REOPENED:
            asked = _numbered(detail, "operation", operation_label) or "What was asked for"
            return f"{asked} would have opened the ticket again, and {_ended(detail)}."
        case Reason.NOTHING_TO_UNDO:
            closing = _numbered(detail, "operation", operation_label) or "The closing"
            return f"{closing} has ended otherwise meanwhile, so there is nothing to undo."
        case Reason.CANCELLED:
            return f"The run was cancelled{_by(detail)}."
        case Reason.REJECTED_AND_STOPPED:
            return f"A proposal was rejected and the run stopped with it{_by(detail)}."
        case Reason.COMPLETED:
            return "The agent says that it is finished."
        case Reason.STEP_LIMIT:
            return "The run used up its steps. Start a new run with a smaller goal."
        case Reason.TIME_LIMIT:
            return "The run used up its time. Start a new run if it is still needed."
        case Reason.BUDGET_LIMIT:
            return "The money for this is used up. Ask whoever keeps the policy to raise the limit."
        case Reason.REJECTION_LIMIT:
            return "Too many proposals in a row were rejected. Start a new run with a clearer goal."
        case Reason.NOBODY_DECIDED:
            return "The run was stopped because nobody decided in time."
        case Reason.TOOL_ERROR_LIMIT:
            return "Too many of the agent's requests in a row failed. Start a new run."
        case Reason.REPEATED_PROPOSAL:
            return "The agent kept proposing the same thing. Start a new run with a clearer goal."
        case Reason.MODEL_FAILED:
            return "The language model could not be reached. Start a new run later."
        case Reason.MODEL_SILENT:
            return "The language model gave no usable answer. Start a new run."
        case Reason.BUDGET_NOT_RAISED:
            return "It may not cost more: nobody has approved a higher limit."
        case Reason.NOBODY_WAITS:
            return "Nothing waits for it any more, so the limit stays as it is."
        case Reason.LIMIT_CHANGED:
            return "The limit is another one by now, so nothing was changed."
        case Reason.MODEL_UNPRICED:
            return "Nobody knows what this model costs. Give its price in the policy: [prices]."
        case Reason.CHARGE_NOT_FOUND:
            return "There is no such charge."
        case Reason.CHARGE_NOT_UNKNOWN:
            return "What this call cost is not in doubt, or not any more. Nothing was changed."
        case Reason.TOKEN_LIMIT:
            return (
                "The run has read and written as many tokens as the policy allows. Start a new run "
                "with a smaller goal."
            )
        case Reason.PARKED_TOO_LONG:
            return (
                "The run has waited as long as the policy allows. Start a new run if it is still "
                "needed."
            )
        case Reason.KEEPS_FAILING:
            return (
                "Whoever worked on it stopped again and again without getting on, so it was ended. "
                "An operator has to look at the executor's log before it is started again."
            )
        case Reason.QUEUE_FULL:
            queued = _count(detail, "queued")
            runs = "1 run" if queued == 1 else f"{queued} runs"
            full = "full" if queued is None else f"full with {runs}"
            return (
                f"Nothing was started: the workspace's queue is {full}. Ask again when some have "
                f"begun, or cancel what nobody needs. {hint('status')} lists the newest runs."
            )
        case Reason.RUN_UNKNOWN:
            return f"There is no such run. {hint('status')} lists the runs."
        case Reason.ALREADY_STARTED:
            run = _numbered(detail, "run", run_label) or "The run"
            return f"{run} was already started by this request. Nothing was started twice."
        case _:
            assert_never(reason)


def _ended(detail: JsonObject) -> str:
    """Say how a reopening ended without being done, and why where that is known."""
    try:
        state = operation_state(OperationStatus(str(detail.get("ended"))))
    except ValueError:
        return "was not done"
    try:
        why = f" ({sentence(Reason(str(detail.get('why'))), {}).rstrip('.')})"
    except ValueError:
        why = ""
    return f"is {state}{why}"


def _by(detail: JsonObject) -> str:
    by = detail.get("by")
    return f" by {mention(PrincipalId(by))}" if isinstance(by, str) and by else ""


def _numbered(detail: JsonObject, key: str, label: Callable[[int], str]) -> str | None:
    number = _count(detail, key)
    return None if number is None else label(number)


def _count(detail: JsonObject, key: str) -> int | None:
    number = detail.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) else None

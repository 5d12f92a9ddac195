"""What each check of an opening asked, and what it found, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from bot.reason_text import sentence
from executor.domain.payloads import JsonObject
from executor.domain.transition import Reason
from executor.engine.revalidation import CheckName

HELD = "held"


def asked(name: CheckName) -> str:
    """Say what a check asks, as a statement that has to be true."""
    match name:
        case CheckName.RULES:
            return "there is a policy, and an approval"
        case CheckName.RUN:
            return "the run has not been stopped"
        case CheckName.CONTENT:
            return "what would be done is exactly what was approved"
        case CheckName.APPROVAL:
            return "the approval is granted, in time, and not used up otherwise"
        case CheckName.REQUESTER:
            return "whoever asked may still ask"
        case CheckName.APPROVERS:
            return "enough of those who approved may still approve"
        case CheckName.IDENTITIES:
            return "they are still full members of the workspace, by a look of the last minute"
        case CheckName.TICKET:
            return "the ticket stands at the version that was approved, or that our own close made"
        case CheckName.LIMIT:
            return "the limit still stands where it stood when the raise was asked for"
        case CheckName.ONCE:
            return "the same has not been done already"
        case CheckName.UNDOES:
            return "what it would undo is still done in part, and its email not sent"
        case CheckName.PROVIDER:
            return "it leaves through the account that was approved"
        case CheckName.BUDGET:
            return "there is money for what it costs"
        case CheckName.REPEAT:
            return "a repeat is harmless, for the provider still drops it or refuses it"
        case _:
            assert_never(name)


def in_short(version: int | None, *, undoes: bool, by_policy: bool, raises: bool = False) -> str:
    """Say in one line of a card what all checks of an opening that took place have found.

    ``version`` is that of its ticket, where it is about one.
    """
    found = ["exactly what was approved"]
    if undoes:
        found.append("the ticket still as our own close had left it")
    elif version is not None:
        found.append(f"the ticket still at version {version}")
    elif raises:
        found.append("the limit still where it stood")
    found.append("the policy still consents" if by_policy else "the approval in time")
    return ", ".join((*found, "permissions hold", "not done before"))


def told(checks: object, decisive: JsonObject) -> Iterator[str]:
    """Tell recorded checks in the order in which they count, each with its result.

    ``decisive`` is the detail of the refusal that counted, for its sentence.
    """
    if not isinstance(checks, Mapping):
        return
    counted = False
    for name in CheckName:
        found = checks.get(name.value)
        if not isinstance(found, str):
            continue
        if found == HELD:
            yield f"held: {asked(name)}"
            continue
        detail = {} if counted else decisive
        counted = True
        yield f"DID NOT HOLD: {asked(name)}. {_why(found, detail)}"


def _why(found: str, detail: JsonObject) -> str:
    try:
        said = sentence(Reason(found), detail)
    except ValueError:
        return found
    if found == Reason.VERSION_CHANGED and {"approved", "version"} <= detail.keys():
        return f"Version {detail['approved']} was expected, it is {detail['version']}. {said}"
    return said

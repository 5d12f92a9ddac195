"""Chooses the ticket desk from settings: ``SIGNOFF_DESK``, or the one outside desk that is set up.

Without any, tickets are those of the built-in desk. Values of settings are never repeated in a
problem: they are secrets, or may hold one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from executor.adapters.choice import ChoiceInvalid, built, given_in, seconds
from executor.adapters.tickets.github_issues import (
    GITHUB_API_URL,
    LOOKUP_LAG_SECONDS,
    GithubIssues,
    GithubSettings,
)
from executor.adapters.tickets.github_issues import (
    LONGEST_REQUEST_SECONDS as GITHUB_LONGEST_REQUEST_SECONDS,
)
from executor.adapters.tickets.zendesk import (
    LONGEST_REQUEST_SECONDS as ZENDESK_LONGEST_REQUEST_SECONDS,
)
from executor.adapters.tickets.zendesk import Zendesk, ZendeskSettings
from executor.domain.ticket import BUILTIN_DESK
from executor.engine.desk_port import TicketDesk

NOTIFIES = "ZENDESK_NOTIFIES_ON_CLOSE"

# Every setting that a desk cannot be used without, and how to get it.
_NEEDED: Mapping[str, Mapping[str, str]] = {
    "zendesk": {
        "ZENDESK_URL": "your account, https://ACCOUNT.zendesk.com",
        "ZENDESK_EMAIL": "the address of the agent that the API token belongs to",
        "ZENDESK_API_TOKEN": "an API token, from Admin Center, Apps and integrations",
        NOTIFIES: (
            "yes or no: whether one of the account's triggers or automations mails the requester "
            "when a ticket is solved. Only its administrators know, so there is no default, and "
            "with a wrong one the customer gets two mails"
        ),
    },
    "github": {
        "GITHUB_REPOSITORY": "the repository whose issues are tickets, OWNER/NAME",
        "GITHUB_TOKEN": "a token that may write issues there",
    },
}
# What tells that a desk is meant. Either of GitHub's alone is often set for other programs.
_TELLING: Mapping[str, tuple[str, ...]] = {
    "zendesk": ("ZENDESK_URL",),
    "github": ("GITHUB_REPOSITORY", "GITHUB_TOKEN"),
}
_ANSWERS = {"yes": True, "no": False}


def desk_from(settings: Mapping[str, str]) -> TicketDesk | None:
    """Build the outside desk from settings as they stand in the environment; ``None``: built-in.

    ``SIGNOFF_DESK`` is ``builtin``, ``zendesk`` or ``github``; an empty setting counts as absent.
    Raises ``ChoiceInvalid``.
    """
    given = given_in(settings)
    chosen = _chosen(given)
    if chosen == BUILTIN_DESK:
        return None
    missing = [f"set {n} to {what}" for n, what in _NEEDED[chosen].items() if n not in given]
    if missing:
        raise ChoiceInvalid([f"the ticket desk is {chosen}, and something is missing", *missing])
    builders: Mapping[str, Callable[[Mapping[str, str]], TicketDesk]] = {
        "zendesk": _zendesk,
        "github": _github,
    }
    return built(builders[chosen], given)


def _chosen(given: Mapping[str, str]) -> str:
    named = given.get("SIGNOFF_DESK", "").lower()
    if named:
        if named != BUILTIN_DESK and named not in _NEEDED:
            raise ChoiceInvalid(["SIGNOFF_DESK must be builtin, zendesk or github"])
        return named
    present = [kind for kind, names in _TELLING.items() if all(n in given for n in names)]
    if len(present) > 1:
        settings = " and ".join(_TELLING[kind][0] for kind in present)
        choices = " or ".join(f"SIGNOFF_DESK={kind}" for kind in (*present, BUILTIN_DESK))
        raise ChoiceInvalid([f"{settings} are all set: choose with {choices}"])
    return present[0] if present else BUILTIN_DESK


def _zendesk(given: Mapping[str, str]) -> TicketDesk:
    notifies = _ANSWERS.get(given[NOTIFIES].lower())
    if notifies is None:
        raise ChoiceInvalid([f"{NOTIFIES} must be {_NEEDED['zendesk'][NOTIFIES]}"])
    settings = ZendeskSettings(
        url=given["ZENDESK_URL"],
        email=given["ZENDESK_EMAIL"],
        api_token=given["ZENDESK_API_TOKEN"],
        notifies_on_close=notifies,
        closing_tag=given.get("ZENDESK_CLOSING_TAG"),
    )
    return Zendesk(settings, longest_request_seconds=_bound(given, ZENDESK_LONGEST_REQUEST_SECONDS))


def _github(given: Mapping[str, str]) -> TicketDesk:
    owner, slash, name = given["GITHUB_REPOSITORY"].partition("/")
    if not slash:
        raise ChoiceInvalid(["GITHUB_REPOSITORY must read OWNER/NAME"])
    settings = GithubSettings(
        owner,
        name,
        token=given["GITHUB_TOKEN"],
        url=given.get("GITHUB_API_URL", GITHUB_API_URL),
    )
    return GithubIssues(
        settings,
        longest_request_seconds=_bound(given, GITHUB_LONGEST_REQUEST_SECONDS),
        lookup_lag_seconds=seconds(given, "SIGNOFF_GITHUB_LOOKUP_LAG_SECONDS", LOOKUP_LAG_SECONDS),
    )


def _bound(given: Mapping[str, str], default: float) -> float:
    return seconds(given, "SIGNOFF_DESK_LONGEST_REQUEST_SECONDS", default)

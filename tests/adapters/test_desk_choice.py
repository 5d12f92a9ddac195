"""The settings say which ticket desk is used, or what is missing and how to get it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from executor.adapters.choice import ChoiceInvalid
from executor.adapters.tickets.desk_choice import desk_from

ZENDESK = {
    "ZENDESK_URL": "https://acme.zendesk.com",
    "ZENDESK_EMAIL": "bot@acme.example",
    "ZENDESK_API_TOKEN": "zd-secret",
    "ZENDESK_NOTIFIES_ON_CLOSE": "no",
}
GITHUB = {"GITHUB_REPOSITORY": "acme/support", "GITHUB_TOKEN": "gh-secret"}


def _name(settings: Mapping[str, str]) -> str | None:
    desk = desk_from(settings)
    return None if desk is None else desk.name


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, None),
        (ZENDESK, "zendesk:acme"),
        (GITHUB, "github:acme/support"),
        ({**ZENDESK, **GITHUB, "SIGNOFF_DESK": "github"}, "github:acme/support"),
        ({**ZENDESK, **GITHUB, "SIGNOFF_DESK": "Zendesk"}, "zendesk:acme"),
        ({**ZENDESK, "SIGNOFF_DESK": "builtin"}, None),
        # Either of GitHub's is often there for another program.
        ({"GITHUB_TOKEN": "gh-secret"}, None),
        ({"GITHUB_REPOSITORY": "acme/support"}, None),
        ({**ZENDESK, "GITHUB_TOKEN": "gh-secret"}, "zendesk:acme"),
        ({"ZENDESK_URL": "  "}, None),
    ],
)
def test_the_desk_is_the_one_that_is_set_up(settings: dict[str, str], name: str | None) -> None:
    assert _name(settings) == name


@pytest.mark.parametrize(("word", "notifies"), [("yes", True), ("No", False)])
def test_zendesk_notifies_as_its_administrators_say(word: str, notifies: bool) -> None:
    desk = desk_from({**ZENDESK, "ZENDESK_NOTIFIES_ON_CLOSE": word})
    assert desk is not None
    assert desk.notifies_on_close is notifies


def test_how_long_github_may_keep_a_change_from_us_can_be_set() -> None:
    settings = {**GITHUB, "SIGNOFF_GITHUB_LOOKUP_LAG_SECONDS": "7"}
    lags = [desk.declaration.lookup_lag for desk in map(desk_from, (GITHUB, settings)) if desk]
    assert lags == [timedelta(seconds=60), timedelta(seconds=7)]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({**ZENDESK, **GITHUB}, ["SIGNOFF_DESK=zendesk", "SIGNOFF_DESK=github", "builtin"]),
        ({"SIGNOFF_DESK": "jira"}, ["SIGNOFF_DESK must be builtin, zendesk or github"]),
        (
            {"ZENDESK_URL": "https://acme.zendesk.com"},
            ["ZENDESK_EMAIL", "ZENDESK_API_TOKEN", "ZENDESK_NOTIFIES_ON_CLOSE", "two mails"],
        ),
        (
            {**ZENDESK, "ZENDESK_NOTIFIES_ON_CLOSE": "maybe"},
            ["ZENDESK_NOTIFIES_ON_CLOSE must be yes or no", "no default"],
        ),
        ({"SIGNOFF_DESK": "github"}, ["GITHUB_REPOSITORY", "GITHUB_TOKEN"]),
        ({**GITHUB, "GITHUB_REPOSITORY": "support"}, ["GITHUB_REPOSITORY", "OWNER/NAME"]),
        ({**ZENDESK, "ZENDESK_URL": "acme"}, ["ZENDESK_URL"]),
        ({**ZENDESK, "ZENDESK_CLOSING_TAG": "Not A Tag"}, ["closing tag"]),
        (
            {**ZENDESK, "SIGNOFF_DESK_LONGEST_REQUEST_SECONDS": "0"},
            ["SIGNOFF_DESK_LONGEST_REQUEST_SECONDS"],
        ),
        (
            {**GITHUB, "SIGNOFF_GITHUB_LOOKUP_LAG_SECONDS": "nan"},
            ["SIGNOFF_GITHUB_LOOKUP_LAG_SECONDS"],
        ),
    ],
)
def test_a_problem_names_the_setting_and_the_remedy_and_no_value(
    settings: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(ChoiceInvalid) as refused:
        desk_from(settings)
    for word in words:
        assert word in str(refused.value)
    assert "secret" not in str(refused.value)

"""The sections of rights in the policy file: what is wrong is named, the example can be used."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from bot.commands.failing import CANNOT_START
from bot.policy_example import policy_example
from executor.domain.policy import ApprovalSection, Policy, RuleSection
from tests.bot.test_policy_command import run

_BARE = """
[slack]
team = "T0123ABCD"
channel = "C0123ABCD"
[people]
requesters = "everyone"
approvers = ["U0123ABCD"]
[email]
from = "support@acme.example"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.toml"


def uncommented() -> str:
    """The example with all of its commented settings used."""
    return re.sub(r"(?m)^# (?=\[|[a-z_]+ = )", "", policy_example())


def test_every_commented_example_can_be_used_as_it_stands() -> None:
    source = uncommented()
    used = Policy.model_validate(tomllib.loads(source))
    plain = Policy.model_validate(tomllib.loads(policy_example()))
    assert [rule.name for rule in used.rules] == re.findall(
        r"(?m)^# name = \"(.+)\"", policy_example()
    )
    shown = {name for rule in used.rules for name in rule.model_fields_set}
    assert shown == set(RuleSection.model_fields), "an example of every setting of a rule"
    assert {c for rule in used.rules for c in rule.when} == {
        "outside_recipient",
        "first_contact",
        "external_link",
        "attachment",
    }
    for section in ("slack", "people", "approval", "email", "tickets", "run"):
        written = getattr(used, section)
        assert written.model_fields_set == set(type(written).model_fields), section
    assert (plain.rules, plain.roles, plain.people.operators) == ((), {}, ())


def test_what_is_not_written_is_decided_strictly() -> None:
    bare = Policy.model_validate(tomllib.loads(_BARE))
    plain = Policy.model_validate(tomllib.loads(policy_example()))
    assert bare.approval == plain.approval == ApprovalSection()
    assert (bare.approval.quorum, bare.rules, bare.tickets.when_mail_is_not_sent) == (1, (), "ask")
    assert "every effect needs a person's approval" in policy_example()


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('[[rules]]\nname = "a"\n[[rules]] # b\nname = "b"\nwhen = ["x"]', 5, "rules.when: "),
        ('[[rules]]\nname = "a"\n\n[[rules]]\nname = "a"', 5, "another rule is called 'a'"),
        ("[[rules]]\nquorum = 1", 1, 'rules.name: it is missing; give it a name, such as name = "'),
        ('[[rules]]\nname = "a"\nquorum = 0\nstep_up = true', 3, "leave out approvers and step_up"),
        (
            '[[rules]]\nname = "a"\ntools = ["reopen_ticket"]\nquorum = 0',
            4,
            "tickets.when_mail_is_not_sent says when nobody is asked",
        ),
        (
            '[[rules]]\nname = "a"\n[[rules]]\nname = "b"\napprovers = [\n  "boss",\n]',
            5,
            "'boss' cannot stand here; write Slack user ids",
        ),
        (
            '[[rules]]\nname = "a"\napprovers = []',
            3,
            'it is empty; write Slack user ids such as "U',
        ),
        ('[[rules]]\nname = "a"\napprovers = ["role:no"]', 3, "there is no section [roles.no]"),
        (
            '[[rules]]\nname = "a"\nquorum = 2\napprovers = ["U0123ABCD"]',
            3,
            "approvers names only 1; name more or lower the quorum",
        ),
        ('[[rules]]\nname = "a"\nlanguage_not_in = ["English"]', 3, "write language tags, such as"),
        ('[[rules]]\nname = "a"\namount_above = "much"', 3, "write a number, such as 100 or 99.95"),
        ('[[rules]]\nname = "a"\nchannel = "#risky"', 3, 'write the id of a channel, such as "C'),
        ('[[rules]]\nname = "a"\nquorom = 1', 3, "did you mean quorum?"),
        ('[[ruels]]\nname = "a"', 1, "there is no such setting here; did you mean rules?"),
        ('[rules]\nname = "a"', 1, "a section of its own that begins with [[rules]]"),
        ("[roles.approver]\nmembers = []", 1, "filled by section people; choose another name"),
        ("[roles]\neditor = {members = []}", 2, "filled by section people; choose another name"),
        ("[roles.Leads]\nmembers = []", 1, "its name in small letters"),
        ('[roles.leads]\nmembers = ["rene"]', 2, "'rene' cannot stand here; write Slack user ids"),
        ("[approval]\nescalate_after_seconds = 5", 2, "escalate_to together, or neither"),
        ('[approval]\nescalate_to = ["U0123ABCD"]', 2, "escalate_to together, or neither"),
        (
            "[approval]\ndecide_within_seconds = 60\nremind_after_seconds = [30, 60]",
            3,
            "decide_within_seconds is 60: write fewer seconds",
        ),
        (
            "[approval]\ndecide_within_seconds = 60\nescalate_after_seconds = 60\n"
            'escalate_to = ["U0123ABCD"]',
            3,
            "decide_within_seconds is 60: write fewer seconds",
        ),
        ("[approval]\nquorum = 2", 2, "people.approvers names only 1; name more approvers or"),
        ('[approval]\nwhen_time_is_over = "x"', 2, "'tell_agent' or 'stop_run'"),
    ],
)
def test_what_is_wrong_in_a_section_of_rights_is_named_with_line_and_remedy(
    file: Path, text: str, line: int, told: str
) -> None:
    file.write_text(f"{_BARE}{text}\n")
    said = run("check", str(file))
    assert said.exit_code == CANNOT_START
    [problem] = said.stderr.removeprefix("Error: ").splitlines()
    assert f"policy.toml:{_BARE.count(chr(10)) + line}: " in problem
    assert told in problem


@pytest.mark.parametrize(
    ("written", "instead", "where", "told"),
    [
        ('requesters = "everyone"', 'requesters = "all"', None, 'write "everyone", or a list of'),
        ('requesters = "everyone"', 'requesters = ["riko"]', None, "'riko' cannot stand here"),
        ('approvers = ["U0123ABCD"]', "approvers = []", None, "name at least one approver"),
        (
            'approvers = ["U0123ABCD"]',
            "editors = []",
            "[people]",
            "people.approvers: it is missing",
        ),
        ('requesters = "everyone"', 'agents = ["@bot"]\nrequesters = []', None, "ids of bots"),
        ('channel = "C0123ABCD"', 'channel = "#cards"', None, "at the bottom of its details"),
        ('team = "T0123ABCD"', 'team = "acme"', None, "write the id of the workspace"),
        (
            'from = "support@acme.example"',
            'own_domains = ["https://acme.example"]\nfrom = "a@b.example"',
            None,
            "is not the name of a domain",
        ),
    ],
)
def test_who_and_where_are_asked_for_by_id(
    file: Path, written: str, instead: str, where: str | None, told: str
) -> None:
    source = _BARE.replace(written, instead)
    file.write_text(source)
    said = run("check", str(file))
    assert said.exit_code == CANNOT_START
    [problem] = said.stderr.removeprefix("Error: ").splitlines()
    at = 1 + source.splitlines().index(where or instead.partition("\n")[0])
    assert f"policy.toml:{at}: " in problem
    assert told in problem

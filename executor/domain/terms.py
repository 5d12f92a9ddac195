"""The terms of an approval: whose consent one operation needs, for how long, and in what form.

They follow from the policy and the facts of the operation, and are stored with its approval. At the
opening the terms of the policy that is active then are made again from the same facts: votes have
to meet both. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from executor.domain.intent import CALL_TOOL, CLOSE_TICKET, RAISE_BUDGET, REOPEN_TICKET
from executor.domain.payloads import JsonObject
from executor.domain.policy import (
    APPROVER,
    BASE,
    OPERATOR,
    Policy,
    RuleSection,
    WhenTimeIsOver,
)
from executor.domain.risk import Risk, RiskFacts

BUDGET = "budget"
"""What a raise needs is called like its section."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """So many votes of these people; one vote may count for several requirements.

    ``of`` are user ids, ``group:…`` and ``role:…``; ``because`` are the risks that made the rule
    match, none where it always does.
    """

    rule: str
    quorum: int
    of: tuple[str, ...]
    because: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True)
class Terms:
    """What an approval takes; without requirements the policy itself consents.

    Times are seconds. ``channel`` is where the card goes, ``None``: to the policy's own.
    """

    requirements: tuple[Requirement, ...]
    decide_within: int
    use_within: int
    remind_after: tuple[int, ...] = ()
    escalate_after: int | None = None
    escalate_to: tuple[str, ...] = ()
    when_time_is_over: WhenTimeIsOver = WhenTimeIsOver.TELL_AGENT
    step_up: bool = False
    channel: str | None = None

    @property
    def quorum(self) -> int:
        """The most votes that one requirement asks for; 1 where the policy's own word counts."""
        return max((r.quorum for r in self.requirements), default=1)

    @property
    def asks_nobody(self) -> bool:
        """Whether the policy's own consent is enough."""
        return not self.requirements

    def under(self, policy: Policy, kind: str, facts: RiskFacts) -> Terms:
        """Join with the terms that this policy would make now: consent has to meet both."""
        now = terms_for(policy, kind, facts)
        both = dict.fromkeys((*self.requirements, *now.requirements))
        return replace(
            self,
            requirements=tuple(both),
            use_within=min(self.use_within, now.use_within),
            step_up=self.step_up or now.step_up,
        )

    def as_json(self) -> JsonObject:
        """Spell the terms as they are stored."""
        return {
            "quorum": self.quorum,
            "requirements": [
                {
                    "rule": r.rule,
                    "quorum": r.quorum,
                    "of": list(r.of),
                    "because": [risk.value for risk in r.because],
                }
                for r in self.requirements
            ],
            "decide_within": self.decide_within,
            "use_within": self.use_within,
            "remind_after": list(self.remind_after),
            "escalate_after": self.escalate_after,
            "escalate_to": list(self.escalate_to),
            "when_time_is_over": self.when_time_is_over.value,
            "step_up": self.step_up,
            "channel": self.channel,
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Terms:
        """Read stored terms."""
        return Terms(
            tuple(
                Requirement(
                    r["rule"], r["quorum"], tuple(r["of"]), tuple(Risk(b) for b in r["because"])
                )
                for r in stored["requirements"]
            ),
            stored["decide_within"],
            stored["use_within"],
            tuple(stored["remind_after"]),
            stored["escalate_after"],
            tuple(stored["escalate_to"]),
            WhenTimeIsOver(stored["when_time_is_over"]),
            stored["step_up"],
            stored["channel"],
        )


def terms_for(policy: Policy, kind: str, facts: RiskFacts, *, by_a_person: bool = False) -> Terms:
    """Say what consent an operation of this kind with these facts needs under this policy.

    What a person wrote needs at least what ``[approval]`` asks for: no rule lets it go by itself.
    Nor does one let a ticket be opened again: ``tickets.when_mail_is_not_sent`` alone says that.
    What a raise of a limit needs stands in ``[budget]`` alone.
    """
    base = policy.approval
    if kind == RAISE_BUDGET:
        return _terms_of_a_raise(policy)
    matching = [
        (rule, why) for rule in policy.rules if (why := why_matching(rule, kind, facts)) is not None
    ]
    asking = [(rule, why) for rule, why in matching if rule.quorum > 0]
    requirements: tuple[Requirement, ...] = ()
    if asking or not matching or by_a_person or kind == REOPEN_TICKET:
        requirements = (
            Requirement(BASE, base.quorum, (f"role:{APPROVER}",)),
            *(
                Requirement(rule.name, rule.quorum, rule.approvers or (f"role:{APPROVER}",), why)
                for rule, why in asking
            ),
        )
    rules = [rule for rule, _ in matching]
    decide = min([base.decide_within_seconds, *_set(r.decide_within_seconds for r in rules)])
    return Terms(
        requirements,
        decide,
        min([base.use_within_seconds, *_set(r.use_within_seconds for r in rules)]),
        tuple(sorted(s for s in set(base.remind_after_seconds) if s < decide)),
        base.escalate_after_seconds if (base.escalate_after_seconds or decide) < decide else None,
        base.escalate_to,
        base.when_time_is_over,
        bool(requirements) and (base.step_up or any(rule.step_up for rule in rules)),
        next((rule.channel for rule in rules if rule.channel is not None), None),
    )


def _terms_of_a_raise(policy: Policy) -> Terms:
    """Ask whom ``[budget]`` names, or whoever operates; where nobody does, the approvers."""
    base, budget = policy.approval, policy.budget
    usual = OPERATOR if policy.people.operators else APPROVER
    return Terms(
        (Requirement(BUDGET, budget.quorum, budget.approvers or (f"role:{usual}",)),),
        base.decide_within_seconds,
        base.use_within_seconds,
        tuple(sorted(set(base.remind_after_seconds))),
        base.escalate_after_seconds,
        base.escalate_to,
        step_up=base.step_up,
    )


def _set(values: Iterator[int | None]) -> list[int]:
    return [value for value in values if value is not None]


def why_matching(rule: RuleSection, kind: str, facts: RiskFacts) -> tuple[Risk, ...] | None:
    """Say which conditions of a rule hold, none where it has none; ``None``: it does not match."""
    if rule.tools and kind not in rule.tools:
        return None
    if rule.quorum == 0 and kind == CALL_TOOL and kind not in rule.tools:
        # A rule for everything was written with emails in mind; a tool can do anything.
        return None
    if rule.is_unconditional:
        return ()
    if kind != CLOSE_TICKET:
        return None
    primary = facts.language.split("-")[0].casefold()
    spoken = [tag.split("-")[0].casefold() for tag in rule.language_not_in or ()]
    held = {
        Risk.OUTSIDE_RECIPIENT: "outside_recipient" in rule.when and bool(facts.outside),
        Risk.FIRST_CONTACT: "first_contact" in rule.when and bool(facts.first_contacts),
        Risk.EXTERNAL_LINK: "external_link" in rule.when and bool(facts.links),
        Risk.ATTACHMENT: "attachment" in rule.when and facts.attachments > 0,
        Risk.AMOUNT: rule.amount_above is not None
        and facts.amount is not None
        and facts.amount > rule.amount_above,
        Risk.LONG_TEXT: rule.text_above is not None and facts.text_characters > rule.text_above,
        Risk.LANGUAGE: rule.language_not_in is not None and primary not in spoken,
    }
    return tuple(risk for risk, holds in held.items() if holds) or None

"""What the model is told by us: whom it works for, what it may do, and whose word counts.

Nothing that a customer, a colleague, a model or another system wrote goes into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from executor.domain.others_words import OTHERS_WORDS
from executor.domain.policy import Policy
from executor.domain.secret_text import HIDDEN


def instructions_for(policy: Policy, tools: Sequence[str]) -> str:
    """Write the instructions of a run under this policy, with the tools of these names."""
    return _template().render(
        organisation=policy.tenant.name or "this organisation",
        tools=tools,
        others_words=OTHERS_WORDS,
        hidden=HIDDEN,
    )


@cache
def _template() -> Template:
    """Return the template, which is read and compiled once in a process."""
    environment = Environment(
        loader=PackageLoader("templates", package_path="prompts"),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - it is plain text, and only settings go into it
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("agent.txt.j2")

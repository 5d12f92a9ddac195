"""What every adapter declares, and the operators' table that is made from it."""

from __future__ import annotations

from executor.adapters.mail import postmark, resend, smtp
from executor.adapters.tickets import github_issues, zendesk
from executor.domain.declaration import Declaration
from executor.engine.desk import BUILT_IN
from executor.engine.promises import tell
from executor.engine.tool_port import declared

DECLARATIONS: tuple[Declaration, ...] = (
    resend.DECLARED,
    postmark.DECLARED,
    smtp.DECLARED,
    BUILT_IN,
    zendesk.DECLARED,
    github_issues.DECLARED,
    declared("of tools"),
)

_HEAD = ("provider", "capability", "window or lag", "an unknown is", "promised", "not promised")


def table() -> str:
    """Write the table in Markdown, with its declarations' own words."""
    lines = [_row(*_HEAD), "|" + "---|" * len(_HEAD)]
    for declaration in DECLARATIONS:
        told = tell(declaration)
        lines.append(
            _row(
                declaration.name,
                f"`{declaration.capability.value}`",
                told.limit,
                told.unknown,
                told.promised,
                told.not_promised,
            )
        )
    return "\n".join(lines)


def _row(*cells: str) -> str:
    assert not any("|" in cell or "\n" in cell for cell in cells)
    return f"| {' | '.join(cells)} |"

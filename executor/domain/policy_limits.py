"""What bounds one run, and what bounds all runs of a workspace together."""

from __future__ import annotations

from pydantic import Field

from executor.domain.policy_section import Section


class RunSection(Section):
    """The bounds of one run; every run ends in a sentence that a person can read.

    ``max_tokens`` counts what models read and write in the whole run. ``max_parked_seconds`` is how
    long it may wait in a row, for decisions or for money. ``max_questions`` is how often people may
    ask the agent about one operation.
    """

    max_steps: int = Field(default=60, ge=1, le=10_000)
    max_seconds: int = Field(default=604_800, ge=1, le=31_536_000)
    max_parked_seconds: int = Field(default=259_200, ge=1, le=31_536_000)
    max_tokens: int = Field(default=2_000_000, ge=1, le=1_000_000_000)
    max_rejections_in_a_row: int = Field(default=3, ge=1, le=100)
    max_identical_proposals: int = Field(default=3, ge=2, le=100)
    max_tool_errors_in_a_row: int = Field(default=5, ge=1, le=100)
    max_output_tokens: int = Field(default=4_096, ge=1, le=1_000_000)
    max_questions: int = Field(default=5, ge=0, le=100)


class AdmissionSection(Section):
    """How many runs a workspace may have at work, and how many may wait for a place.

    What waits for a decision or for money takes no place.
    """

    max_active_runs: int = Field(default=20, ge=1, le=10_000)
    max_queued_runs: int = Field(default=1_000, ge=1, le=1_000_000)

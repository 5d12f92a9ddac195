"""Policies as files, and what a file with something written into it comes to."""

from __future__ import annotations

from pathlib import Path

from executor.config import load_policy
from executor.domain.policy import Policy

SANDBOX = """
[slack]
team = "TSIGNOFF"
channel = "C0APPROVALS"
[tenant]
name = "Acme Support"
timezone = "Europe/Amsterdam"
[people]
requesters = "everyone"
approvers = ["U0REVIEWER", "U0SECOND"]
[email]
from = "Acme Support <support@acme.example>"
"""
"""For a process that works the sandbox's workspace."""

SMALLEST = """[slack]
team = "T0TEAM1"
channel = "C0APPROVALS"
[people]
requesters = ["U0REQUESTER"]
approvers = ["U0REVIEWER"]
[email]
from = "Acme Support <support@acme.example>"
"""
"""What no policy can do without."""

FIRST_FREE_LINE = SMALLEST.count("\n") + 1


def load_with(tmp_path: Path, written: str) -> Policy:
    """Load the smallest policy with more written below it; raises ``PolicyInvalid``."""
    file = tmp_path / "policy.toml"
    file.write_text(SMALLEST + written)
    return load_policy(file)

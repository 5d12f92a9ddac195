"""The commented policy file: one source for the README, ``signoff policy example`` and the demo."""

from __future__ import annotations

from importlib import resources


def policy_example() -> str:
    """Return the example as TOML."""
    return (resources.files("templates") / "policy.toml").read_text(encoding="utf-8")

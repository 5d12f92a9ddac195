"""Limits, prices and costs as a policy file writes them, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.config import PolicyInvalid
from tests.support.policy_file import FIRST_FREE_LINE, load_with


@pytest.mark.parametrize(
    ("written", "line", "told"),
    [
        ("[budget]\nwarn_at_percent = 120", 1, "write a whole number, 1 to 100"),
        ("[budget]\nquorum = 0", 1, "write a whole number, 1 to 20"),
        ('[budget]\napprovers = ["mia"]', 1, '"role:leads"'),
        ('[budget]\n"email.send" = 400', 1, "there is no such setting here"),
        ('[costs]\n"ticket.note" = 1\n"email.send" = 0.0004', 2, "write whole micro-dollars"),
        ('[costs]\n"email.sent" = 4', 1, "write whole micro-dollars"),
        ('[prices]\n"m" = 0.3', 1, "begin each model with its name in quotes"),
        ('[prices."m"]\ninput_usd_per_million = -1', 1, "write dollars, such as 0.10"),
        ("[admission]\nmax_active_runs = 0", 1, "write a whole number, at least 1"),
        ('[servers.billing]\ncommand = "x"', 1, 'write a list, such as ["billing-mcp"'),
        ('[servers.billing]\ncommand = ["x"]\ntimeout_seconds = "1m"', 2, "1 to 3600"),
        ('[servers.billing]\ncommand = ["x"]\nreads = "x"', 2, "write a list of names of tools"),
        ('[servers.billing]\ncommand = ["x"]\nrequesters = ["mia"]', 2, '"role:leads"'),
        ('[[rules]]\nname = "a"\ntools = ["refund"]', 2, '"call_tool"'),
    ],
)
def test_a_mistake_is_answered_with_its_line_and_what_to_write(
    tmp_path: Path, written: str, line: int, told: str
) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        load_with(tmp_path, written)
    assert told in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path}/policy.toml:{FIRST_FREE_LINE + line}:")


def test_a_models_name_may_hold_what_toml_quotes(tmp_path: Path) -> None:
    priced = "input_usd_per_million = 1\noutput_usd_per_million = 2\n"
    quoted = f'[prices."gpt-4.1"]\n{priced}[prices."openai:org/m"]\n'
    assert list(load_with(tmp_path, quoted + priced).prices) == ["gpt-4.1", "openai:org/m"]
    line = FIRST_FREE_LINE + 4
    with pytest.raises(PolicyInvalid, match=rf"policy.toml:{line}: prices.openai:org/m"):
        load_with(tmp_path, f"{quoted}x = 1\n")

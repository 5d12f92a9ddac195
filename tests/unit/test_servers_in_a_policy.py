"""Servers of tools as a policy file names them, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from executor.config import PolicyInvalid
from tests.support.policy_file import load_with


def test_a_server_is_a_command_or_a_url(tmp_path: Path) -> None:
    load_with(tmp_path, '[servers.billing]\ncommand = ["billing-mcp"]\nreads = ["find"]')
    load_with(tmp_path, '[servers.billing_2]\nurl = "https://a.example/mcp"\ntoken_from = "TOKEN"')


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ("[servers.billing]", "write command or url"),
        ('[servers.billing]\nurl = "https://me:secret@a.example/"', "a url takes no user"),
        ('[servers.billing]\nurl = "a.example"', 'begins with "https://"'),
        ('[servers.Billing]\ncommand = ["x"]', "[servers.billing]"),
        ('[servers.a__b]\ncommand = ["x"]', "[servers.billing]"),
        ('[servers.billing]\ncommand = ["x"]\ntoken_from = "TOKEN"', "only a url"),
        ('[servers.billing]\ncommand = ["x"]\nenvironment = ["key=1"]', "names of variables"),
        ('[servers.billing]\ncommand = ["x"]\ntools = ["a"]\nreads = ["b"]', "b stands in reads"),
        ('[servers.billing]\ncommand = ["x"]\ntools = ["a"]\ncosts = {b = 1}', "b stands in costs"),
        ('[servers.billing]\ncommand = ["x"]\nrequesters = ["role:none"]', "[roles.none]"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(tmp_path: Path, servers: str, told: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        load_with(tmp_path, servers)
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)

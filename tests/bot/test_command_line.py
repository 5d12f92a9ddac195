"""What people type is understood as they meant it, whatever their client made of it."""

from __future__ import annotations

import pytest
from hypothesis import given

from bot.listeners.command_line import (
    CancelRun,
    Command,
    Incomplete,
    NoSuchOperation,
    NoSuchRun,
    ShowHelp,
    ShowPending,
    ShowStatus,
    StartRun,
    UnknownWord,
    parse_command,
)
from tests.support.hostile import texts


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("run close 4101", StartRun("close 4101")),
        ("start close 4101", StartRun("close 4101")),
        ("  RUN\u00a0 close \t 4101 ", StartRun("close 4101")),
        ("run “close 4101”", StartRun("close 4101")),
        ("run tell them “sorry” first", StartRun("tell them “sorry” first")),
        ("run <@U0REVIEWER> & co", StartRun("<@U0REVIEWER> & co")),
        ("run 'one' and 'two'", StartRun("'one' and 'two'")),
        ("run", Incomplete("start")),
        ('run ""', Incomplete("start")),
        ("cancel run_7", CancelRun(7)),
        ("cancel\u00a0run_7", CancelRun(7)),
        ("cancel “run_7”", CancelRun(7)),
        (" cancel  run_7 ", CancelRun(7)),
        ("“cancel run_7”", CancelRun(7)),
        ("Cancel 'RUN-7'.", CancelRun(7)),
        ("cancel 70", CancelRun(70)),
        ("cancel", Incomplete("cancel")),
        ("cancel run_7 run_8", NoSuchRun()),
        ("cancel seven", NoSuchRun()),
        ("cancel run_" + "9" * 19, NoSuchRun()),
        ("cancel run_" + "9" * 5_000, NoSuchRun()),
        ("status", ShowStatus(None)),
        ("status run_7", ShowStatus(7)),
        ("status x", NoSuchRun()),
        ("pending", ShowPending(None)),
        (" Pending  op_12 ", ShowPending(12)),
        ("pending “OP-12”", ShowPending(12)),
        ("pending 12", ShowPending(12)),
        ("pending run_12", NoSuchOperation()),
        ("pending op_" + "9" * 19, NoSuchOperation()),
        ("pending twelve", NoSuchOperation()),
        ("help", ShowHelp()),
        ("", ShowHelp()),
        ("\u200b\ufeff", ShowHelp()),
        ("?", ShowHelp()),
        ("cancle run_7", UnknownWord("cancle")),
        ("approve P1", UnknownWord("approve")),
    ],
)
def test_b078_a_command_is_read_as_it_was_meant(text: str, command: Command) -> None:
    assert parse_command(text) == command


@given(texts)
def test_every_text_is_some_command(text: str) -> None:
    parse_command(text)

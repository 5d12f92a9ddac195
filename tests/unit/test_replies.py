"""Every reason has a sentence, and no sentence can be made to mean something else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import command_replies, replies, vote_replies
from bot.mrkdwn import escape_mrkdwn, mention
from bot.reason_text import sentence
from bot.state_text import operation_state, run_state
from executor.domain.approval import Vote
from executor.domain.ids import PrincipalId
from executor.domain.operation import OperationStatus
from executor.domain.run import RunStatus
from executor.domain.transition import Reason
from tests.support.hostile import texts
from tests.support.records import U_APP

JARGON = re.compile(
    r"\b(epoch|lease|digest|quorum|principal|payload|token|exception|null|none|api|sql)\b", re.I
)
MARKUP = re.compile(r"<(?!@[UW][A-Z0-9_]+>)|[*~]|:[a-z_]+:")


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_is_a_sentence_without_jargon(reason: Reason) -> None:
    said = sentence(reason, {})
    assert said.endswith(".")
    assert said[0].isupper()
    assert not JARGON.search(said)
    assert reason.value not in said or "_" not in reason.value
    assert len(said) <= 200


def test_no_two_reasons_are_told_alike() -> None:
    said = [sentence(reason, {}) for reason in Reason]
    assert len(set(said)) == len(said)


details = st.dictionaries(
    st.sampled_from(["by", "missing", "is", "run", "operation", "x"]),
    st.one_of(texts, st.integers(), st.none(), st.booleans(), st.lists(texts, max_size=2)),
)


@given(st.sampled_from(list(Reason)), details.filter(lambda d: "by" not in d))
def test_no_detail_brings_words_of_its_own(reason: Reason, detail: dict[str, object]) -> None:
    said = sentence(reason, detail)  # type: ignore[arg-type]
    assert not MARKUP.search(said.replace("`/signoff status`", ""))
    assert said.isascii()


@given(texts)
def test_a_principal_of_any_spelling_cannot_mention_or_link(name: str) -> None:
    said = mention(PrincipalId(name))
    assert "<" not in said or re.fullmatch(r"<@[UW][A-Z0-9_]+>", said)


def test_escaping_touches_three_characters_and_no_others() -> None:
    assert escape_mrkdwn("a & b < c > d &amp; *e* 'f'") == (
        "a &amp; b &lt; c &gt; d &amp;amp; *e* 'f'"
    )


def test_sentences_name_who_and_what_they_know() -> None:
    by = {"by": U_APP}
    assert "already approved by <@U_APP>" in sentence(Reason.ALREADY_GRANTED, by)
    assert "cancelled by <@U_APP>" in sentence(Reason.CANCELLED, by)
    assert "You may not decide here" in sentence(Reason.NOT_PERMITTED, {"missing": "approve"})
    assert "guests may not" in sentence(Reason.IDENTITY_REFUSED, {"is": "guest"})
    assert sentence(Reason.CONFLICTS_WITH, {"operation": 3}).startswith("op_3 ")
    stopped = sentence(Reason.EXPIRED, {"stops_run": True})
    assert stopped.endswith("and the run was stopped with it.")
    assert sentence(Reason.ALREADY_STARTED, {"run": 7}).startswith("run_7 ")


def test_a_vote_is_confirmed_with_what_is_still_missing() -> None:
    assert vote_replies.recorded(Vote.APPROVE, 12, still_needed=0).startswith(
        "Recorded: you approved op_12."
    )
    assert "1 more approval." in vote_replies.recorded(Vote.APPROVE, 12, still_needed=1)
    assert "2 more approvals." in vote_replies.recorded(Vote.APPROVE, 12, still_needed=2)
    assert "Nothing will be sent" in vote_replies.recorded(Vote.REJECT, 12, still_needed=0)
    assert vote_replies.already_decided(Vote.REJECT, 12, U_APP) == (
        "op_12 was already rejected by <@U_APP>."
    )


def test_what_was_not_recorded_is_never_called_recorded() -> None:
    assert replies.database_away().startswith("Nothing was recorded")
    assert replies.outdated_card().startswith("Nothing was recorded")
    assert replies.not_confirmed().startswith("Not confirmed")


@given(texts)
def test_an_unknown_command_is_not_repeated(word: str) -> None:
    said = command_replies.unknown_command(word)
    assert said in {
        command_replies.unknown_command(known) for known in (*command_replies.COMMANDS, "")
    }


def test_a_slip_of_the_keyboard_gets_the_nearest_command() -> None:
    assert "`/signoff status`?" in command_replies.unknown_command("stauts")
    assert "`/signoff cancel`?" in command_replies.unknown_command("CANCLE")
    assert command_replies.help_text() in command_replies.unknown_command("xyzzy")


def test_commands_are_answered_with_the_number_of_the_run() -> None:
    assert command_replies.started(7).startswith("Started run_7.")
    assert command_replies.cancelled(7).startswith("Cancelled run_7.")
    assert "already being sent" in command_replies.cancelled_too_late(7)
    assert "no such run" in command_replies.run_unknown()
    assert "`/signoff start`" in command_replies.no_runs()
    assert command_replies.status_line(7, RunStatus.WAITING, [12, 13]) == (
        "run_7: waiting; waits for a decision on op_12, op_13."
    )
    assert command_replies.status_line(8, RunStatus.QUEUED, at_work=20) == (
        "run_8: waiting for a place: 20 runs of this workspace are at work."
    )
    assert run_state(RunStatus.QUEUED, 1) == (
        "waiting for a place: 1 run of this workspace is at work"
    )


def test_a_full_queue_is_told_with_its_length_and_what_to_do() -> None:
    said = sentence(Reason.QUEUE_FULL, {"queued": 12, "limit": 12})
    assert "Nothing was started" in said
    assert "full with 12 runs" in said
    assert "`/signoff status`" in said


def test_no_two_states_are_told_alike() -> None:
    runs = [run_state(status) for status in RunStatus]
    operations = [operation_state(status) for status in OperationStatus]
    assert len(set(runs)) == len(RunStatus)
    assert len(set(operations)) == len(OperationStatus)

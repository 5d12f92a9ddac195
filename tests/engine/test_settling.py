"""A person's word settles what no machine can, on the attempt that the person was shown."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from executor.adapters.host_clock import mint_id
from executor.domain.effect import EffectKind
from executor.domain.ids import AttemptId, OperationId, PrincipalId, operator_principal
from executor.domain.transition import NoChange, Reason, Refused
from executor.engine.card_record import OperationRecord
from executor.engine.claims import ClaimedOperation
from executor.engine.click import NotConfirmed
from executor.engine.endings import Stopped, expire
from executor.engine.opening import NotOpened, Opened
from executor.engine.presenting import operation_record
from executor.engine.settling import read_back, settle
from executor.engine.word import Given, MayBeGiven, Said, Word, WordResult
from tests.support.fake_mail import applied, not_applied, unknown
from tests.support.office import CHANNEL, OTTO, RENE, RIKO, SAM, TENANT, Office

OLGA = operator_principal("Olga")


def _word(
    operation: OperationId,
    attempt: AttemptId,
    said: Said,
    who: PrincipalId = RENE,
    note: str = "",
) -> Word:
    return Word(
        TENANT,
        operation,
        attempt,
        said,
        who,
        note,
        CHANNEL,
        f"ts-{operation}",
        hashlib.sha256(mint_id().bytes).digest(),
        who.rsplit(":", 1)[-1],
    )


def _by_operator(word: Word) -> Word:
    return replace(word, principal=OLGA, request_hash=None, channel="", user_id="")


async def _in_doubt(office: Office) -> tuple[ClaimedOperation, Opened]:
    claimed, opened = await office.opened()
    assert await office.report(claimed, opened, unknown()) == "unknown"
    return claimed, opened


async def _say(
    office: Office, opened: Opened, said: Said, who: PrincipalId = RENE, note: str = ""
) -> WordResult:
    word = _word(opened.effect.operation_id, opened.attempt.id, said, who, note)
    [result] = await settle(office.engine, [word])
    return result


def _reason(result: WordResult) -> Reason:
    assert isinstance(result, Refused), result
    return result.reason


async def _record(office: Office, operation: OperationId) -> OperationRecord:
    record = await operation_record(office.engine, TENANT, operation)
    assert isinstance(record, OperationRecord)
    return record


async def _attempts(office: Office) -> list[str]:
    return [s for (s,) in await office.rows("SELECT status FROM attempts ORDER BY number")]


async def _approvals(office: Office) -> list[str]:
    return [s for (s,) in await office.rows("SELECT status FROM approvals ORDER BY opened_at")]


@pytest.mark.parametrize(
    ("said", "operation", "attempt", "reason"),
    [
        (Said.SENT, "succeeded", "applied", "outcome_lost"),
        (Said.NOT_SENT, "partial", "not_applied", "said_not_sent"),
        (Said.SEND_AGAIN, "executing", "not_applied", "outcome_lost"),
        (Said.LEAVE, "unknown", "unknown", "outcome_lost"),
    ],
)
async def test_a_word_does_what_it_says_and_is_journaled(
    office: Office, said: Said, operation: str, attempt: str, reason: str
) -> None:
    claimed, opened = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    result = await _say(office, opened, said, note="I called Pat.")
    assert result == Given(said, (await _record(office, id_)).status, EffectKind.EMAIL_SEND)
    assert (await office.status(id_), await office.reason(id_)) == (operation, reason)
    assert await _attempts(office) == [attempt]
    events = await office.rows(
        "SELECT actor, detail ->> 'said', detail ->> 'note' FROM journal WHERE event = 'word_given'"
    )
    assert events == [(RENE, said.value, "I called Pat.")]
    [word] = (await _record(office, id_)).words
    assert (word.by, word.said, word.note) == (RENE, said, "I called Pat.")
    if said is not Said.LEAVE:
        evidence = await office.rows(
            "SELECT evidence ->> 'said_by', evidence ->> 'said', evidence ->> 'phase' FROM attempts"
        )
        assert evidence == [(RENE, said.value, "content")]
    told = await office.rows("SELECT user_id, answer ->> 'said' FROM notices ORDER BY id DESC")
    assert told[0] == ("U0REVIEWER", said.value)


@pytest.mark.parametrize("said", list(Said))
async def test_what_is_not_in_doubt_is_not_settled(office: Office, said: Said) -> None:
    claimed, opened = await office.opened()
    assert _reason(await _say(office, opened, said)) is Reason.ALREADY_SENDING
    await office.report(claimed, opened, applied())
    assert _reason(await _say(office, opened, said)) is Reason.ALREADY_ENDED
    assert await _attempts(office) == ["applied"]


@pytest.mark.parametrize("first", [Said.SENT, Said.NOT_SENT, Said.SEND_AGAIN])
async def test_of_two_people_at_once_the_first_word_counts(office: Office, first: Said) -> None:
    claimed, opened = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    results = await settle(
        office.engine,
        [
            _word(id_, opened.attempt.id, first, RENE),
            _word(id_, opened.attempt.id, Said.NOT_SENT, SAM),
        ],
    )
    assert isinstance(results[0], Given)
    wanted = Reason.ALREADY_SENDING if first is Said.SEND_AGAIN else Reason.ALREADY_ENDED
    assert _reason(results[1]) is wanted


@pytest.mark.parametrize("said", list(Said))
async def test_a_word_about_an_earlier_attempt_is_refused(office: Office, said: Said) -> None:
    claimed, first = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    await _say(office, first, Said.SEND_AGAIN)
    again = await office.claim_operation(id_, "w2")
    second = await office.open_one(again)
    assert isinstance(second, Opened)
    await office.report(again, second, unknown())
    assert _reason(await _say(office, first, said, SAM)) is Reason.ATTEMPT_CHANGED
    assert await _attempts(office) == ["not_applied", "unknown"]
    assert isinstance(await _say(office, second, said, SAM), Given)


async def test_a_signed_request_is_heard_once(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    word = _word(claimed.claim.key[1], opened.attempt.id, Said.LEAVE)
    again = replace(word, said=Said.SENT)
    results = await settle(office.engine, [word, again])
    assert results[1] == NoChange()
    assert await settle(office.engine, [again]) == [NoChange()]
    assert await office.status(word.operation_id) == "unknown"
    assert len(await office.rows("SELECT 1 FROM notices WHERE answer ? 'said'")) == 1


@pytest.mark.parametrize("said", list(Said))
async def test_an_outsider_settles_nothing_and_is_on_record(office: Office, said: Said) -> None:
    claimed, opened = await _in_doubt(office)
    assert _reason(await _say(office, opened, said, OTTO)) is Reason.NOT_PERMITTED
    assert await office.status(claimed.claim.key[1]) == "unknown"
    refused = await office.rows(
        "SELECT actor, detail ->> 'reason' FROM journal WHERE event = 'word_refused'"
    )
    assert refused == [(OTTO, "not_permitted")]


@pytest.mark.parametrize("said", list(Said))
async def test_nobody_settles_on_an_old_look_at_them(office: Office, said: Said) -> None:
    _, opened = await _in_doubt(office)
    await office.later_unseen(seconds=61)
    assert _reason(await _say(office, opened, said)) is Reason.IDENTITY_UNKNOWN
    await office.look_at(RENE)
    assert isinstance(await _say(office, opened, said), Given)


async def test_the_requester_may_say_what_happened_but_not_send_again(office: Office) -> None:
    _, opened = await _in_doubt(office)
    assert _reason(await _say(office, opened, Said.SEND_AGAIN, RIKO)) is Reason.OWN_REQUEST
    assert isinstance(await _say(office, opened, Said.NOT_SENT, RIKO), Given)


async def test_sending_again_is_an_approval_of_its_own_that_the_repeat_consumes(
    office: Office,
) -> None:
    claimed, first = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    await office.later(hours=2)
    await _say(office, first, Said.SEND_AGAIN, SAM)
    assert await _approvals(office) == ["consumed", "granted"]
    [(who, same)] = await office.rows(
        "SELECT d.principal, d.digest = o.digest FROM approvals a "
        "JOIN decisions d ON d.approval_id = a.id JOIN operations o ON o.id = a.operation_id "
        "WHERE a.status = 'granted'"
    )
    assert (who, same) == (SAM, True)
    again = await office.claim_operation(id_, "w2")
    second = await office.open_one(again)
    assert isinstance(second, Opened)
    assert (second.attempt.number, second.effect.payload) == (2, first.effect.payload)
    assert await _approvals(office) == ["consumed", "consumed"]
    assert await office.report(again, second, applied()) == "succeeded"
    assert await _attempts(office) == ["not_applied", "applied"]


async def test_a_repeat_whose_checks_fail_is_not_opened_and_its_approval_is_void(
    office: Office,
) -> None:
    claimed, first = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    await _say(office, first, Said.SEND_AGAIN)
    await office.customer_writes()
    assert isinstance(await office.open_one(await office.claim_operation(id_, "w2")), NotOpened)
    assert (await office.status(id_), await office.reason(id_)) == ("partial", "version_changed")
    assert await _approvals(office) == ["consumed", "void"]
    assert await _attempts(office) == ["not_applied"]


async def test_a_repeat_that_comes_too_late_is_not_opened(office: Office) -> None:
    claimed, first = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    await _say(office, first, Said.SEND_AGAIN)
    await office.later(hours=2)
    assert isinstance(await office.open_one(await office.claim_operation(id_, "w2")), NotOpened)
    assert (await office.status(id_), await _attempts(office)) == ("partial", ["not_applied"])


async def test_an_approval_of_a_repeat_that_proof_overtook_expires(office: Office) -> None:
    claimed, first = await _in_doubt(office)
    await _say(office, first, Said.SEND_AGAIN)
    assert await office.report(claimed, first, applied()) == "succeeded"
    await office.later(hours=2)
    assert await expire(office.engine, [claimed.claim.key]) == 1
    assert await _approvals(office) == ["consumed", "expired"]
    assert await expire(office.engine, [claimed.claim.key]) == 0


async def test_a_person_who_asks_for_the_form_has_said_nothing_yet(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    before = await office.rows("SELECT wanted_revision FROM cards")
    for said in Said:
        asks = replace(
            _word(claimed.claim.key[1], opened.attempt.id, said, note="x"), only_asks=True
        )
        assert await settle(office.engine, [asks]) == [MayBeGiven()]
    assert await office.status(claimed.claim.key[1]) == "unknown"
    assert await office.rows("SELECT 1 FROM journal WHERE event = 'word_given'") == []
    assert await office.rows("SELECT 1 FROM notices WHERE answer ? 'said'") == []
    assert await _approvals(office) == ["consumed"]
    assert await office.rows("SELECT wanted_revision FROM cards") == before
    stranger = replace(
        _word(claimed.claim.key[1], opened.attempt.id, Said.SENT, OTTO), only_asks=True
    )
    assert _reason((await settle(office.engine, [stranger]))[0]) is Reason.NOT_PERMITTED
    assert len(await office.rows("SELECT 1 FROM journal WHERE event = 'word_refused'")) == 1


async def test_sending_again_is_offered_and_heard_only_while_a_repeat_could_open(
    office: Office,
) -> None:
    claimed, opened = await _in_doubt(office)
    doubt = (await _record(office, claimed.claim.key[1])).doubt
    assert doubt is not None
    assert (doubt.attempt_id, doubt.may_send_again) == (opened.attempt.id, True)
    await office.customer_writes()
    assert await _may_send_again(office, opened) is False
    assert _reason(await _say(office, opened, Said.SEND_AGAIN)) is Reason.VERSION_CHANGED
    assert isinstance(await _say(office, opened, Said.SENT), Given)


async def test_after_a_cancel_nothing_is_sent_again_but_the_truth_can_be_told(
    office: Office,
) -> None:
    claimed, opened = await _in_doubt(office)
    stopped = await office.cancel(await office.run_of(claimed.claim.key[1]))
    assert isinstance(stopped, Stopped)
    assert await _may_send_again(office, opened) is False
    assert _reason(await _say(office, opened, Said.SEND_AGAIN)) is Reason.CANCELLED
    assert isinstance(await _say(office, opened, Said.NOT_SENT), Given)


async def _may_send_again(office: Office, opened: Opened) -> bool:
    doubt = (await _record(office, opened.effect.operation_id)).doubt
    assert doubt is not None
    return doubt.may_send_again


async def test_proof_that_comes_later_contradicts_the_word_and_wins(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    await _say(office, opened, Said.NOT_SENT)
    assert await office.status(id_) == "partial"
    assert await office.report(claimed, opened, applied()) == "succeeded"
    [attempt] = (await _record(office, id_)).effects[1].attempts
    assert (attempt.evidence["said_by"], attempt.evidence["said"]) == (RENE, "not_sent")
    assert (attempt.status.value, attempt.evidence["code"]) == ("applied", 250)


async def test_a_word_that_it_was_sent_is_final(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    await _say(office, opened, Said.SENT)
    assert await office.report(claimed, opened, not_applied(retryable=True)) == "succeeded"


async def test_whoever_settles_wakes_the_run_that_waited(office: Office) -> None:
    _, opened = await _in_doubt(office)
    await _say(office, opened, Said.SENT)
    assert await office.rows("SELECT wake_pending, ended_at IS NULL FROM operations") == [
        (True, False)
    ]


async def test_an_operator_says_what_happened_but_approves_nothing(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    id_ = claimed.claim.key[1]
    again = _by_operator(_word(id_, opened.attempt.id, Said.SEND_AGAIN))
    left = _by_operator(_word(id_, opened.attempt.id, Said.LEAVE, note="Asked the host."))
    sent = _by_operator(_word(id_, opened.attempt.id, Said.SENT))
    results = await settle(office.engine, [again, left, sent])
    assert _reason(results[0]) is Reason.NOT_PERMITTED
    assert [type(r) for r in results[1:]] == [Given, Given]
    assert [w.by for w in (await _record(office, id_)).words] == [OLGA, OLGA]


async def test_a_signed_request_cannot_pass_for_an_operator(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    word = _word(claimed.claim.key[1], opened.attempt.id, Said.SENT, OLGA)
    [result] = await settle(office.engine, [word])
    assert _reason(result) is Reason.NOT_PERMITTED


async def test_a_word_about_nothing_is_refused(office: Office) -> None:
    _, opened = await _in_doubt(office)
    nowhere = _word(OperationId(mint_id()), opened.attempt.id, Said.SENT)
    [result] = await settle(office.engine, [nowhere])
    assert _reason(result) is Reason.CONTENT_CHANGED


async def test_reading_back_tells_only_of_the_own_request(office: Office) -> None:
    claimed, opened = await _in_doubt(office)
    word = _word(claimed.claim.key[1], opened.attempt.id, Said.SENT)
    assert await read_back(office.engine, word) == NotConfirmed()
    [given] = await settle(office.engine, [word])
    assert await read_back(office.engine, word) == given
    another = _word(claimed.claim.key[1], opened.attempt.id, Said.SENT, SAM)
    assert await read_back(office.engine, another) == NotConfirmed()

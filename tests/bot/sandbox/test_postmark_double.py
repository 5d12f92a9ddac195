from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.postmark_double import KEPT_SECONDS, TEST_TOKEN, PostmarkDouble
from bot.sandbox.provider_faults import Fault, PlannedFault

MAIL: dict[str, Any] = {
    "From": "Acme <help@acme.example>",
    "To": '"Neil, Pat" <pat@x.example>, sam@x.example',
    "Subject": "Closed",
    "TextBody": "We closed it.",
    "Metadata": {"signoff_effect": "abc"},
}


async def call(
    double: PostmarkDouble,
    method: str,
    path: str,
    *,
    json: object = None,
    params: Mapping[str, str] | None = None,
    token: str = "sandbox-token",
) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.request(
            method,
            double.url + path,
            json=json,
            params=params,
            headers={"X-Postmark-Server-Token": token},
        )


async def post(double: PostmarkDouble, mail: object = MAIL, **more: Any) -> httpx2.Response:
    return await call(double, "POST", "/email", json=mail, **more)


async def found(double: PostmarkDouble, **query: str) -> int:
    params = {"count": "50", "offset": "0", **query}
    answer = await call(double, "GET", "/messages/outbound", params=params)
    assert answer.status_code == 200
    return int(answer.json()["TotalCount"])


async def test_whatever_is_sent_twice_is_delivered_twice() -> None:
    async with PostmarkDouble() as double:
        answer = (await post(double)).json()
        await post(double)
        assert (answer["ErrorCode"], answer["Message"]) == (0, "OK")
        assert answer["MessageID"] == double.mails[0].provider_id
        assert double.accepted == 2
        assert double.accepted_mails.by_recipient == {"pat@x.example": 2, "sam@x.example": 2}


async def test_a_search_sees_a_mail_after_the_lag_and_for_45_days() -> None:
    clock = VirtualClock()
    async with PostmarkDouble(search_lag_seconds=60, clock=clock) as double:
        await post(double)
        clock.advance(59)
        assert await found(double, metadata_signoff_effect="abc") == 0
        clock.advance(1)
        assert await found(double, metadata_signoff_effect="abc") == 1
        assert await found(double, metadata_signoff_effect="other") == 0
        assert await found(double, metadata_signoff_effect="abc", messagestream="bulk") == 0
        assert await found(double, fromdate="2999-01-01") == 0
        assert await found(double, fromdate="2001-01-01") == 1
        clock.advance(KEPT_SECONDS)
        assert await found(double) == 0


@pytest.mark.parametrize(
    "params",
    [
        {"count": "50"},
        {"offset": "0"},
        {"count": "501", "offset": "0"},
        {"count": "5", "offset": "0", "fromdate": "yesterday"},
        {"count": "5", "offset": "0", "metadata_a": "1", "metadata_b": "2"},
    ],
)
async def test_a_search_that_postmark_does_not_know_is_refused(params: dict[str, str]) -> None:
    async with PostmarkDouble() as double:
        answer = await call(double, "GET", "/messages/outbound", params=params)
        assert answer.status_code == 422


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"To": ""}, 300),
        ({"TextBody": ""}, 300),
        ({"To": "Neil, Pat <pat@x.example>"}, 300),
        ({"To": "用户@x.example"}, 300),
        ({"To": ", ".join(f"p{n}@x.example" for n in range(51))}, 300),
        ({"Subject": "two\nlines"}, 300),
        ({"Metadata": {str(n): "x" for n in range(11)}}, 300),
        ({"Metadata": {"n" * 21: "x"}}, 300),
        ({"Metadata": {"n": "x" * 81}}, 300),
        ({"Metadata": {"a": "1", "A": "2"}}, 300),
        ({"Headers": {"a": "b"}}, 403),
        ({"To": ["pat@x.example"]}, 403),
        ({"Track": True}, 403),
    ],
)
async def test_what_postmark_would_refuse_is_refused(change: dict[str, Any], code: int) -> None:
    async with PostmarkDouble() as double:
        refused = await post(double, {**MAIL, **change})
        assert (refused.status_code, refused.json()["ErrorCode"]) == (422, code)
        assert double.accepted == 0


async def test_inactive_recipients_are_left_out_and_named() -> None:
    async with PostmarkDouble(inactive=frozenset({"sam@x.example"})) as double:
        answer = (await post(double)).json()
        assert answer["ErrorCode"] == 0
        assert "inactive addresses: sam@x.example" in answer["Message"]
        assert double.accepted_mails.by_recipient == {"pat@x.example": 1}
        nobody = await post(double, {**MAIL, "To": "sam@x.example"})
        assert (nobody.status_code, nobody.json()["ErrorCode"]) == (422, 406)


async def test_tokens_are_checked_and_the_test_token_sends_nothing() -> None:
    async with PostmarkDouble() as double:
        wrong = await post(double, token="no")
        assert (wrong.status_code, wrong.json()["ErrorCode"]) == (401, 10)
        assert (await post(double, token=TEST_TOKEN)).json()["ErrorCode"] == 0
        assert double.accepted == 0


async def test_sending_and_searching_fail_by_plans_of_their_own() -> None:
    async with PostmarkDouble() as double:
        double.fail(PlannedFault(Fault.ERROR, True, status=503), call=1)
        double.search_faults.plan(PlannedFault(Fault.RATE_LIMIT), call=1)
        lost = await post(double)
        assert (lost.status_code, lost.json()["ErrorCode"]) == (503, 100)
        params = {"count": "5", "offset": "0"}
        limited = await call(double, "GET", "/messages/outbound", params=params)
        assert (limited.status_code, "Retry-After" in limited.headers) == (429, False)
        assert await found(double) == 1

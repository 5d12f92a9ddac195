from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from bot.sandbox.clock import VirtualClock
from bot.sandbox.provider_faults import Fault, PlannedFault
from bot.sandbox.resend_double import KEY_SECONDS, ResendDouble

MAIL: dict[str, Any] = {
    "from": "Acme <help@acme.example>",
    "to": ["Pat <pat@x.example>", '"Neil, P" <neil@x.example>'],
    "bcc": "audit@acme.example",
    "subject": "Closed",
    "text": "We closed it.",
    "tags": [{"name": "signoff_effect", "value": "abc"}],
}


async def post(
    double: ResendDouble,
    mail: object = MAIL,
    *,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    path: str = "/emails",
    method: str = "POST",
) -> httpx2.Response:
    sent = {"Authorization": "Bearer re_sandbox", "Content-Type": "application/json"}
    if key is not None:
        sent["Idempotency-Key"] = key
    body = mail if isinstance(mail, bytes) else json.dumps(mail).encode()
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        return await client.request(
            method, double.url + path, content=body, headers={**sent, **(headers or {})}
        )


def name_of(response: httpx2.Response) -> str:
    error = response.json()
    assert set(error) == {"statusCode", "name", "message"}
    assert error["statusCode"] == response.status_code
    return str(error["name"])


async def test_what_is_accepted_is_counted_by_recipient_and_by_key() -> None:
    async with ResendDouble() as double:
        answer = await post(double, key="k1")
        await post(double, key="k2")
        assert answer.json() == {"id": double.mails[0].provider_id}
        assert double.accepted == 2
        assert double.accepted_mails.by_key == {"k1": 1, "k2": 1}
        assert double.accepted_mails.by_recipient == {
            "pat@x.example": 2,
            "neil@x.example": 2,
            "audit@acme.example": 2,
        }


async def test_a_repeat_gets_the_first_answer_for_a_day_and_sends_nothing() -> None:
    clock = VirtualClock()
    async with ResendDouble(clock=clock) as double:
        first = await post(double, key="k")
        clock.advance(KEY_SECONDS - 1)
        assert (await post(double, key="k")).content == first.content
        assert double.accepted == 1
        clock.advance(1)
        assert (await post(double, key="k")).content != first.content
        assert double.accepted == 2


async def test_a_key_belongs_to_its_bytes() -> None:
    async with ResendDouble() as double:
        await post(double, key="k")
        other = await post(double, {**MAIL, "subject": "Other"}, key="k")
        assert (other.status_code, name_of(other)) == (409, "invalid_idempotent_request")
        assert double.accepted == 1


async def test_a_key_in_flight_is_a_conflict_until_its_request_is_done() -> None:
    async with ResendDouble() as double:
        double.fail(PlannedFault(Fault.HANG), call=1)
        first = asyncio.create_task(post(double, key="k"))
        await double.faults.wait_for_hang()
        second = await post(double, key="k")
        assert (second.status_code, name_of(second)) == (409, "concurrent_idempotent_requests")
        double.faults.release()
        assert (await first).content == (await post(double, key="k")).content
        assert double.accepted == 1


async def test_a_request_that_came_to_nothing_leaves_its_key_free() -> None:
    async with ResendDouble() as double:
        double.fail(PlannedFault(Fault.ERROR), call=1)
        assert (await post(double, key="k")).status_code == 500
        assert (await post(double, {**MAIL, "subject": ""}, key="k")).status_code == 422
        assert (await post(double, {**MAIL, "subject": "Later"}, key="k")).status_code == 200


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"from": None}, "missing_required_field"),
        ({"to": []}, "missing_required_field"),
        ({"subject": ""}, "missing_required_field"),
        ({"text": ""}, "missing_required_field"),
        ({"from": "Acme help@acme.example"}, "validation_error"),
        ({"from": "A, B <help@acme.example>"}, "validation_error"),
        ({"to": ["用户@x.example"]}, "validation_error"),
        ({"to": [7]}, "validation_error"),
        ({"to": [f"p{n}@x.example" for n in range(51)]}, "validation_error"),
        ({"subject": "two\nlines"}, "validation_error"),
        ({"text": 5}, "validation_error"),
        ({"tags": [{"name": "a b", "value": "c"}]}, "validation_error"),
        ({"tags": {"a": "b"}}, "validation_error"),
        ({"headers": {"a b": "c"}}, "validation_error"),
        ({"track": True}, "validation_error"),
    ],
)
async def test_what_resend_would_refuse_is_refused(change: dict[str, Any], name: str) -> None:
    async with ResendDouble() as double:
        refused = await post(double, {**MAIL, **change})
        assert (refused.status_code, name_of(refused)) == (422, name)
        assert double.accepted == 0


async def test_who_may_send_is_checked_first() -> None:
    async with ResendDouble(verified_domains=frozenset({"acme.example"})) as double:
        wrong = await post(double, headers={"Authorization": "Bearer no"})
        assert (wrong.status_code, name_of(wrong)) == (403, "invalid_api_key")
        unverified = await post(double, {**MAIL, "from": "a@other.example"})
        assert (unverified.status_code, name_of(unverified)) == (403, "validation_error")
        assert (await post(double, headers={"User-Agent": ""})).status_code == 403
        assert name_of(await post(double, path="/email")) == "not_found"
        assert name_of(await post(double, method="PUT")) == "method_not_allowed"
        assert name_of(await post(double, key="k" * 257)) == "invalid_idempotency_key"
        assert name_of(await post(double, b"{")) == "validation_error"
        assert (await post(double)).status_code == 200


async def test_a_refusing_port_listens_again_where_it_was() -> None:
    async with ResendDouble() as double:
        url = double.url
        double.fail(PlannedFault(Fault.REFUSE), call=2)
        assert (await post(double)).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            await post(double)
        double.faults.clear()
        await double.listen()
        assert double.url == url
        assert (await post(double)).status_code == 200
        assert double.accepted == 2


async def test_faults_happen_at_their_call_and_only_there() -> None:
    async with ResendDouble() as double:
        double.fail(PlannedFault(Fault.RATE_LIMIT, retry_after=3), call=1)
        double.fail(PlannedFault(Fault.PROXY_PAGE, status=502), call=2)
        double.fail(PlannedFault(Fault.DELIVER_TWICE), call=3)
        limited, page, twice = [await post(double) for _ in range(3)]
        assert (limited.status_code, limited.headers["Retry-After"]) == (429, "3")
        assert (page.status_code, page.headers["Content-Type"][:9]) == (502, "text/html")
        assert twice.status_code == 200
        assert double.accepted == 1
        assert double.accepted_mails.by_recipient["pat@x.example"] == 2
        double.fail(PlannedFault(Fault.CUT_BODY), call=4)
        with pytest.raises(httpx2.RemoteProtocolError):
            await post(double)
        assert double.accepted == 2

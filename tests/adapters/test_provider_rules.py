"""Nothing that is frozen is refused by a provider's rules: what is refused later is too late.

The rules are those of the strict doubles; a ticket is closed before its mail is handed over.
"""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request
from hypothesis import HealthCheck, given, settings
from pydantic import SecretStr

from bot.sandbox import postmark_rules, resend_rules
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.resend import ResendMail
from executor.domain.email import EmailContent
from tests.adapters.json_mails import CONTENTS, REFERENCE

JSON = {"Content-Type": "application/json", "User-Agent": "Signoff"}


# How long content takes to draw says how busy the machine is, and nothing about the rules.
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(CONTENTS)
def test_resend_and_postmark_take_whatever_is_frozen_for_them(content: EmailContent) -> None:
    resend = ResendMail(SecretStr("re_sandbox"), api_url="http://127.0.0.1:1")
    request = make_mocked_request(
        "POST", "/emails", headers={**JSON, "Authorization": "Bearer re_sandbox"}
    )
    frozen = resend.freeze(content, REFERENCE)
    assert resend_rules.refusal(request, frozen, "re_sandbox", None) is None
    postmark = PostmarkMail(SecretStr("sandbox-token"), api_url="http://127.0.0.1:1")
    request = make_mocked_request("POST", "/email", headers=JSON)
    assert postmark_rules.send_refusal(request, postmark.freeze(content, REFERENCE)) is None

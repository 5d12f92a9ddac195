from __future__ import annotations

from datetime import timedelta

import pytest

from executor.adapters.choice import ChoiceInvalid
from executor.adapters.mail.postmark import PostmarkMail
from executor.adapters.mail.provider_choice import mail_from
from executor.adapters.mail.resend import ResendMail
from executor.adapters.mail.smtp import SmtpMail

SMTP = {"SMTP_URL": "smtp://127.0.0.1:2525"}
RESEND = {"RESEND_API_KEY": "re_s3cr3t", "RESEND_API_URL": "http://127.0.0.1:1"}
POSTMARK = {"POSTMARK_SERVER_TOKEN": "s3cr3t", "POSTMARK_API_URL": "http://127.0.0.1:1"}


def problem_of(settings: dict[str, str]) -> str:
    with pytest.raises(ChoiceInvalid) as refused:
        mail_from(settings)
    text = str(refused.value)
    assert refused.value.problems
    assert "s3cr3t" not in text
    return text


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (SMTP, SmtpMail),
        (RESEND, ResendMail),
        (POSTMARK, PostmarkMail),
        ({**SMTP, **RESEND, "SIGNOFF_MAIL": "resend"}, ResendMail),
        ({**SMTP, **POSTMARK, "SIGNOFF_MAIL": " Postmark "}, PostmarkMail),
        ({**SMTP, **POSTMARK, "SIGNOFF_MAIL": "smtp"}, SmtpMail),
        ({**SMTP, "RESEND_API_KEY": "  ", "SIGNOFF_MAIL": ""}, SmtpMail),
    ],
)
def test_the_named_or_the_only_provider_is_used(settings: dict[str, str], kind: type) -> None:
    assert type(mail_from(settings)) is kind


def test_settings_reach_the_provider() -> None:
    searched = mail_from(
        {
            **POSTMARK,
            "SIGNOFF_MAIL_ACCOUNT": "acme",
            "SIGNOFF_POSTMARK_LOOKUP_LAG_SECONDS": "900",
            "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS": "15",
            "POSTMARK_MESSAGE_STREAM": "closures",
        }
    )
    assert isinstance(searched, PostmarkMail)
    assert searched.provider == "postmark:acme"
    assert searched.declaration.lookup_lag == timedelta(minutes=15)
    assert searched.longest_request_seconds == 15
    assert mail_from(RESEND).provider == "resend:127.0.0.1:1"
    bounded = mail_from({**SMTP, "SIGNOFF_SMTP_LONGEST_REQUEST_SECONDS": "7"})
    assert bounded.longest_request_seconds == 7


def test_without_any_provider_every_way_out_is_named() -> None:
    text = problem_of({})
    assert all(name in text for name in ("SMTP_URL", "RESEND_API_KEY", "POSTMARK_SERVER_TOKEN"))


def test_several_providers_are_not_chosen_from() -> None:
    text = problem_of({**SMTP, **RESEND, **POSTMARK})
    assert all(name in text for name in ("SMTP_URL", "RESEND_API_KEY", "POSTMARK_SERVER_TOKEN"))
    assert "SIGNOFF_MAIL=resend" in text
    assert "POSTMARK" not in problem_of({**SMTP, **RESEND})


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"SIGNOFF_MAIL": "sendgrid", **SMTP}, "SIGNOFF_MAIL"),
        ({"SIGNOFF_MAIL": "resend", **SMTP}, "RESEND_API_KEY"),
        ({"SIGNOFF_MAIL": "postmark"}, "POSTMARK_SERVER_TOKEN"),
        ({"SIGNOFF_MAIL": "smtp"}, "SMTP_URL"),
        ({**RESEND, "RESEND_API_URL": "ftp://s3cr3t"}, "RESEND_API_URL"),
        ({**RESEND, "RESEND_API_KEY": "s3cr3t s3cr3t"}, "RESEND_API_KEY"),
        ({**POSTMARK, "POSTMARK_API_URL": "https://"}, "POSTMARK_API_URL"),
        ({"SMTP_URL": "http://s3cr3t"}, "SMTP_URL"),
        (
            {**RESEND, "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS": "s3cr3t"},
            "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS",
        ),
        (
            {**POSTMARK, "SIGNOFF_POSTMARK_LOOKUP_LAG_SECONDS": "nan"},
            "SIGNOFF_POSTMARK_LOOKUP_LAG_SECONDS",
        ),
    ],
)
def test_what_is_wrong_is_named_and_never_repeated(settings: dict[str, str], names: str) -> None:
    assert names in problem_of(settings)

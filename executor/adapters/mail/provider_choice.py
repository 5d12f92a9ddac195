"""Which mail provider this installation uses: the one that is named, or the only one set up.

Nothing is guessed: two providers set up without a choice between them, or none, is an error that
names every setting that would end it. No message ever holds a setting's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import SecretStr

from executor.adapters.choice import ChoiceInvalid, built, given_in, seconds
from executor.adapters.mail.postmark import (
    DEFAULT_STREAM,
    LOOKUP_LAG_SECONDS,
    POSTMARK_API_URL,
    PostmarkMail,
)
from executor.adapters.mail.resend import RESEND_API_URL, ResendMail
from executor.adapters.mail.smtp import LONGEST_REQUEST_SECONDS as SMTP_LONGEST_REQUEST_SECONDS
from executor.adapters.mail.smtp import SmtpMail
from executor.adapters.mail.smtp_url import parse_smtp_url
from executor.engine.ports import MailPort

# The one setting without which a provider cannot be used, and how to get it.
_NEEDED: Mapping[str, tuple[str, str]] = {
    "smtp": ("SMTP_URL", "your mail server, smtp://user:password@mail.example:587?tls=required"),
    "resend": ("RESEND_API_KEY", "an API key with sending access, from resend.com/api-keys"),
    "postmark": ("POSTMARK_SERVER_TOKEN", "a server's API token, from its API Tokens tab"),
}
_HTTP_LONGEST_REQUEST_SECONDS = 60.0


def mail_from(settings: Mapping[str, str]) -> MailPort:
    """Build the mail provider from settings as they stand in the environment.

    ``SIGNOFF_MAIL`` is ``smtp``, ``resend`` or ``postmark``; an empty setting counts as absent.
    Raises ``ChoiceInvalid``.
    """
    given = given_in(settings)
    chosen = _chosen(given)
    needed, _ = _NEEDED[chosen]
    if needed not in given:
        raise ChoiceInvalid([f"SIGNOFF_MAIL is {chosen}: {_remedy(chosen)}"])
    builders: Mapping[str, Callable[[Mapping[str, str]], MailPort]] = {
        "smtp": _smtp,
        "resend": _resend,
        "postmark": _postmark,
    }
    return built(builders[chosen], given)


def _chosen(given: Mapping[str, str]) -> str:
    named = given.get("SIGNOFF_MAIL", "").lower()
    if named:
        if named not in _NEEDED:
            raise ChoiceInvalid(["SIGNOFF_MAIL must be smtp, resend or postmark"])
        return named
    present = [kind for kind, (setting, _) in _NEEDED.items() if setting in given]
    if len(present) == 1:
        return present[0]
    if present:
        settings = " and ".join(_NEEDED[kind][0] for kind in present)
        choices = " or ".join(f"SIGNOFF_MAIL={kind}" for kind in present)
        raise ChoiceInvalid([f"{settings} are all set: choose with {choices}"])
    raise ChoiceInvalid(
        ["no mail provider is set up; set one of these:", *(_remedy(kind) for kind in _NEEDED)]
    )


def _remedy(kind: str) -> str:
    setting, help_text = _NEEDED[kind]
    return f"set {setting} to {help_text}"


def _smtp(given: Mapping[str, str]) -> MailPort:
    return SmtpMail(
        parse_smtp_url(given["SMTP_URL"]),
        longest_request_seconds=seconds(
            given, "SIGNOFF_SMTP_LONGEST_REQUEST_SECONDS", SMTP_LONGEST_REQUEST_SECONDS
        ),
    )


def _resend(given: Mapping[str, str]) -> MailPort:
    return ResendMail(
        SecretStr(given["RESEND_API_KEY"]),
        api_url=given.get("RESEND_API_URL", RESEND_API_URL),
        account=given.get("SIGNOFF_MAIL_ACCOUNT"),
        longest_request_seconds=seconds(
            given, "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS", _HTTP_LONGEST_REQUEST_SECONDS
        ),
    )


def _postmark(given: Mapping[str, str]) -> MailPort:
    return PostmarkMail(
        SecretStr(given["POSTMARK_SERVER_TOKEN"]),
        api_url=given.get("POSTMARK_API_URL", POSTMARK_API_URL),
        account=given.get("SIGNOFF_MAIL_ACCOUNT"),
        message_stream=given.get("POSTMARK_MESSAGE_STREAM", DEFAULT_STREAM),
        lookup_lag_seconds=seconds(
            given, "SIGNOFF_POSTMARK_LOOKUP_LAG_SECONDS", LOOKUP_LAG_SECONDS
        ),
        longest_request_seconds=seconds(
            given, "SIGNOFF_MAIL_LONGEST_REQUEST_SECONDS", _HTTP_LONGEST_REQUEST_SECONDS
        ),
    )

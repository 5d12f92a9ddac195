"""Emails of the kinds that reviewers meet, each waiting for approval, to draw cards from."""

from __future__ import annotations

from datetime import UTC, datetime

from executor.domain.closing import ProposeClosing, RenderedEmail
from executor.domain.ticket import BUILTIN_DESK, Ticket, TicketStatus
from executor.engine.card_record import OperationRecord
from executor.engine.closure_email import ClosureEmails
from tests.support.records import (
    email_content,
    mailbox,
    operation_record,
    ticket_change,
    ticket_record,
)

_EMAILS = ClosureEmails()

PARAGRAPH = (
    "{n}. We have looked at what you wrote about the printer on the third floor. The fuser was "
    "worn and has been replaced, the firmware is the newest one, and 200 test pages came out "
    "without a fault. If it smells of smoke again, switch it off and tell us the number of this "
    "ticket; nobody has to describe it all again.\n\n"
)
"""About 310 characters; ninety of them fill nine pages."""

NINE_PAGES = "Hello Pat,\n\n" + "".join(PARAGRAPH.format(n=n) for n in range(1, 91)) + "Acme\n"

LINKS = (
    '<p>Hello Pat,</p>\n<p><a href="https://tickets.example/t?id=4101&amp;tab=mail">View ticket '
    '4101</a> or <a href="https://evil.example/login">https://acme.example/login</a>.</p>\n'
    '<p><img src="https://tracker.example/open.gif" width="1" height="1" alt=""> '
    '<a href="https://bücher.example/">our books</a></p>\n'
)

ARABIC = (
    "لقد أصلحنا الطابعة في الطابق الثالث، وأعدنا إليك مبلغ 40.00 EUR إلى بطاقتك.\n\n"
    "يمكنك متابعة الطلب على https://acme.example/t/4101 في أي وقت."
)

JAPANESE = (
    "3階のプリンターを修理しました。定着器を交換し、ファームウェアも最新です。\n"
    "念のため、テスト印刷を200枚行いましたが、問題はありませんでした。\n\n"
    "　ご不明な点がございましたら、チケット番号をお知らせください。"
)

HIDDEN = (
    "We refund \u202e00,9\u202c EUR to your account.\n"
    "Pay the rest at https://pаypal.example/acme\u200b\u200b\u200b\u200b\u200b\u200b.\n"
    + "\n" * 30
    + "Hidden below: \U000e0048\U000e0069\U000e0021 and a ⟦U+202E⟧ that somebody typed.\n"
)


def rendered_email(message: str, name: str = "Pat", language: str = "en") -> RenderedEmail:
    """Both bodies that our own templates make of a message."""
    ticket = Ticket(
        desk=BUILTIN_DESK,
        id="4101",
        version=7,
        status=TicketStatus.OPEN,
        subject="The printer is on fire",
        customer_name=name,
        customer_email="pat@cust.example",
        language=language,
        times_opened=1,
        updated_at=datetime(2026, 3, 3, tzinfo=UTC),
    )
    proposal = ProposeClosing.model_construct(
        ticket_id="4101", language=language, subject="Closed", message=message
    )
    return _EMAILS.render(ticket, proposal, "Acme Support")


def mails() -> dict[str, OperationRecord]:
    """One record for each kind of email, by a name that says which."""
    arabic = rendered_email(ARABIC, "ليلى", "ar")
    japanese = rendered_email(JAPANESE, "佐藤", "ja")
    return {
        "mail_of_nine_pages": operation_record(email=email_content(text=NINE_PAGES)),
        "mail_with_links": operation_record(email=email_content(text="Hello Pat,\n", html=LINKS)),
        "mail_in_arabic": operation_record(
            goal="أغلق التذكرة 4101",
            ticket=ticket_record(
                subject="الطابعة تحترق",
                recent_changes=(ticket_change(7, author="ليلى", body="شكراً، تعمل الآن."),),
            ),
            email=email_content(
                to=(mailbox("layla@cust.example", "ليلى 100"),),
                subject="تم إغلاق التذكرة 4101",
                text=arabic.text,
                html=arabic.html,
            ),
        ),
        "mail_in_japanese": operation_record(
            goal="チケット4101を閉じる",
            ticket=ticket_record(
                subject="プリンターから煙が出ています",
                recent_changes=(
                    ticket_change(7, author="佐藤", body="直りました。助かりました。"),
                ),
            ),
            email=email_content(
                to=(mailbox("sato@例え.example", "佐藤 花子", "sato@xn--r8jz45g.example"),),
                subject="チケット4101を完了しました",
                text=japanese.text,
                html=japanese.html,
            ),
        ),
        "mail_with_hidden_characters": operation_record(
            email=email_content(
                to=(mailbox("pat@cu\u200bst.example", "P\u0430t"),),
                subject="Refund\u00a0for 4101",
                text=HIDDEN,
            )
        ),
    }

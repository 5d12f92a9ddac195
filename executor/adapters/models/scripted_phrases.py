"""What the scripted model can say of its own in each language; everything else it quotes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Phrases:
    """The sentences of a closure email in one language."""

    title: str
    opening: str
    resolution: str
    confirmed: str
    silent: str
    apology: str
    patience: str
    also: str


PHRASES: Mapping[str, Phrases] = MappingProxyType(
    {
        "en": Phrases(
            title="Ticket {ticket} closed",
            opening="You wrote to us about “{subject}”.",
            resolution="This is what we told you last:",
            confirmed="Thank you for confirming that this is settled.",
            silent="If anything is still open for you, please reply to this email.",
            apology="We are sorry for the trouble that this caused you.",
            patience="Thank you for your patience.",
            also="Please also note: {fact}",
        ),
        "nl": Phrases(
            title="Ticket {ticket} gesloten",
            opening="U schreef ons over “{subject}”.",
            resolution="Dit was ons laatste antwoord:",
            confirmed="Dank voor uw bevestiging dat dit is opgelost.",
            silent="Is er voor u nog iets open, beantwoord dan deze e-mail.",
            apology="Het spijt ons dat u hier last van had.",
            patience="Dank u voor uw geduld.",
            also="Let ook op het volgende: {fact}",
        ),
        "de": Phrases(
            title="Ticket {ticket} geschlossen",
            opening="Sie haben uns wegen „{subject}“ geschrieben.",
            resolution="Das war unsere letzte Antwort:",
            confirmed="Danke für Ihre Bestätigung, dass das erledigt ist.",
            silent="Falls für Sie noch etwas offen ist, antworten Sie bitte auf diese E-Mail.",
            apology="Die Unannehmlichkeiten tun uns leid.",
            patience="Vielen Dank für Ihre Geduld.",
            also="Bitte beachten Sie außerdem: {fact}",
        ),
        "fr": Phrases(
            title="Ticket {ticket} fermé",
            opening="Vous nous avez écrit au sujet de « {subject} ».",
            resolution="Voici notre dernière réponse :",
            confirmed="Merci de nous avoir confirmé que tout est réglé.",
            silent="S’il reste un point en suspens, il vous suffit de répondre à cet e-mail.",
            apology="Nous sommes désolés pour la gêne occasionnée.",
            patience="Merci pour votre patience.",
            also="Veuillez également noter : {fact}",
        ),
        "es": Phrases(
            title="Solicitud {ticket} cerrada",
            opening="Nos escribió sobre «{subject}».",
            resolution="Esta fue nuestra última respuesta:",
            confirmed="Gracias por confirmarnos que está resuelto.",
            silent="Si le queda algo pendiente, responda a este correo.",
            apology="Lamentamos las molestias ocasionadas.",
            patience="Gracias por su paciencia.",
            also="Tenga en cuenta también: {fact}",
        ),
        "it": Phrases(
            title="Ticket {ticket} chiuso",
            opening="Ci ha scritto riguardo a «{subject}».",
            resolution="Questa è stata la nostra ultima risposta:",
            confirmed="Grazie per averci confermato che è tutto risolto.",
            silent="Se qualcosa è ancora in sospeso, risponda a questa e-mail.",
            apology="Ci scusiamo per il disagio.",
            patience="Grazie per la pazienza.",
            also="Tenga presente anche questo: {fact}",
        ),
        "pt": Phrases(
            title="Pedido {ticket} encerrado",
            opening="Escreveu-nos sobre “{subject}”.",
            resolution="Esta foi a nossa última resposta:",
            confirmed="Obrigado por nos confirmar que está resolvido.",
            silent="Se ainda houver algo pendente, responda a este e-mail.",
            apology="Lamentamos o incómodo causado.",
            patience="Obrigado pela sua paciência.",
            also="Tenha também em conta: {fact}",
        ),
        "ja": Phrases(
            title="チケット {ticket} 完了のお知らせ",
            opening="「{subject}」についてお問い合わせいただきました。",
            resolution="前回のご案内は次のとおりです。",
            confirmed="解決のご連絡をいただき、ありがとうございます。",
            silent="ご不明な点がございましたら、このメールにご返信ください。",
            apology="ご不便をおかけし、申し訳ございません。",
            patience="お待ちいただき、ありがとうございました。",
            also="あわせてご確認ください。{fact}",
        ),
        "ar": Phrases(
            title="تم إغلاق التذكرة {ticket}",
            opening="لقد راسلتنا بشأن «{subject}».",
            resolution="وكان هذا ردنا الأخير:",
            confirmed="شكرًا لتأكيدك أن الأمر قد حُلّ.",
            silent="إذا بقي لديك أي استفسار، يرجى الرد على هذه الرسالة.",
            apology="نعتذر عن الإزعاج الذي تسبب فيه ذلك.",
            patience="شكرًا لصبرك.",
            also="يرجى أيضًا ملاحظة ما يلي: {fact}",
        ),
        "pl": Phrases(
            title="Zgłoszenie {ticket} zamknięte",
            opening="Dotyczy sprawy „{subject}”.",
            resolution="To była nasza ostatnia odpowiedź:",
            confirmed="Dziękujemy za potwierdzenie, że sprawa jest załatwiona.",
            silent="Jeśli coś pozostało niewyjaśnione, prosimy odpowiedzieć na tę wiadomość.",
            apology="Przepraszamy za niedogodności.",
            patience="Dziękujemy za cierpliwość.",
            also="Prosimy również pamiętać: {fact}",
        ),
    }
)

LANGUAGE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        name: language
        for language, names in {
            "en": "english englisch engels anglais inglés inglese inglês",
            "nl": "dutch nederlands niederländisch néerlandais",
            "de": "german deutsch duits allemand alemán tedesco",
            "fr": "french français französisch frans francés francese",
            "es": "spanish español spanisch spaans espagnol",
            "it": "italian italiano italienisch italiaans italien",
            "pt": "portuguese português portugiesisch portugees portugais",
            "ja": "japanese 日本語 japanisch japans japonais",
            "ar": "arabic العربية arabisch arabe",
            "pl": "polish polski polnisch pools polonais",
        }.items()
        for name in names.split()
    }
)
"""Names by which a reviewer may ask for a language."""

"""The scripted model's closure email: drafted from the conversation, revised by each rejection.

Only an agent's own words are quoted, never the customer's, but for the subject. The same ticket and
the same rejections always give the same email.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from executor.adapters.models.scripted_phrases import LANGUAGE_NAMES, PHRASES
from executor.adapters.models.scripted_reading import TicketRead
from executor.domain.payloads import JsonObject

_LONGEST_QUOTE = 800
_LONGEST_FACT = 300
_SHORT_ANSWER = 25
_LONGEST_LINE_OF_GREETING = 60
_LONGEST_LINE_OF_REGARDS = 40
# The escapes are the full-width forms of : , ! and ?.
_ENDS_A_GREETING = (",", "!", ":", "،", "\uff1a", "、", "\uff0c", "様")
_ENDS_A_SENTENCE = (".", "!", "?", "。", "\uff01", "\uff1f", "؟", ")", ":")

_SENTENCE_END = re.compile(r"(?<=[.!?؟])\s+|(?<=[。\uff01\uff1f])")
# Slack spells an address that somebody typed as <mailto:pat@cust.example|pat@cust.example>.
_ADDRESS = re.compile(r"[^\s<>()\[\],;:|\"']+@[^\s<>()\[\],;:|\"']+[^\s<>()\[\],;:|\"'.?!]")
_COPY = re.compile(r"\b(?:cc|copy|kopie|copie|copia|cópia)\b", re.IGNORECASE)
_SUBJECT = re.compile(r"subject\b[^\"“„«]*[\"“„«](?P<text>[^\"”“»]{1,200})[\"”“»]", re.IGNORECASE)
_LEAVE_OUT = re.compile(
    r"(?:remove|leave out|drop|(?:do not|don['’]t|no) mention(?: of)?|laat weg|streiche)\s+"
    r"(?P<what>[^\n]+)",
    re.IGNORECASE,
)
_MENTION = re.compile(
    r"\b(?:mention|include|add|tell (?:them|him|her|the customer)|say|vermeld|noem|erwähnen?"
    r"|mentionne[rz]?|menciona|menziona(?:re)?)[:,]?\s+(?:also\s+|please\s+)?"
    r"(?:that\s+|dat\s+|dass\s+|que\s+|che\s+)?(?P<what>[^\n]+)",
    re.IGNORECASE,
)
_SHORTER = re.compile(
    r"short(?:er|en)|brief|too long|concise|kürzer|zu lang|korter|te lang|plus court"
    r"|más corto|più breve|mais curto|krótsz|短",
    re.IGNORECASE,
)
_KINDER = re.compile(
    r"apolog|sorry|\btone\b|friendl|polite|kind(?:er|ly)?\b|warm|rude|cold|empath|freundlich"
    r"|entschuldig|vriendelijk|excuses|désolé|disculp|scus|desculp",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Letter:
    """What the email says beside what the conversation gives, as the rejections shaped it."""

    language: str
    subject: str | None = None
    mentions: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    short: bool = False
    kind: bool = False


def propose(
    ticket_id: str, ticket: TicketRead, rejections: Sequence[str], to: tuple[str, ...] = ()
) -> JsonObject:
    """Write the arguments of ``propose_closing``, with every rejection taken to heart in turn.

    Without ``to`` the email goes to the ticket's customer.
    """
    letter = Letter(language=_language(ticket.language), to=to)
    for reason in rejections:
        letter = revise(letter, reason)
    phrases = PHRASES[letter.language]
    subject = letter.subject or phrases.title.replace("{ticket}", ticket_id)
    arguments: dict[str, str | list[str]] = {
        "ticket_id": ticket_id,
        "language": letter.language,
        "subject": subject,
        "message": _message(ticket, letter),
    }
    if letter.to:
        arguments["to"] = list(letter.to)
    if letter.cc:
        arguments["cc"] = list(letter.cc)
    return arguments


def revise(letter: Letter, reason: str) -> Letter:
    """Change a letter as a rejection asks; one not understood makes it kinder, then shorter.

    What was not understood is never quoted: a reviewer's remark is not meant for the customer.
    """
    revised = _readdress(letter, reason)
    named = _named_language(reason)
    if named:
        revised = replace(revised, language=named)
    if found := _SUBJECT.search(reason):
        return replace(revised, subject=" ".join(found["text"].split()))
    if found := _LEAVE_OUT.search(reason):
        return replace(revised, left_out=(*revised.left_out, _clean(found["what"])))
    if _SHORTER.search(reason):
        revised = replace(revised, short=True)
    if _KINDER.search(reason):
        revised = replace(revised, kind=True)
    found = _MENTION.search(reason)
    # An address, a language or an apology that was asked for is no fact to tell the customer.
    if found and not (named or "@" in reason or _KINDER.search(found["what"])):
        revised = replace(revised, mentions=(*revised.mentions, _as_sentence(found["what"])))
    if revised != letter:
        return revised
    return replace(letter, short=True) if letter.kind else replace(letter, kind=True)


def addresses_in(text: str) -> tuple[str, ...]:
    """List the addresses that a person named, once each."""
    return tuple(dict.fromkeys(_ADDRESS.findall(text)))


def _readdress(letter: Letter, reason: str) -> Letter:
    addresses = addresses_in(reason)
    if not addresses:
        return letter
    if _COPY.search(reason):
        return replace(letter, cc=tuple(dict.fromkeys((*letter.cc, *addresses))))
    return replace(letter, to=addresses)


def _named_language(reason: str) -> str | None:
    words = re.findall(r"\w+", reason.lower())
    named = [LANGUAGE_NAMES[word] for word in words if word in LANGUAGE_NAMES]
    # "This is English, it must be Dutch": what is wanted comes last.
    return named[-1] if named else None


def _language(tag: str) -> str:
    primary = tag.split("-")[0].lower()
    return primary if primary in PHRASES else "en"


def _message(ticket: TicketRead, letter: Letter) -> str:
    phrases = PHRASES[letter.language]
    parts: list[str] = []
    if not letter.short:
        parts.append(phrases.opening.replace("{subject}", " ".join(ticket.subject.split())))
    if letter.kind:
        parts.append(phrases.apology)
    quote = _quote(ticket.answers(), letter)
    if quote:
        parts.append(quote if letter.short else f"{phrases.resolution}\n{quote}")
    parts += [phrases.also.replace("{fact}", fact) for fact in letter.mentions]
    if letter.kind:
        parts.append(phrases.patience)
    if not letter.short or not parts:
        parts.append(phrases.confirmed if ticket.confirmed() else phrases.silent)
    return "\n\n".join(parts)


def _quote(answers: Sequence[str], letter: Letter) -> str:
    """Quote the agent's last answer that says something, without greeting and regards."""
    bodies = [_body(answer) for answer in answers]
    telling = [body for body in bodies if len(body) >= _SHORT_ANSWER] or bodies
    if not telling:
        return ""
    sentences = [sentence for sentence in _SENTENCE_END.split(telling[-1]) if sentence.strip()]
    kept = [s for s in sentences if not any(out.lower() in s.lower() for out in letter.left_out)]
    if letter.short:
        kept = kept[:2]
    quote = ""
    for sentence in kept:
        longer = f"{quote} {sentence}".strip()
        if len(longer) > _LONGEST_QUOTE:
            break
        quote = longer
    return quote[:1].upper() + quote[1:]


def _body(message: str) -> str:
    lines = [line.rstrip() for line in message.strip().splitlines()]
    first = lines[0] if lines else ""
    if (
        len(lines) > 1
        and len(first) <= _LONGEST_LINE_OF_GREETING
        and first.endswith(_ENDS_A_GREETING)
    ):
        lines = lines[1:]
    while (
        len(lines) > 1
        and len(lines[-1]) <= _LONGEST_LINE_OF_REGARDS
        and not lines[-1].endswith(_ENDS_A_SENTENCE)
    ):
        lines.pop()
    return "\n".join(lines).strip()


def _clean(text: str) -> str:
    what = " ".join(text.split())[:_LONGEST_FACT].strip(" .!?\"'“”„«»")
    return re.sub(r"^(?:the|de|het|der|die|das|le|la)\s+", "", what, flags=re.IGNORECASE)


def _as_sentence(text: str) -> str:
    fact = " ".join(text.split())[:_LONGEST_FACT].strip(" \"'“”„«»")
    return fact if fact.endswith(_ENDS_A_SENTENCE) else f"{fact}."

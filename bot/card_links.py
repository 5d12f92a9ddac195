"""Where the links of an email really lead: what is read, and the target that is behind it.

An HTML part can show one address and lead to another; a text can hide its host behind a name that
looks like one. Each link of an HTML part is listed with its true target, and what loads by itself
when the mail is opened. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

from bot.confusable import ascii_form, foreign_addresses
from bot.visible import Finding, reveal

ARROW = "→"

_LINKS = frozenset({"href", "xlink:href", "action", "formaction", "cite", "ping"})
_LOADS = frozenset({"src", "srcset", "background", "poster", "data", "longdesc", "lowsrc"})
_IN_STYLE = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]([^'\"]*)", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>\"']+", re.IGNORECASE)
_LOOKS_LIKE_ADDRESS = re.compile(
    r"(?:https?://)?(?:[\w.+-]{1,64}@)?(?:[\w-]{1,63}\.){1,20}[^\W\d_]{2,63}(?![\w.])",
    re.IGNORECASE,
)
_MOST_UNENDED = 100
_BROKEN = "the HTML part is malformed, and not all of its links could be listed"
_SIGNS = (
    (
        re.compile(
            r"display\s*:\s*none|visibility\s*:\s*hidden|(?:font-size|opacity|height)\s*:\s*0|"
            r"<[a-z][^<>]*\shidden[\s>=]|<!--|<(?:template|noscript|title)\b",
            re.IGNORECASE,
        ),
        "the HTML part holds text that mail programs do not show",
    ),
    (
        re.compile(r"<bdo\b|unicode-bidi|direction\s*:|\sdir\s*=", re.IGNORECASE),
        "the HTML part sets the direction of text",
    ),
    (
        re.compile(r"<(?:script|iframe|object|embed|form|svg|math)\b|\son\w+\s*=", re.IGNORECASE),
        "the HTML part holds a program, a form or a foreign document",
    ),
)
"""What a reviewer of source text would easily overlook. It is a net: all of the source is shown."""

_FIRST_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class MailLink:
    """One link: what is read of it, where it leads, and what is known besides.

    ``label`` is ``None`` for what loads by itself. Nothing is revealed yet.
    """

    label: str | None
    target: str


@dataclass(frozen=True, slots=True)
class Links:
    """The lines that list links, and those that warn of them; both are revealed."""

    listed: tuple[str, ...]
    warned: tuple[str, ...]
    findings: tuple[Finding, ...]


def links_of(html: str | None, text: str) -> Links:
    """List the links of an HTML part that is shown, and warn of links in it or in the text."""
    links, whole = ([], True) if html is None else _links(html)
    findings: list[Finding] = []

    def shown(value: str) -> str:
        revealed = reveal(value, one_line=True)
        findings.extend(revealed.findings)
        return revealed.text

    listed = dict.fromkeys(_line(link, shown(_label(link)), shown(link.target)) for link in links)
    warned = dict.fromkeys(_warnings(links, text))
    warned |= dict.fromkeys(said for sign, said in _SIGNS if sign.search(html or ""))
    if not whole:
        warned[_BROKEN] = None
    return Links(tuple(listed), tuple(warned), tuple(findings))


def _line(link: MailLink, label: str, target: str) -> str:
    if link.label is None:
        return f"loads by itself {ARROW} {target}{_spelt(link.target)}"
    return f'"{label}" {ARROW} {target}{_spelt(link.target)}'


def _label(link: MailLink) -> str:
    return " ".join((link.label or "").split()).replace("\\", "\\\\").replace('"', '\\"')


def _spelt(target: str) -> str:
    hosts = list(foreign_addresses(target))
    return f" = {reveal(ascii_form(hosts[0]), one_line=True).text}" if hosts else ""


def _warnings(links: Sequence[MailLink], text: str) -> Iterator[str]:
    for link in links:
        said = _LOOKS_LIKE_ADDRESS.search(link.label or "")
        if said is not None and not _same_site(_claimed(said.group()), _host(link.target)):
            leads = _host_shown(_host(link.target)) or reveal(link.target[:80], one_line=True).text
            read = reveal(said.group(), one_line=True).text
            yield f"a link that reads {read} leads to {leads}"
    for target in [*(link.target for link in links), *_URL.findall(text)]:
        if _has_userinfo(target):
            before = reveal(target.split("//", 1)[-1].rpartition("@")[0][:80], one_line=True).text
            yield f"a link that begins with {before} leads to {_host_shown(_host(target))}"
        scheme = target.strip().partition(":")[0].lower() if ":" in target else ""
        if scheme in {"javascript", "data", "vbscript", "file"}:
            yield f"a link leads to no address, but holds something itself ({scheme}:)"


def _same_site(claimed: str, host: str) -> bool:
    return ascii_form(claimed).removeprefix("www.") == ascii_form(host).removeprefix("www.")


def _claimed(label: str) -> str:
    """Read what a label says that it leads to: a host, or a mail address."""
    if "@" in label and "//" not in label:
        return label.lower()
    return _host(label if "//" in label else f"//{label}")


def _host_shown(host: str) -> str:
    spelt = ascii_form(host) if host else ""
    shown = reveal(host, one_line=True).text
    return shown if spelt == host else f"{shown} = {reveal(spelt, one_line=True).text}"


def _host(target: str) -> str:
    """Return the host that a target leads to, or the mail address."""
    # Browsers read a backslash as a slash, and leave out tabs and line ends.
    plain = re.sub(r"[\t\r\n]", "", target).replace("\\", "/").strip()
    if plain.lower().startswith("mailto:"):
        return unquote(plain[len("mailto:") :].partition("?")[0]).lower()
    try:
        return (urlsplit(plain).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _has_userinfo(target: str) -> bool:
    try:
        parts = urlsplit(target.replace("\\", "/"))
    except ValueError:
        return False
    return parts.scheme in {"http", "https", ""} and "@" in parts.netloc


def _links(html: str) -> tuple[list[MailLink], bool]:
    """Read the links, and say whether all of the HTML could be read."""
    reader = _LinkReader()
    unended = html.count("<", html.rfind(">") + 1)
    whole = max(unended, html.count("<") - html.count(">")) <= _MOST_UNENDED
    try:
        # The parser needs ages for many tags without an end.
        reader.feed(html if whole else "")
        reader.close()
    except AssertionError:
        # Python's parser gives up on marked sections that it does not know.
        whole = False
    reader.end_link()
    links = [MailLink(link.label, _joined(reader.base, link.target)) for link in reader.links]
    return links, whole


def _joined(base: str, target: str) -> str:
    """Resolve a target against the document's base, which a mail may set to anything."""
    if not base:
        return target
    try:
        return urljoin(base, target)
    except ValueError:
        return target


class _LinkReader(HTMLParser):
    """Collects every attribute that holds an address, and the text inside a link."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.base = ""
        self.links: list[MailLink] = []
        self._target: str | None = None
        self._label: list[str] = []
        self._in_style = False

    def end_link(self) -> None:
        """Record the link that is open."""
        if self._target is not None:
            self.links.append(MailLink("".join(self._label), self._target))
        self._target, self._label = None, []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self._in_style = tag == "style"
        if tag == "base":
            self.base = self.base or given.get("href") or ""
            return
        if tag == "a":
            self.end_link()
            self._target = given.get("href")
        if self._target is not None and given.get("alt"):
            self._label.append(f"[{given['alt']}]")
        for name, value in given.items():
            if name in _LINKS and (tag, name) != ("a", "href"):
                loads = tag in {"link", "image", "use"}
                self.links.append(MailLink(None if loads else f"<{tag}>", value))
            elif name in _LOADS:
                self.links += [MailLink(None, target) for target in _sources(name, value)]
            elif name == "style":
                self._styled(value)
        if tag == "meta" and "url=" in given.get("content", "").lower():
            self.links.append(MailLink(None, given["content"]))

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False
        if tag == "a":
            self.end_link()

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._styled(data)
        elif self._target is not None:
            self._label.append(data)

    def _styled(self, style: str) -> None:
        for found in _IN_STYLE.finditer(style):
            self.links.append(MailLink(None, found.group(1) or found.group(2) or ""))


def _sources(name: str, value: str) -> list[str]:
    """Read the addresses of one attribute; ``srcset`` holds several, each with its size."""
    if name != "srcset":
        return [value]
    candidates = (_FIRST_WORD.search(candidate) for candidate in value.split(","))
    return [found.group() for found in candidates if found is not None]

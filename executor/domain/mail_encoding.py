"""How text becomes the ASCII that mail travels in, so that every decoder gives back the same text.

Encoded words (RFC 2047) are cut between characters, never inside one, and stay so short that no
header line passes 76 characters. Quoted-printable (RFC 2045, 6.7) also encodes what old relays
damage: spaces at the end of a line, a dot or ``From`` at its beginning.

The encoders are our own since the standard library's have torn text: it has split lines at
separators that mail does not know (python/cpython 117313) and lost the quotes around a comma when
it folded a name (python/cpython 121284). The bytes are also the same under every Python version.
"""

from __future__ import annotations

import base64
import re

LONGEST_LINE = 76
"""Characters of the longest line that is written, where there is a choice."""

_ENCODED_PAYLOAD = 52
"""Characters inside one encoded word: with its frame and the longest header name under 76."""

_LONGEST_PLAIN_WORD = 60
_PLAIN_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")
# The characters that RFC 2047, 5 (3) allows as themselves inside a phrase; a space becomes "_".
_Q_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_QP_TABLE = tuple(
    bytes([byte]) if (33 <= byte <= 126 and byte != 61) or byte in b" \t" else b"=%02X" % byte
    for byte in range(256)
)


def encoded_words(text: str) -> list[str]:
    """Encode text as RFC 2047 encoded words of at most 64 characters: Q or B, the shorter."""
    octets = text.encode()
    q_length = sum(1 if byte in _Q_SAFE or byte == 32 else 3 for byte in octets)
    as_q = q_length <= 4 * ((len(octets) + 2) // 3)
    words: list[str] = []
    chunk = ""
    for character in text:
        if chunk and len(_payload(chunk + character, as_q=as_q)) > _ENCODED_PAYLOAD:
            # After a space where there is one: parsers that wrongly keep the white space between
            # encoded words then show a wider gap, not a word in two.
            end = chunk.rfind(" ") + 1 or len(chunk)
            words.append(_frame(chunk[:end], as_q=as_q))
            chunk = chunk[end:]
        chunk += character
    words.append(_frame(chunk, as_q=as_q))
    return words


def phrase_words(name: str) -> list[str]:
    """Spell a display name as words that may be folded between, never inside.

    Plain words, one quoted string, or encoded words: the last for everything that a parser could
    read as punctuation, as another encoding, or as a place to fold.
    """
    short = len(name) <= _LONGEST_PLAIN_WORD
    if name.isascii() and short and "=?" not in name:
        if _PLAIN_PHRASE.fullmatch(name):
            return [name]
        escaped = name.replace("\\", "\\\\").replace('"', '\\"')
        return [f'"{escaped}"']
    return encoded_words(name)


def unstructured_words(text: str) -> list[str]:
    """Spell a subject as words that may be folded between: as it is, or as encoded words."""
    words = text.split(" ")
    plain = (
        text.isascii()
        and "=?" not in text
        and all(words)
        and max(map(len, words)) <= _LONGEST_PLAIN_WORD
    )
    return words if plain else encoded_words(text)


def fold(name: str, words: list[str]) -> bytes:
    """Write one header line by line; unfolded, its words stand one space apart."""
    line = f"{name}:".encode("ascii")
    lines: list[bytes] = []
    for index, word in enumerate(words):
        octets = word.encode()
        if index and len(line) + 1 + len(octets) > LONGEST_LINE:
            lines.append(line)
            line = b""
        line += b" " + octets
    lines.append(line)
    return b"\r\n".join(lines) + b"\r\n"


def transfer_encode(text: str) -> tuple[str, bytes]:
    """Encode a body, whose lines end with LF, as ``(Content-Transfer-Encoding, lines)``.

    Decoded, it has CR LF line ends (RFC 2046, 4.1.1) and is otherwise the same octets, whether or
    not it ended with a line end. Quoted-printable unless base64 is shorter.
    """
    octets = text.replace("\n", "\r\n").encode()
    quoted = _quoted_printable(octets)
    packed = base64.encodebytes(octets).replace(b"\n", b"\r\n")
    return ("quoted-printable", quoted) if len(quoted) <= len(packed) else ("base64", packed)


def _payload(text: str, *, as_q: bool) -> str:
    octets = text.encode()
    if not as_q:
        return base64.b64encode(octets).decode("ascii")
    return "".join(
        chr(byte) if byte in _Q_SAFE else "_" if byte == 32 else f"={byte:02X}" for byte in octets
    )


def _frame(text: str, *, as_q: bool) -> str:
    return f"=?utf-8?{'q' if as_q else 'b'}?{_payload(text, as_q=as_q)}?="


def _quoted_printable(octets: bytes) -> bytes:
    lines: list[bytes] = []
    for line in octets.split(b"\r\n"):
        lines.extend(_quoted_lines(line))
    if lines[-1]:
        # A soft line break: the text did not end with a line end, and the last line of mail must.
        lines[-1:] = [lines[-1] + b"=", b""]
    return b"\r\n".join(lines)


def _quoted_lines(line: bytes) -> list[bytes]:
    """Cut one line into pieces of at most 76 characters, all but the last with a soft break."""
    pieces: list[bytes] = []
    piece = b""
    for index, byte in enumerate(line):
        token = _QP_TABLE[byte]
        if index == len(line) - 1 and byte in b" \t":
            token = b"=%02X" % byte
        if len(piece) + len(token) > LONGEST_LINE - 1:
            pieces.append(piece + b"=")
            piece = b""
        if not piece and (byte == 46 or line.startswith(b"From ", index)):
            token = b"=%02X" % byte
        piece += token
    pieces.append(piece)
    return pieces

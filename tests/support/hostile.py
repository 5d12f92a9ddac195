"""Text that somebody writes to deceive the reader of a card, for Hypothesis to draw from."""

from __future__ import annotations

from hypothesis import strategies as st

FRAGMENTS = (
    "<!channel>",
    "<@U_BOSS>",
    "<!subteam^S1>",
    "<https://evil.example|View ticket 4101>",
    "*bold* _italic_ ~gone~ `code`",
    "```\nout of the fence\n```",
    "> quoted",
    ":white_check_mark:",
    "&lt;b&gt; and &amp;amp;",
    "<script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    '"}],"type":"mrkdwn"',
    "\\u003c\\n",
    "⟦U+202E⟧",
    "⟦end⟧",
    "⟦… the middle is left out …⟧",
    "⟦empty⟧",
    "⟦the line goes on⟧",
    "⟦U+200B×9⟧",
    "〚U+202E〛",
    "–",
    '"Pat" <pat@cust.example> = <pat@cust.example>',
    "\\\\> = <",
    "\nBcc        thief@evil.example\n",
    "<!date^1392734382^{date}|2014-02-18>",
    "<!everyone> <!here> <#C123|general>",
    "<!doctype html><![foo[ <!-- <a href='https://evil.example'>https://good.example</a>",
    "https://good.example@evil.example/\u2044x",
    "اللغة العربية 100 – 200",
    "\u0338\u20e3 x\u0338",
    "e\u0301\u0302\u0303",
    "1\ufe0f\u20e3 می\u200cخواهم क\u094d\u200dष",
    "\ue000\U000f0000\U0010ffff\u0378",
    " " * 60 + "end" + "\t" * 60,
    " \n \n\t\n",
    "trailing   ",
    "\u202e001\u202c",
    "pat@cu\u200bst.example",
    "pаypal.example",
    "bücher.example",
    "https://аррӏе.example/x?a=1&b=2",
    "Z" + "\u0300\u0489\u036f" * 20 + "algo",
    "\u200b" * 30,
    "\ud800",
    "\u2028\u2029\u0085\r\n",
    "\U000e0061\U000e007f",
    "❤\ufe0f 👨\u200d👩\u200d👧",
    "🎉" * 10,
    "a\u00a0b\u00ad\u3000c",
    "\n" * 20,
    "\x00\x07\x1b[31m",
    "日本語のテキスト",
)

any_character = st.characters(exclude_categories=())
texts = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.text(any_character, max_size=30)), max_size=12
).map("".join)
"""Short texts of everything."""


def grow(text: str, length: int) -> str:
    """Repeat a text up to a length; grown in the test, since Hypothesis reports what it drew."""
    return (text * (length // max(1, len(text)) + 1))[:length]

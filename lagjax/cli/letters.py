"""Text for terminals of any encoding: what an encoding lacks is spelt otherwise, and nothing fails."""

from __future__ import annotations

import re
import sys
from contextlib import suppress

SPELT = {r" ±(?=\d)": "+-", "±": "+-", "†": "^"}  # sign, as a pattern: others in its place; columns stay where they are


def settle_streams() -> None:
    """Lets stdout and stderr write characters that their encodings lack as escapes, as in \\u8bc4."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # there is none, or a caller has put another there
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def fitting(text: str, encoding: str | None) -> str:
    """Returns the text with the signs of tables that the encoding lacks spelt in others: "1.2 ±0.1" as "1.2+-0.1"."""
    for sign, spelt in SPELT.items():
        if not _has(encoding or "ascii", sign.removesuffix(r"(?=\d)")):
            text = re.sub(sign, spelt, text)
    return text


def _has(encoding, text):
    try:
        text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True

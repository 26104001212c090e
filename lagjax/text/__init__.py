"""The one reader of text files: encodings, separators, decimal marks, comments, and what was read, in one line."""

from lagjax.text.delimited import read_delimited
from lagjax.text.files import existing_file, shown
from lagjax.text.reading import BLANKS, UNKNOWN, WITH_COMMAS, Reading, parse_number

__all__ = [
    "BLANKS", "UNKNOWN", "WITH_COMMAS", "Reading", "existing_file", "parse_number", "read_delimited", "shown",
]  # fmt: skip

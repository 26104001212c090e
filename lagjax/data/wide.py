"""Scores as a table with names: reviewers in the header, and a row for each paper."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator
from pathlib import Path

from lagjax.data.cells import Cells
from lagjax.data.table import score_in
from lagjax.errors import InputError
from lagjax.text import Reading, shown


def parse_wide(
    path: Path, header: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]], reading: Reading
) -> Cells:
    """Reads rows of a paper and its scores below a header of reviewers; an empty cell or nan is a score unknown.

    Raises:
      InputError: a name that is empty or comes twice, a row of another width, a cell that is no finite number,
        no rows, or two columns that may as well be a reviewer's number and a score.
    """
    top, names = header[0], [name.strip() for name in header[1][1:]]
    seen: set[str] = set()
    for name in names:
        if not name or name in seen:
            fault = f"names the reviewer {shown(name)} twice" if name else "has a reviewer without a name"
            raise InputError(f"{path}, line {top}: {fault}; name every column of the table")
        seen.add(name)
    papers: dict[str, int] = {}
    paper_codes, reviewer_codes, lines, scores = array("i"), array("i"), array("i"), array("d")
    for line, row in rows:
        if len(row) != len(names) + 1:
            raise InputError(
                f"{path}, line {line}: has {len(row)} fields, but line {top} has {len(names) + 1}; mend the line"
            )
        paper = row[0].strip()
        if not paper or paper in papers:
            fault = f"paper {shown(paper)} is already there" if paper else "field 1 (the paper) is empty"
            raise InputError(f"{path}, line {line}: {fault}; give each row of the table a name of its own")
        code = papers.setdefault(paper, len(papers))
        for at, text in enumerate(row[1:]):
            try:
                scores.append(score_in(text, reading))
            except ValueError:
                raise InputError(
                    f"{path}, line {line}: field {at + 2} (the score of {shown(names[at])}) is {shown(text)}; scores "
                    f"are finite numbers (nan or nothing where there is none){reading.hint(text)}"
                ) from None
            paper_codes.append(code)
            reviewer_codes.append(at)
            lines.append(line)
    if not papers:
        raise InputError(f"{path}: has a header but no scores; expected a row for each paper below it")
    if len(names) == 2 and all(math.isnan(x) or x == round(x) for x in scores[::2]):
        raise InputError(
            f"{path}, line {top}: can be read as a table of the reviewers {shown(names[0])} and {shown(names[1])}, or as "
            "lines of paper, reviewer and score; call the columns paper,reviewer,score, or write the table as such lines"
        )
    read = (
        f"{path} is read as a table: {len(papers)} papers down, {len(names)} reviewers across ({shown(names[0])}, ...)"
    )
    return Cells(tuple(papers), tuple(names), paper_codes, reviewer_codes, lines, scores, (read,))

"""HTML from plain values: one page that needs nothing but itself and reads on a phone."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from lagjax.plots.pictures import draw

# The policy allows no request at all: what the page needs is in it.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 80rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a;
  background: #fff; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }}
h2 {{ font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 2px solid #0072b2; padding-bottom: .2rem; }}
nav a {{ display: inline-block; padding: .6rem .8rem .6rem 0; color: #005a8c; }}
.pictures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }}
figure {{ margin: 0; }}
figure svg {{ width: 100%; height: auto; display: block; }}
figcaption {{ color: #444; font-size: .9rem; text-align: left; padding: .3rem 0; }}
.wide {{ overflow-x: auto; max-width: 100%; margin: 0 0 1rem; }}
table {{ border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .35rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap;
  overflow-wrap: normal; }}
th:first-child, td:first-child {{ text-align: left; position: sticky; left: 0; background: #fff; }}
thead th {{ border-bottom: 2px solid #999; }}
table.facts th, table.facts td {{ text-align: left; white-space: normal; overflow-wrap: anywhere; vertical-align: top; }}
table.facts th {{ font-weight: 600; min-width: 7rem; }}
pre {{ background: #f3f5f7; padding: .8rem; overflow-x: auto; font-size: .85rem; white-space: pre-wrap; }}
.note {{ color: #444; font-size: .9rem; white-space: pre-line; }}
</style>
</head>
<body>
<h1>{title}</h1>
"""


class Picture(NamedTuple):
    """Attributes:
    draw: draws on a Matplotlib Axes.
    says: what it shows, for the caption and for those who cannot see it.
    """

    draw: Callable
    says: str


class Table(NamedTuple):
    """A caption, a header and lines of cells, all text."""

    caption: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]


class Section(NamedTuple):
    """A part of the page; empty parts of it are left out."""

    title: str
    says: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    facts: Sequence[tuple[str, str]] = ()
    code: str = ""
    note: str = ""


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """Returns the whole page; equal content gives equal bytes."""
    links = "".join(f'<a href="#part-{i}">{escape(s.title)}</a>' for i, s in enumerate(sections))
    body = "".join(_section(i, section) for i, section in enumerate(sections))
    paragraphs = "".join(f"<p>{escape(text)}</p>\n" for text in lead)
    return f"{_HEAD.format(title=escape(title))}{paragraphs}<nav>{links}</nav>\n{body}</body>\n</html>\n"


def _section(number, section):
    parts = [f'<section id="part-{number}">\n<h2>{escape(section.title)}</h2>\n']
    parts += [f"<p>{escape(text)}</p>\n" for text in section.says]
    if section.pictures:
        drawn = "".join(_picture(p, f"{number}-{i}") for i, p in enumerate(section.pictures))
        parts.append(f'<div class="pictures">{drawn}</div>\n')
    parts += [_table(table) for table in section.tables]
    if section.facts:
        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in section.facts)
        parts.append(f'<table class="facts"><tbody>{rows}</tbody></table>\n')
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>\n")
    if section.note:
        parts.append(f'<p class="note">{escape(section.note)}</p>\n')
    return "".join([*parts, "</section>\n"])


def _table(table):
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>\n" for line in table.lines)
    return (
        f'<figure><figcaption>{escape(table.caption)}</figcaption><div class="wide" tabindex="0"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>\n{lines}</tbody></table></div></figure>\n"
    )


def _picture(picture, name):
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    picture.draw(axes)
    handles, labels = axes.get_legend_handles_labels()
    columns = 2 if max(map(len, labels), default=0) > 20 else 3
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        draw(figure, text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:width|height)="[0-9.]+pt"', "", svg, count=2)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(picture.says)}"', 1)
    return f"<figure>{svg}<figcaption>{escape(picture.says)}</figcaption></figure>"

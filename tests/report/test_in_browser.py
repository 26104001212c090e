"""The page in headless Chromium, at the widths of a phone and of a desk: nothing cut, nothing asked of the network.

Runs with `pytest -m browser`, as `.ci/run` does, since it needs Chromium (Debian: apt-get install chromium).
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from pages import finished

from lagjax.studies.report import report

pytestmark = pytest.mark.browser
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")

# The page in a frame of a given width, and what a reader would find in it, as JSON in the title.
HARNESS = """<!DOCTYPE html><html><head><title>waiting</title></head><body style="margin:0">
<iframe id="f" src="{page}" style="width:{width}px;height:800px;border:0"></iframe>
<script>
document.getElementById("f").onload = function () {{
  const d = this.contentDocument, w = d.documentElement.clientWidth;
  const box = e => e.getBoundingClientRect();
  const outside = [...d.querySelectorAll("h1,h2,p,nav a,figure,svg,pre,table.facts,td,th")].filter(
    e => !e.closest(".wide") && (box(e).right > w + 1 || box(e).left < -1));
  document.title = JSON.stringify({{
    width: w, scroll: d.documentElement.scrollWidth, outside: outside.map(e => e.tagName + ": " + e.textContent.slice(0, 40)),
    pictures: [...d.querySelectorAll("svg[role=img]")].map(e => [box(e).width, box(e).height, e.querySelectorAll("path").length]),
    tables: [...d.querySelectorAll(".wide")].map(e => e.clientWidth <= w && e.clientHeight > 40),
    fonts: [...new Set([...d.querySelectorAll("p,td,th,a,figcaption,pre")].map(e => parseFloat(getComputedStyle(e).fontSize)))],
    links: [...d.querySelectorAll("nav a")].map(e => box(e).height),
    rows: d.querySelectorAll(".wide tbody tr").length,
    reached: [...d.querySelectorAll("nav a")].every(e => d.querySelector(e.getAttribute("href")) !== null),
  }});
}};
</script></body></html>"""


@pytest.fixture(scope="module")
def browser():
    found = os.environ.get("LAGJAX_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "no Chromium here: install it (Debian: apt-get install chromium), or name one in LAGJAX_BROWSER"
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    finished(out)
    (out / "report.html").write_text(report(out), encoding="utf-8")
    return out


def look(browser, folder, width, page="report.html"):
    """What a reader finds in the page at a width, and what the browser complained of."""
    (folder / "harness.html").write_text(HARNESS.format(page=page, width=width))
    done = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--enable-logging=stderr",
            "--log-level=0", f"--user-data-dir={folder / 'profile'}", f"--window-size={max(width, 500)},900",
            "--virtual-time-budget=5000", "--dump-dom", (folder / "harness.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title and title[1] != "waiting", done.stderr[-2000:]
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(title[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")), complaints


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_reads_at_every_width(browser, folder, width):
    found, complaints = look(browser, folder, width)
    assert complaints == []
    assert found["scroll"] <= found["width"] <= width
    assert found["outside"] == []
    assert len(found["pictures"]) == 4
    for across, high, paths in found["pictures"]:
        assert min(250, 0.8 * width) <= across <= width and high > 150 and paths > 20
    assert found["tables"] and all(found["tables"])
    assert min(found["fonts"]) >= 12
    assert min(found["links"]) >= 40  # a finger's width
    assert found["rows"] == 2 * 2 + 2 and found["reached"]


def test_the_check_sees_what_is_wrong(browser, folder):
    """The same look at a page that is too wide and asks the network."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    page = page.replace("<h1>", '<h1 style="width:900px">').replace(
        "</body>", '<img src="https://127.0.0.1:9/x.png"></body>'
    )
    (folder / "bad.html").write_text(page, encoding="utf-8")
    found, complaints = look(browser, folder, 390, "bad.html")
    assert found["scroll"] > 390 and found["outside"]
    assert any("Content Security Policy" in line for line in complaints)

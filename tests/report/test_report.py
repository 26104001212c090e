"""`lagjax report`: one page that has everything and asks for nothing; what browsers make of it is in test_in_browser."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from pages import NAME, finished

from lagjax.errors import InputError
from lagjax.gallery import priority
from lagjax.studies.dataset import load
from lagjax.studies.published import published_among, published_instances
from lagjax.studies.report import report


class Reader(HTMLParser):
    """Collects tags, addresses and text, and checks that tags close in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.addresses, self.text, self.ids = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.addresses += [found[key] for key in ("href", "src", "xlink:href", "srcset", "data") if key in found]
        if "id" in found:
            self.ids.append(found["id"])
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in ("meta", "link", "br"):
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    finished(out)
    return out


@pytest.fixture(scope="module")
def read(folder):
    reader = Reader()
    reader.feed(report(folder))
    reader.close()
    assert not reader.open
    return reader


def test_it_needs_nothing_but_itself(read):
    assert all(address.startswith("#") for address in read.addresses), read.addresses
    assert {"script", "img", "iframe", "object", "link"}.isdisjoint(read.tags)
    assert "@import" not in "".join(read.text) and not re.search(r"url\((?!#)", "".join(read.text))
    targets = [address[1:] for address in read.addresses]
    assert set(targets) <= set(read.ids)


def test_it_has_every_number_configuration_versions_and_how_to_reproduce(read, folder):
    data, text = load(folder / "sweep.nc"), " ".join(read.text)
    for instance in data.instance.values:
        for rho in (0.3, 0.6):
            for policy in data.policy.values:
                cell = data.sel(instance=instance, offered_load=rho, policy=policy)
                assert f"{float(cell.percent_of_occ_ub):.2f} ±{float(cell.percent_ci95):.2f}" in text
    manifest = json.loads((folder / "run" / "manifest.json").read_text())
    for name, version in json.loads(data.attrs["versions"]).items():
        assert name in text and version in text
    assert f"jax=={manifest['configuration']['versions']['jax']}" in text
    assert manifest["configuration"]["instances"]["priority"]["scores"] in text
    assert "replicas 8" in " ".join(text.split()) or "8 replicas" in text
    assert NAME in text and "<script>alert(1)</script>" in text  # as text, not as what it looks like
    assert read.tags.count("svg") == 4
    assert "87.8" in text  # what the paper prints of LAG on Priority at load 0.3


def test_equal_results_make_equal_pages(folder):
    assert report(folder) == report(folder)


def test_names_that_the_paper_has_too(folder):
    """The paper's numbers stand beside its own systems, not beside files that share their names."""
    other = dataclasses.replace(priority(0.5), scores=2 * priority().scores)
    assert published_instances(load(folder / "sweep.nc")) == json.loads(published_among([priority()])) == ["priority"]
    assert published_among([other]) == "[]"


def test_of_a_convergence_study(lagjax, tmp_path):
    args = ("converge", "priority", "--copies", "1,4", "--steps", "20", "--replicas", "4", "--out", "study")
    assert lagjax(*args).code == 0
    code, out, err = lagjax("report", "study")
    assert (code, out) == (0, "") and "study/report.html" in err
    page = (tmp_path / "study" / "report.html").read_text()
    assert page.count("<svg") == 2 and "lagjax converge priority --copies 1,4" in page and "Table 3" in page


def test_what_is_no_finished_study(lagjax, tmp_path, folder):
    (tmp_path / "file").write_text("")
    for name, said in (("nowhere", "no results here"), ("file", "no results here"), (".", "no results here")):
        code, _, err = lagjax("report", name)
        assert code == 2 and said in err and err.count("\n") == 1
    with pytest.raises(InputError, match=r"not finished \(0 cells are\)"):
        (tmp_path / "half" / "run").mkdir(parents=True)
        report(tmp_path / "half")
    assert np.isfinite(load(folder / "sweep.nc").reward_per_step).all()

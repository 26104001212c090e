"""Names and paths that users give."""

import re
from pathlib import Path

import numpy as np
import pytest

from lagjax.errors import InputError
from lagjax.given import expanded, printable
from lagjax.policies import from_priorities


@pytest.mark.parametrize("name", ["a", "评分", "naïve set (2)", "", "x" * 100])
def test_names_that_can_be_held_are_kept(name):
    assert printable("name", name) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [("caf\udce9", "no text in UTF-8"), ("a\nb", "line breaks"), ("a\0", "line breaks"), ("x" * 101, "101")],
)
def test_others_are_refused_before_anything_is_computed(name, said):
    with pytest.raises(InputError, match=said):
        printable("name", name)
    with pytest.raises(InputError, match=f"policy has .*{said}"):
        from_priorities(np.ones((1, 2)), name=name)


def test_a_home_is_put_in(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/x") == tmp_path / "x"
    assert expanded(Path("~")) == tmp_path
    assert expanded("a/~/x~") == Path("a/~/x~")
    with pytest.raises(InputError, match=re.escape("~no-such-user/x: there is no such home")):
        expanded("~no-such-user/x")

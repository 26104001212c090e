"""OPT(KIID) is solved where a policy needs it or it costs little, and never where it is not wanted."""

import sys

import pytest

from lagjax import plots
from lagjax.errors import InputError
from lagjax.gallery import priority
from lagjax.lp import solve_kiid
from lagjax.studies.dataset import load, save
from lagjax.studies.kiid import kiid_note, wants_kiid
from lagjax.studies.load_sweep import sweep
from lagjax.studies.show_sweep import rows, table


class Size:
    """An instance as far as the rule looks."""

    def __init__(self, num_types, num_servers):
        self.num_types, self.num_servers = num_types, num_servers


def test_a_large_system_goes_without_unless_a_policy_needs_it():
    large = Size(10_000, 10_000)
    assert wants_kiid("always", large, []) and not wants_kiid("never", priority(), ["alg-sc-lp"])
    assert not wants_kiid("auto", large, ["lag", "greedy"])
    assert not wants_kiid("auto", large, ["lag", "greedy"], tasks=1e6)
    assert wants_kiid("auto", large, ["lag", "greedy"], tasks=1e12)  # small beside such a simulation
    assert wants_kiid("auto", large, ["alg-sc-lp"])
    assert wants_kiid("auto", large, ["tuned"])
    assert wants_kiid("auto", Size(1000, 1000), ["lag"])
    assert wants_kiid("auto", Size(463, 58), ["lag"])


ARGUMENTS = {"loads": [0.3, 0.6], "policies": ["random"], "steps": 300, "replicas": 2}


def test_never_solves_none_and_says_so(monkeypatch, tmp_path):
    module = sys.modules["lagjax.studies.measure"]
    monkeypatch.setattr(module, "solve_kiid", None)
    data = sweep([priority()], **ARGUMENTS, kiid="never")
    assert [row["kiid_ub"] for row in rows(data)] == [None] * 2
    assert kiid_note(data) == ["kiid skipped: no OPT(KIID), a line for reference, for priority (as asked)"]
    assert "--kiid always" in kiid_note(data.assign_attrs(kiid="auto"))[0]
    assert table(data).splitlines()[-1] == kiid_note(data)[0]
    save(data, tmp_path / "x.nc")
    assert [row["kiid_ub"] for row in rows(load(tmp_path / "x.nc"))] == [None] * 2
    figure = plots.plot_load_sweep(data, "priority")
    assert not [t for t in figure.legends[0].get_texts() if "KIID" in t.get_text()]


def test_by_default_small_systems_have_it():
    data = sweep([priority()], **ARGUMENTS)
    assert [row["kiid_ub"] for row in rows(data)] == [
        solve_kiid(priority().with_load(at)).objective for at in (0.3, 0.6)
    ]
    assert kiid_note(data) == [] and "kiid" not in table(data)


def test_only_a_choice_that_exists():
    with pytest.raises(InputError, match="kiid is 'yes'; choose from auto, always, never"):
        sweep([priority()], **ARGUMENTS, kiid="yes")


def test_the_manifest_of_a_default_run_does_not_mention_it(tmp_path):
    for choice, named in (("auto", False), ("never", True)):
        sweep([priority()], **ARGUMENTS, kiid=choice, out=tmp_path / choice)
        manifest = (tmp_path / choice / "run" / "manifest.json").read_text()
        assert ("kiid" in manifest) == named

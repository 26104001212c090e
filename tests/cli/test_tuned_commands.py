"""`tuned` as a policy of the commands."""

import json


def test_sweep_compares_lag_and_tuned(lagjax):
    arguments = (
        "sweep",
        "priority",
        "--loads",
        "0.2",
        "--policies",
        "lag,tuned",
        "--steps",
        "4000",
        "--replicas",
        "64",
    )
    done = lagjax(*arguments, "--json", "-")
    assert done.code == 0
    lag, tuned = json.loads(done.out)["rows"]
    assert (lag["policy"], tuned["policy"]) == ("lag", "tuned")
    assert tuned["percent_of_occ_ub"] - lag["percent_of_occ_ub"] > 4
    assert "priority, tuned: best-order, climbed: the best of 854 policies by exact rewards" in done.err
    assert lagjax(*arguments, "--json", "-").out.count(repr(tuned["reward_per_step"])) == 1


def test_converge_tunes_for_each_size(lagjax):
    done = lagjax(
        "converge", "priority", "--load", "0.8", "--copies", "1", "--policies", "tuned", "--steps", "20", "--replicas", "4",
        "--json", "-",
    )  # fmt: skip
    (row,) = json.loads(done.out)["rows"]
    assert done.code == 0 and (row["policy"], row["copies"]) == ("tuned", 1) and row["percent_of_occ_ub"] > 0


def test_bad_seeds_and_names_are_named(lagjax):
    for arguments, words in (
        (("sweep", "priority", "--loads", "0.2", "--policies", "tuned", "--seed", "-1"), "seed is -1"),
        (("sweep", "priority", "--loads", "0.2", "--policies", "improved"), "choose from lag, greedy"),
    ):
        done = lagjax(*arguments)
        assert done.code == 2 and words in done.err and done.err.count("\n") == 1

"""The named instances: four of the paper's (Lag, section 5.2), and a synthetic journal with the moments of its real ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lagjax.durations import deterministic, geometric
from lagjax.errors import InputError
from lagjax.instance import Instance, make_instance

DEFAULT_LOAD = 0.7
JOURNAL_SEED = 2018


def specialist(load: float = DEFAULT_LOAD) -> Instance:
    """Call centre of 2 generalists and 5 specialists; 5 routine types and a hard one that only generalists serve."""
    routine = np.hstack([np.ones((5, 2)), np.eye(5)])
    hard = np.hstack([np.ones((1, 2)), np.zeros((1, 5))])
    return make_instance(
        np.vstack([routine, hard]), geometric(10), load=load, mix=[1, 1, 1, 1, 1, 3], name="specialist",
        tasks=[f"routine {i}" for i in range(5)] + ["hard"],
        servers=["generalist 0", "generalist 1", *(f"specialist {i}" for i in range(5))],
    )  # fmt: skip


def priority(load: float = DEFAULT_LOAD) -> Instance:
    """Call centre of 2 priority and 6 standard handlers; 70% of the calls are standard."""
    return make_instance(
        [[1.8] * 2 + [1.0] * 6, [8.0] * 2 + [0.2] * 6], geometric(20), load=load, mix=[0.7, 0.3], name="priority",
        tasks=["standard", "priority"],
        servers=["priority 0", "priority 1", *(f"standard {i}" for i in range(6))],
    )  # fmt: skip


def unfriendly(load: float = DEFAULT_LOAD) -> Instance:
    """5 good servers that match the set bits of 32 binary types (0.01 elsewhere) and 5 dummies that score 0."""
    bits = (np.arange(32)[:, None] >> np.arange(5)) & 1
    good = np.where(bits == 1, 1.0, 0.01)
    return make_instance(
        np.hstack([good, np.zeros((32, 5))]), deterministic(43), load=load, name="unfriendly",
        tasks=[f"{v:05b}" for v in range(32)],
        servers=[*(f"good {i}" for i in range(5)), *(f"dummy {i}" for i in range(5))],
    )  # fmt: skip


def low_rank(load: float = DEFAULT_LOAD) -> Instance:
    """Rank-one scores a_v b_r, both linearly spaced on [0, 1]; 10 types, 30 servers, 43 steps of service."""
    scores = np.outer(np.linspace(0, 1, 10), np.linspace(0, 1, 30))
    return make_instance(scores, deterministic(43), load=load, name="low-rank")


def journal(load: float = DEFAULT_LOAD) -> Instance:
    """A SYNTHETIC journal: 10 papers, 30 reviewers, 3 reviews a paper; stands in for the paper's TMLR and ICLR data.

    Scores: cosine similarity of term vectors (40 terms, each weight the cube of a standard exponential, so few terms
    dominate as in tf-idf), rescaled to [0, 1]. Durations: lognormal rounded to days 1..191 with the mean (42.9) and
    median (34.8) of real review times before truncation. Both from stated laws with a fixed seed; no real data.
    """
    draw = np.random.Generator(np.random.PCG64(JOURNAL_SEED)).random
    papers, reviewers = (-np.log1p(-draw((n, 40))) for n in (10, 30))
    papers, reviewers = papers**3, reviewers**3
    cosine = (papers @ reviewers.T) / np.outer(np.linalg.norm(papers, axis=1), np.linalg.norm(reviewers, axis=1))
    scores = (cosine - cosine.min()) / np.ptp(cosine)
    return make_instance(
        scores, _review_days(mean=42.9, median=34.8, longest=191), servers_per_task=3, load=load, name="journal",
        tasks=[f"paper {v}" for v in range(10)], servers=[f"reviewer {r}" for r in range(30)],
    )  # fmt: skip


def _review_days(mean, median, longest):
    from scipy.stats import lognorm

    law = lognorm(s=np.sqrt(2 * np.log(mean / median)), scale=median)
    edges = np.r_[0.0, np.arange(1, longest + 1) + 0.5]
    mass = np.diff(law.cdf(edges))
    return mass / mass.sum()


GALLERY = {
    "specialist": specialist,
    "priority": priority,
    "unfriendly": unfriendly,
    "low-rank": low_rank,
    "journal": journal,
}


def instances_of(given: Instance | str | Iterable[Instance | str]) -> list[Instance]:
    """Returns the instances that an argument means: one or several, made or named in the gallery.

    Raises:
      InputError: nothing is given, or something that is no instance; two have one name; or no such name.
    """
    listed: Any = [given] if isinstance(given, (Instance, str)) else given
    try:
        made = [gallery(one) if isinstance(one, str) else one for one in listed]
    except TypeError:
        made = [listed]
    wrong = [one for one in made if not isinstance(one, Instance)]
    if wrong or not made:
        raise InputError(f"instances is {wrong[0] if wrong else given!r}; give an instance, a name or a list of them")
    names = [instance.name for instance in made]
    if len(set(names)) < len(names):
        raise InputError(f"instances share a name ({', '.join(names)}); rename one")
    return made


def gallery(name: str, load: float = DEFAULT_LOAD) -> Instance:
    """Returns the gallery instance of that name at that load.

    Raises:
      InputError: no such name (the message lists them), or the load is outside (0, 1 - k/R].
    """
    if name not in GALLERY:
        raise InputError(f"no instance '{name}' in the gallery; choose from {', '.join(GALLERY)}")
    return GALLERY[name](load)

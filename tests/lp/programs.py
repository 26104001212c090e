"""Instances on which the linear programs are tested."""

import numpy as np

from lagjax.durations import deterministic
from lagjax.instance import make_instance

GALLERY_CASES = ("specialist", "priority", "unfriendly", "low-rank", "journal")


def load_grid(name):
    """Loads of the published table that the instance allows, the largest included."""
    return np.arange(1, 9 if name in ("specialist", "priority") else 10) / 10


def random_instance(rng):
    """A small system with ties, unequal durations and rates, and any k and load, as chance has it."""
    num_types, num_servers = int(rng.integers(1, 9)), int(rng.integers(2, 10))
    k = int(rng.integers(1, min(num_servers, 4)))
    shape = num_types, num_servers
    scores = [
        lambda: rng.random(shape),
        lambda: rng.integers(0, 4, shape) / 3,
        lambda: np.outer(rng.random(num_types), rng.random(num_servers)),
        lambda: np.repeat(rng.random((num_types, 1)), num_servers, axis=1),
    ][rng.integers(4)]()
    laws = [rng.dirichlet(np.ones(int(rng.integers(1, 9)))) for _ in range(num_types)]
    laws[0] = deterministic(int(rng.integers(1, 30)))
    if rng.random() < 0.4:
        laws = [laws[0]] * num_types
    mix = np.ones(num_types) if rng.random() < 0.4 else rng.random(num_types) + 0.05
    load = (1 - k / num_servers) * rng.choice([0.05, 0.5, 0.9, 0.999, 1.0, rng.uniform(0.02, 1)])
    mean = np.array([law @ np.arange(1, len(law) + 1) for law in laws])
    possible = k * (mix / mix.sum()) @ mean / num_servers  # load at one arrival per step
    return make_instance(scores, laws, servers_per_task=k, load=min(load, 0.999 * possible), mix=mix)

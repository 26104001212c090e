"""Programs that have what makes linear programs hard: ties, zeros, duplicates, six decades of rates, full servers."""

import numpy as np

from lagjax.lp.program import Program


def program(rng, largest=300):
    """One program, OCC-LP or KIID; None when chance has made one without a solution."""
    num_types, num_servers = (int(n) for n in rng.integers(1, largest + 1, 2))
    shape = num_types, num_servers
    scores = [
        lambda: rng.random(shape),
        lambda: rng.integers(0, 3, shape).astype(float),
        lambda: np.outer(rng.random(num_types), rng.random(num_servers)),
        lambda: np.round(rng.random(shape), 1),
        lambda: np.where(rng.random(shape) < 0.8, 0, rng.random(shape)),
        lambda: rng.random(shape) * 10.0 ** rng.uniform(-6, 0, shape),
    ][rng.integers(6)]()
    if rng.random() < 0.4:
        scores[:, rng.integers(0, num_servers, num_servers // 2)] = scores[:, [rng.integers(num_servers)]]
    if rng.random() < 0.4:
        scores[rng.integers(0, num_types, num_types // 2)] = scores[[rng.integers(num_types)]]
    if scores.max() == 0:
        scores[0, 0] = 1
    mix = 10.0 ** rng.uniform(-6, 0, num_types) if rng.random() < 0.5 else rng.random(num_types) + 0.1
    laws = [
        lambda: np.full(num_types, 10.0),
        lambda: np.round(1 + 20 * rng.random(num_types)),
        lambda: 10.0 ** rng.uniform(0, 3, num_types),
    ]
    duration = laws[rng.integers(3)]()
    k = int(rng.integers(1, min(num_servers, 3) + 1))
    highest = 1 - k / num_servers
    load = highest * (1.0 if rng.random() < 0.1 else rng.uniform(0.02, 0.999))
    blocking = 0.0 if rng.random() < 0.6 else rng.uniform(0, 0.3)
    coupled = bool(rng.random() < 0.6)
    if load <= 0 or (coupled and load >= 1 / (1 - blocking) - k / num_servers + 1e-12):
        return None
    rate = mix * load * num_servers / (k * mix @ duration)
    demand = k * (1 - blocking) if coupled else k
    scale = scores.max()
    return Program(scores / scale, rate, duration, float(demand), coupled, float(scale * 10.0 ** rng.uniform(-8, 8)))


def permuted(given, types, servers):
    """The same program with its types and servers in another order."""
    return Program(
        given.scores[np.ix_(types, servers)], given.rate[types], given.duration[types], given.demand, given.coupled,
        given.scale,
    )  # fmt: skip

"""The scaled system beside its fluid trajectory: how the distance falls as the system grows (Lag, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lagjax.engine.checks import whole_number
from lagjax.engine.scaled_run import MOST_STEPS, check_size, check_start, trace_scaled
from lagjax.errors import InputError
from lagjax.fluid.map import fluid_map, fluid_system
from lagjax.instance import Instance
from lagjax.models.scaled import whole_copies
from lagjax.policies.table import Policy
from lagjax.stats import estimate, log_log_slope

_FULL = 1e-12  # a sum of free fractions this little below k is k


def compare_with_simulation(
    instance: Instance, policy: Policy, sizes: Sequence[tuple[int, int]], start, steps: int, replicas: int = 64,
    seed: int = 0, progress: Callable[[int, int], object] | None = None,
) -> xr.Dataset:  # fmt: skip
    """Simulates the scaled system at every size and measures its distance from the fluid trajectory of the same start.

    Both start from `start` in whole copies of the size, so they agree at step 0. A step has m dispatchers, so its tasks
    fluctuate by 1/sqrt(m): the distance falls as m^(-1/2), as n^(-1/4) where m = floor(sqrt(n)), and not at all where m stays.
    It has another reason to stay where the fluid trajectory has some servers free, but fewer than k: there the map fills tasks
    in part, as the paper lets it, and the scaled system drops them. `shortage_steps` counts such steps.

    Args:
      instance: at its load.
      policy: built for this instance.
      sizes: pairs (n, m), such as `lagjax.studies.convergence.sizes_of` makes.
      start: (R, d+1) fluid state; rows sum to 1.
      steps: T, steps followed.
      replicas: B.
      seed: of all randomness, in [0, 2^64). Tasks are the same at every n of equal m.
      progress: called with the sizes done so far and those in all.

    Returns:
      A Dataset with dimensions size (coordinates copies and dispatchers) and replica:
      `sup_distance` (size, replica) max over t = 0..T, r and i of |X_ri(t) / (m n) - x_ri(t)|, fractions of a server's copies;
      `mean_distance` and `distance_ci95` (size) its mean and the half-width of the 95% interval; `shortage_steps` (size);
      `slope_copies`, `slope_dispatchers` and their standard errors `slope_copies_error`, `slope_dispatchers_error`: the
      least-squares line through log mean distance against log n and log m, NaN where that does not vary.

    Raises:
      InputError: an argument that cannot be used.
    """
    whole_number("steps", steps, 1, MOST_STEPS)
    check_start(instance, start)
    pairs = [(int(n), int(m)) for n, m in sizes]
    if not pairs:
        raise InputError("sizes is empty; give at least one pair of copies and dispatchers")
    for n, m in pairs:
        check_size(instance, policy, n, m, replicas)
    most = max(m for _, m in pairs)
    distances, shortages = [], []
    for done, (n, m) in enumerate(pairs):
        trace = trace_scaled(
            instance, policy, copies=n, dispatchers=m, steps=steps, replicas=replicas, seed=seed, start=start,
            most_dispatchers=most,
        )  # fmt: skip
        distance, shortage = np.zeros(replicas), 0
        trajectory = fluid_trajectory(instance, policy, whole_copies(start, n * m) / (n * m), steps)
        for x, occupancy in zip(trajectory, trace, strict=True):
            distance = np.maximum(distance, np.abs(occupancy - x).max(axis=(1, 2)))
            shortage += 0 < x[:, 0].sum() < instance.servers_per_task - _FULL
        distances.append(distance)
        shortages.append(shortage)
        if progress is not None:
            progress(done + 1, len(pairs))
    found = np.array(distances)
    mean = estimate(found)
    copies, dispatchers = (np.array(column) for column in zip(*pairs, strict=True))
    by_copies, by_dispatchers = log_log_slope(copies, found), log_log_slope(dispatchers, found)
    return xr.Dataset(
        {
            "sup_distance": (("size", "replica"), found),
            "mean_distance": ("size", mean.mean),
            "distance_ci95": ("size", mean.ci95),
            "shortage_steps": ("size", shortages),
            "slope_copies": by_copies.value,
            "slope_copies_error": by_copies.error,
            "slope_dispatchers": by_dispatchers.value,
            "slope_dispatchers_error": by_dispatchers.error,
        },
        {"copies": ("size", copies), "dispatchers": ("size", dispatchers)},
        {
            "title": "Largest distance of the (m,n)-scaled system from its fluid trajectory",
            "instance": instance.name,
            "load": round(instance.load, 9),
            "policy": policy.name,
            "steps": steps,
            "seed": str(seed),  # beyond what netCDF's integers hold
        },
    )


def fluid_trajectory(instance: Instance, policy: Policy, start, steps: int):
    """Yields (R, d+1) G^t(start), t = 0..steps, in float64 whatever JAX's 64-bit mode."""
    system = fluid_system(instance, policy)
    x = np.asarray(start, np.float64)
    for t in range(steps + 1):
        if t > 0:
            with jax.enable_x64(True):  # never held across a yield
                x = np.asarray(_step(system, jnp.asarray(x)))
        yield x


_step = jax.jit(fluid_map)

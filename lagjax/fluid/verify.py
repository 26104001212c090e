"""A verification of the fluid limit of one policy on one instance: what a paper can print instead of assuming an attractor."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.engine.checks import whole_number
from lagjax.errors import InputError
from lagjax.fluid.attractor import MOST_STEPS, Attractor, find_attractor, tolerance_of
from lagjax.fluid.fixed_point import fixed_point, lp_fixed_point
from lagjax.fluid.kinks import Kink, nearest_kink
from lagjax.fluid.map import FluidSystem, fluid_map, fluid_reward, fluid_system
from lagjax.fluid.spectrum import Spectrum, rate_slopes, spectrum
from lagjax.fluid.starts import MOST_STARTS, Starts, make_starts, worst_starts
from lagjax.instance import Instance
from lagjax.lp import check_selection, occ_upper_bound, solve_occ
from lagjax.policies import PolicyLike, build_policy

DEFAULT_STARTS = 200
LEAST_STEPS, ENOUGH_STEPS = 500, 100_000  # when the caller names no number of steps
AT_A_KINK = 1e-9  # distance at which the derivative is taken to jump at the fixed point itself
_MOST_WORST, _WORST_SHARE = 16, 8  # starts found by ascent: one in 8, at most 16
_SIDES, _ASIDE = 32, 1e-6  # directions in which the sides of a kink are looked for, and how far
_MOST_SPECTRA = 6
_FIT = (1e-11, 1e-3)  # distances between which the rate of convergence is fitted


@dataclasses.dataclass(frozen=True, eq=False)
class FluidReport:
    """What was found.

    Attributes:
      instance, load, policy, selection: names and numbers of what was verified.
      fixed_point: (R, d+1) x*: x_hat of the LP for LAG, else the only solution of x = G(x); float64.
      residual: max |G(x*) - x*|.
      reward: at x*, per step and copy. occ_ub_0: OPT(OCC-LP(0)), which no fixed point exceeds.
      spectrum: of the derivative at x*; where it jumps there, of the side with the largest radius found.
      sides: how many different derivatives were found at x*: 1 unless it lies on a kink.
      kink: the nearest kink of G.
      trajectories: the attractor search.
      measured_rate: factor per step by which the largest distance shrinks, fitted between 1e-3 and 1e-11; None if it never
        went there.
      seed: of the starts.
      tasks, servers: names of the instance's task types and servers.
    """

    instance: str
    load: float
    policy: str
    selection: str
    fixed_point: np.ndarray
    residual: float
    reward: float
    occ_ub_0: float
    spectrum: Spectrum
    sides: int
    kink: Kink
    trajectories: Attractor
    measured_rate: float | None
    seed: int
    tasks: tuple[str, ...]
    servers: tuple[str, ...]

    @property
    def repels(self) -> bool:
        """Whether x* is unstable: its derivative does not jump and has an eigenvalue outside the unit circle."""
        return self.kink.distance > AT_A_KINK and self.spectrum.radius > 1 + 1e-9

    @property
    def attractor(self) -> bool | str:
        """True, False or "undecided"."""
        if self.repels:
            return False
        return {"true": True, "false": False}.get(self.trajectories.verdict, "undecided")


def verify(
    instance: Instance,
    policy: PolicyLike = "lag",
    *,
    selection: str = "canonical",
    starts: int = DEFAULT_STARTS,
    steps: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> FluidReport:
    """Checks the fixed point, its spectrum and its kinks, and searches for trajectories that do not settle; in float64.

    Args:
      instance: at its load, at most 1 - k/R.
      policy: what `lagjax.policies.build_policy` takes.
      selection: which LP optimum makes LAG and ALG-SC-LP.
      starts: N, one in 8 of them (at most 16) made worse by gradient ascent.
      steps: T; by default as many as the spectrum needs to settle within the tolerance, at most 100,000.
      seed: of the random starts.
      progress: called with the steps done and T.

    Raises:
      InputError: an argument that cannot be used.
    """
    if not isinstance(instance, Instance):
        raise InputError(f"instance is {instance!r:.60}; give an Instance, such as lagjax.gallery('priority', 0.5)")
    whole_number("starts", starts, 1, MOST_STARTS)
    whole_number("seed", seed, 0, 2**64 - 1)
    if steps is not None:
        whole_number("steps", steps, 1, MOST_STEPS)
    check_selection(selection)
    built = build_policy(policy, instance, selection)
    system = fluid_system(instance, built)
    with jax.enable_x64(True):
        if isinstance(policy, str) and policy == "lag":
            point = lp_fixed_point(instance, solve_occ(instance, selection=selection))
        else:
            point = np.asarray(fixed_point(system).state)
        residual = float(jnp.max(jnp.abs(fluid_map(system, point) - point)))
        reward = float(fluid_reward(system, point))
        kink = nearest_kink(system, point)
        local, sides = _largest_spectrum(system, point, kink, seed)
        step = jax.tree_util.Partial(fluid_map, system)
        made = _starts(step, point, local.direction, starts, seed)
        trajectories = find_attractor(step, point, made, steps or _enough(local.radius, point), progress=progress)
    return FluidReport(
        instance.name, round(instance.load, 14), built.name, selection, point, residual, reward,
        occ_upper_bound(instance, 0.0), local, sides, kink, trajectories, _rate(trajectories), seed,
        instance.tasks, instance.servers,
    )  # fmt: skip


def _starts(step, point, direction, count, seed):
    worst = min(_MOST_WORST, count // _WORST_SHARE)
    made = make_starts(count - worst, point, direction, seed)
    if not worst:
        return made
    found = worst_starts(step, point, worst, seed)
    return Starts(np.concatenate([made.state, found.state]), made.kind + found.kind)


def _largest_spectrum(system: FluidSystem, point, kink: Kink, seed):
    """The spectrum at the fixed point; on a kink, the one of largest radius among the sides found at random."""
    if kink.distance > AT_A_KINK:
        return spectrum(system, point), 1
    random = np.random.Generator(np.random.PCG64((seed, 2)))
    sides: dict[bytes, np.ndarray] = {}
    for _ in range(_SIDES):
        aside = point.copy()
        aside[:, 0] = np.clip(aside[:, 0] + _ASIDE * random.standard_normal(len(point)), 0, 1)
        slopes = rate_slopes(system, aside)
        sides.setdefault((np.round(slopes, 9) + 0.0).tobytes(), aside)
    spectra = [spectrum(system, aside) for aside in list(sides.values())[:_MOST_SPECTRA]]
    return max(spectra, key=lambda found: found.radius), len(sides)


def _enough(radius, point):
    """Steps after which what the slowest eigenvalue leaves is within the tolerance, and no copy of the start is in service."""
    tolerance = tolerance_of(np.float64)
    settle = math.log(tolerance) / math.log(radius) if 0 < radius < 1 else 0.0 if radius == 0 else math.inf
    return int(min(ENOUGH_STEPS, max(LEAST_STEPS, 2 * point.shape[1] + math.ceil(min(1.2 * settle, ENOUGH_STEPS)))))


def _rate(trajectories: Attractor) -> float | None:
    farthest = trajectories.distance.max(axis=1)
    low, high = _FIT
    early = np.flatnonzero(farthest <= high)
    window = np.arange(early[0] if early.size else len(farthest), len(farthest))
    window = window[farthest[window] >= low]
    if window.size < 5:
        return None
    return float(np.exp(np.polyfit(trajectories.times[window], np.log(farthest[window]), 1)[0]))

"""The fluid limit: the map G, its fixed points and derivatives, and whether its trajectories settle."""

from lagjax.fluid.attractor import Attractor, find_attractor
from lagjax.fluid.compare import compare_with_simulation
from lagjax.fluid.fixed_point import FixedPoint, fixed_point, lp_fixed_point, stationary_state
from lagjax.fluid.kinks import Kink, nearest_kink
from lagjax.fluid.map import FluidSystem, assignment_rates, fluid_map, fluid_reward, fluid_system, iterate
from lagjax.fluid.spectrum import Spectrum, spectrum
from lagjax.fluid.starts import Starts, make_starts, worst_starts

__all__ = [
    "Attractor", "FixedPoint", "FluidSystem", "Kink", "Spectrum", "Starts", "assignment_rates", "compare_with_simulation",
    "find_attractor", "fixed_point", "fluid_map", "fluid_reward", "fluid_system", "iterate", "lp_fixed_point", "make_starts",
    "nearest_kink", "spectrum", "stationary_state", "worst_starts",
]  # fmt: skip

"""A fluid report in words."""

from __future__ import annotations

import math

from lagjax.fluid.verify import AT_A_KINK, FluidReport


def describe(report: FluidReport) -> str:
    """Returns the verdict and the figures behind it, a paragraph of short lines."""
    found, radius = report.trajectories, report.spectrum.radius
    steps, count = int(found.times[-1]), found.distance.shape[1]
    settled = int((found.distance[-1] <= found.tolerance).sum())
    lines = [
        f"{report.instance}, load {report.load:g}, policy {report.policy} ({report.selection} LP optimum)",
        _verdict(report, settled, count, steps),
        "",
        f"fixed point    residual {report.residual:.1e}; the only one of this policy (a damped map contracts the l1 norm)",
        f"reward         {report.reward:.9g} per step and copy, {100 * report.reward / report.occ_ub_0:.6g}% of "
        f"OPT(OCC-LP(0)) = {report.occ_ub_0:.9g}",
        f"spectrum       radius {radius:.6g} per step: {_pace(radius)}" + _sides(report),
        "measured       "
        + (
            "no rate: distances did not pass from 1e-3 to 1e-11"
            if report.measured_rate is None
            else f"distances shrink by {report.measured_rate:.6g} per step: {_pace(report.measured_rate)}"
        ),
        f"nearest kink   {report.kink.distance:.3g} away in the l1 norm of the free fractions: "
        f"task type {report.tasks[report.kink.task_type]}, {report.kink.cause}"
        + ("" if report.kink.server is None else f" ({report.servers[report.kink.server]})"),
        f"trajectories   {count} followed, {steps:,} steps each; {settled} ended within {found.tolerance:.1e} of the fixed "
        f"point, the farthest at {found.max_final_distance:.2e}",
        f"slowest start  {found.kind[found.slowest]}",
        "",
        "Distance: largest share, over server types, of copies that are not where the fixed point has them (total variation).",
        "Measured: fitted to the farthest trajectory from 1e-3 to 1e-11, with what its start still adds; so it may be faster.",
        "Kink: where the derivative of G jumps. Within that distance of the fixed point one derivative holds.",
    ]
    return "\n".join(lines)


def _verdict(report, settled, count, steps):
    found = report.trajectories
    if report.attractor is True:
        return f"ATTRACTOR: {_all_of(count)} followed, {steps:,} steps each, settled at the fixed point."
    if found.cycle_length == 1:
        what = f"a second fixed point holds a trajectory ({count} followed)"
    elif found.cycle_length is not None:
        what = f"a trajectory ends on a cycle of {found.cycle_length} steps ({count} followed)"
    elif report.repels:
        what = f"the fixed point repels: its derivative has an eigenvalue of modulus {report.spectrum.radius:.6g}"
    else:
        return f"UNDECIDED: trajectories had not settled after {steps:,} steps ({count - settled} of {count}){_advice(report)}"
    return f"NO ATTRACTOR: {what}."


def _advice(report):
    """How many steps would do, if the slowest eigenvalue says so."""
    radius, found = report.spectrum.radius, report.trajectories
    if not 0 < radius < 1 - 1e-9:
        return ", and the spectrum does not say that they will."
    more = math.log(found.tolerance / found.max_final_distance) / math.log(radius)
    return f"; at the rate of the spectrum that takes about {math.ceil(1.1 * more):,} more (--steps)."


def _pace(rate):
    if rate >= 1 - 1e-12:
        return "no decay"
    return (
        f"a tenth is left after {math.log(0.1) / math.log(rate):.4g} steps"
        if rate > 0
        else "in the end nothing is left"
    )


def _sides(report):
    if report.kink.distance > AT_A_KINK:
        return ""
    return f" (the derivative jumps at the fixed point: largest of {report.sides} sides found)"


def _all_of(count):
    return "the one trajectory" if count == 1 else f"all {count} trajectories"

"""Results as text."""

from __future__ import annotations

from collections.abc import Sequence

from lagjax.compatibility.draws import LANES
from lagjax.compatibility.model import LEVELS
from lagjax.stats import NOT_STATIONARY
from lagjax.studies.tables import align

SYMBOLS = (
    "q_i: fraction of servers with at least i tasks, time average, ± half-width of the 95% interval; times in mean services.\n"
    "sigma: singular value of the graph; bad types: bounds of the worst fraction of types whose share of some set of servers is\n"
    "off by epsilon. margin: 1 less the largest load of a server under random routing."
)
DISTANCE = "sup-distance: largest distance of an occupancy from the ODE's if half the servers, side by side, first hold 4 tasks."


def legend(cases: Sequence[dict]) -> str:
    """Returns what the tables of the described cases need said below them."""
    lines = [SYMBOLS]
    if any(case["sup_distance"] is not None for case in cases):
        lines.append(DISTANCE)
    if cases[0]["replicas"] == LANES:
        lines.append(f"one bundle of {LANES} replicas: no intervals; use --replicas {2 * LANES} or more")
    return "\n".join(lines)


def case_table(case: dict) -> str:
    """Returns the occupancies of one described case beside the fixed point."""
    lines = [
        [
            str(row["level"]),
            _with(row["occupancy"], row["occupancy_ci95"]),
            _number(row["fixed_point"]),
            f"{row['occupancy'] - row['fixed_point']:+.2g}",
        ]
        for row in case["rows"]
    ]
    title = (
        f"{case['graph']}, {case['servers']} servers, {case['types']} types, {case['policy']}, load {case['load']:g}"
    )
    return "\n".join([title, align(["i", "q_i", "fixed point", "difference"], lines), *_figures(case)])


def _figures(case):
    sojourn = _with(case["mean_sojourn_time"], case["mean_sojourn_time_ci95"])
    yield (
        f"mean queue length {_with(case['mean_queue_length'], case['mean_queue_length_ci95'])} (fixed point "
        f"{case['fixed_point_queue_length']:.5g}), mean sojourn time {sojourn} ({case['fixed_point_sojourn_time']:.5g})"
    )
    yield (
        f"sigma {case['sigma']:.4g}; bad types at epsilon {case['epsilon']:g}: {_percent(case['bad_types_at_least'])}% to "
        f"{_percent(case['bad_types_at_most'])}%; server degree {case['mean_server_degree']:.4g}; margin "
        f"{case['subcriticality_margin']:.3g}"
    )
    if case["overloaded_servers"]:
        yield f"{case['overloaded_servers']} servers would be overloaded under random routing (allowed)"
    if case["sup_distance"] is not None:
        yield f"sup-distance to the ODE from an uneven start: {_with(case['sup_distance'], case['sup_distance_ci95'])}"
    above = case["queue_length_above_levels"]
    if above > 1e-3 * case["mean_queue_length"]:
        yield f"levels above {LEVELS} are not counted one by one; they hold {above:.4g} of the mean queue length"
    if case["stationary"] is False:
        yield (
            f"{NOT_STATIONARY}: after {case['warmup']} mean service times the start may still show in {case['time']} more (drift "
            f"of the mean queue length {case['drift']:+.3g}); use more --time and --warmup"
        )


def comparison(cases: Sequence[dict]) -> str:
    """Returns one line per described case."""
    header = [
        "graph", "servers", "load", "policy", "degree", "sigma", "bad types %", "q_1", "q_2", "q_3", "queue length",
        "fixed point", "sup-distance",
    ]  # fmt: skip
    lines = []
    for case in cases:
        occupancy = [_number(row["occupancy"]) for row in case["rows"][:3]]
        lines.append(
            [
                case["graph"], str(case["servers"]), f"{case['load']:g}", case["policy"], f"{case['mean_server_degree']:.4g}",
                f"{case['sigma']:.3f}", f"{_percent(case['bad_types_at_least'])} to {_percent(case['bad_types_at_most'])}",
                *(occupancy + ["0"] * (3 - len(occupancy))), _queue_length(case),
                f"{case['fixed_point_queue_length']:.4g}",
                "-" if case["sup_distance"] is None else _with(case["sup_distance"], case["sup_distance_ci95"]),
            ]
        )  # fmt: skip
    return align(header, lines)


def _queue_length(case):
    said = "" if case["stationary"] is not False else f" ({NOT_STATIONARY})"
    return _with(case["mean_queue_length"], case["mean_queue_length_ci95"]) + said


def _percent(share):
    return f"{100 * share:.3g}" if share > 1e-12 else "0"


def _number(value):
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}" if value > 0 else "0"


def _with(mean, half):
    return _number(mean) + ("" if half is None else f" ±{half:.1g}")

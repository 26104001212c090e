"""A solution of OCC-LP in words, short at any size, and as the JSON that programs read."""

from __future__ import annotations

import numpy as np

from lagjax.instance import Instance
from lagjax.lp import OccSolution
from lagjax.studies.tables import align

DEAREST = 10  # servers that are named


def summary(instance: Instance, occ: OccSolution, *, asked: str, kiid: float | None, table: bool) -> str:
    """The bound, how it was found, the dearest servers, the spread of the prices, and how many indices are zero.

    Args:
      instance: at its load. occ: its solution.
      asked: the method that was asked for.
      kiid: OPT(KIID), or None where it was not asked for.
      table: whether the index of every pair follows.
    """
    parts = ["\n".join(_head(instance, occ, asked, kiid)), _servers(instance, occ), _spread(instance, occ)]
    parts.append("\n".join(_signs(occ)))
    if table:
        parts.append(f"Index by task type and server, the share of a zero in brackets\n{_table(instance, occ)}")
    else:
        parts.append("The index of all pairs: --table prints it; --out DIR writes it, with shares and prices.")
    return "\n\n".join(parts)


def payload(instance: Instance, occ: OccSolution, kiid: float | None) -> dict:
    """Everything that is known of the solution, as plain values."""
    return {
        "instance": instance.name,
        "load": round(instance.load, 9),
        "servers_per_task": instance.servers_per_task,
        "blocking": occ.blocking,
        "selection": occ.selection,
        "method": occ.method,
        "iterations": occ.iterations,
        "objective": occ.objective,
        "occ_ub": occ.bound,
        "kiid_ub": kiid,
        "status": occ.status,
        "primal_residual": occ.primal_residual,
        "dual_residual": occ.dual_residual,
        "relative_gap": occ.duality_gap,
        "duality_gap": occ.duality_gap,
        "ties_undecided": occ.ties_undecided,
        "face_dimensions": list(occ.face_dimensions),
        "tasks": list(instance.tasks),
        "servers": list(instance.servers),
        "arrival_rate": np.asarray(instance.arrival_rate).tolist(),
        "mean_duration": instance.mean_duration.tolist(),
        "task_price": occ.task_price.tolist(),
        "server_price": occ.server_price.tolist(),
        "free_fraction": occ.free_fraction.tolist(),
        "index": occ.index.tolist(),
        "tie_weight": occ.tie_weight.tolist(),
        "assignment_rate": occ.assignment_rate.tolist(),
    }


def _head(instance, occ, asked, kiid):
    yield (
        f"{instance.name}: R = {instance.num_servers} servers, V = {instance.num_types} task types, k = "
        f"{instance.servers_per_task}, load {instance.load:.4g} (feasible up to {instance.max_load:.4g})"
    )
    more = "" if kiid is None else f"    OPT(KIID) = {kiid:.9g}"
    yield f"OPT(OCC-LP({occ.blocking:g})) = {occ.objective:.9g} reward per step{more}"
    steps = f", {occ.iterations} iterations" if occ.iterations else ""
    yield f"method {occ.method}{_why(instance, occ, asked)}{steps}, status {occ.status}, selection {occ.selection}{_face(occ)}"
    yield (
        f"residuals {occ.primal_residual:.1e} (primal) {occ.dual_residual:.1e} (dual), relative duality gap "
        f"{occ.duality_gap:.1e}"
    )


def _face(occ):
    if occ.method == "dual":
        return ""
    shares, prices = occ.face_dimensions
    if shares == prices == 0:
        return " (the only optimum)"
    return f" (optima are many: shares can move in {shares} directions, prices in {prices})"


def _why(instance, occ, asked):
    if asked != "auto":
        return ""
    reason = "are too many for an exact method" if occ.method == "dual" else "are few enough for an exact method"
    return f" (auto: {instance.scores.size:,} pairs {reason})"


def _servers(instance, occ):
    dear = np.argsort(-occ.server_price, kind="stable")[:DEAREST]
    price = _cleared(instance, occ, occ.server_price)
    lines = [
        [
            instance.servers[r],
            _number(price[r]),
            _number(occ.free_fraction[r]),
            f"{int((occ.index[:, r] > occ.zero_tolerance).sum())} of {instance.num_types}",
        ]
        for r in dear
    ]
    total = instance.num_servers
    title = f"The {len(dear)} dearest of {total} servers" if total > len(dear) else "Servers, the dearest first"
    return f"{title}\n{align(['server', 'price q', 'free fraction', 'positive index for'], lines)}"


def _spread(instance, occ):
    lines = [
        [what, *map(_number, (values.min(), np.median(values), values.max())), f"{(values == 0).sum():,}"]
        for what, values in (
            ("q, of a server's time, reward per step", _cleared(instance, occ, occ.server_price)),
            ("ell, of a task type, reward per server", occ.task_price),
        )
    ]
    return align(["Prices", "lowest", "median", "highest", "zero"], lines)


def _cleared(instance, occ, price):
    """Prices of servers, 0 where no task's index tells them from 0."""
    return np.where(price * instance.mean_duration.max() <= occ.zero_tolerance, 0.0, price)


def _signs(occ):
    zero = np.abs(occ.index) <= occ.zero_tolerance
    shared = zero & (occ.tie_weight > 0)
    above, below = (occ.index > 0) & ~zero, (occ.index < 0) & ~zero
    yield (
        "Index L(v, r) = s_vr - ell_v - E[D_v] q_r: LAG takes positive ones first, then zeros by their shares, then negative"
    )
    yield "ones, each from the top. For a task that is not in the file: servers by s_r - E[D] q_r, the largest first."
    yield (
        f"{occ.index.size:,} pairs: {above.sum():,} positive, {zero.sum():,} zero ({shared.sum():,} with a share), "
        f"{below.sum():,} negative; {occ.ties_undecided:,} undecided"
    )


def _table(instance, occ):
    lines = [
        [
            task,
            _number(price),
            *(_number(x) + (f" ({w:.3f})" if x == 0 and w > 0 else "") for x, w in zip(row, weight, strict=True)),
        ]
        for task, price, row, weight in zip(instance.tasks, occ.task_price, occ.index, occ.tie_weight, strict=True)
    ]
    return align(["task", "price ell", *instance.servers], lines)


def _number(value):
    return f"{value:.4g}" if value else "0"

"""One server as an arm: what its time is worth when every task that it serves costs a price.

q(ell) is the root of q = sum_u lambda_u max(s_u - ell - E[D_u] q, 0): the best reward per step of a server that may take or leave
each arriving task and pays ell for each one taken. It is the largest over all sets A of task types of sum_A lambda_u (s_u - ell)
/ (1 + sum_A lambda_u E[D_u]), so convex, decreasing and piecewise linear in ell.
"""

from __future__ import annotations

import itertools

import numpy as np

_MAX_ITERATIONS = 1000
_EQUAL = 1e-11  # relative; a value this small is zero


def arm_value(price: float, scores, rate, duration) -> float:
    """q(ell), reward per step.

    Args:
      price: ell, reward per task.
      scores: (V,) s_u of this server.
      rate: (V,) lambda_u, tasks per step.
      duration: (V,) E[D_u], steps.
    """
    intercept, slope = _line(price, scores, rate, duration)
    return intercept - slope * price


def indifference_prices(scores, rate, duration) -> list[np.ndarray]:
    """For each type the increasing array of prices ell with s_v - ell = E[D_v] q(ell).

    One for a type that is worth its time at all lower prices and at none above. With unequal durations there
    can be none (never worth it), two (only between them) or twice the same (indifferent there, never better).

    The pieces of q are found exactly: two lines of the upper envelope meet on q, in a breakpoint, or below it
    when q has another line between them.

    Args:
      scores: (V,) s_u of this server. rate: (V,) tasks per step. duration: (V,) E[D_u], steps.
    """
    scores, rate, duration = (np.asarray(x, dtype=np.float64) for x in (scores, rate, duration))
    scale = float(np.abs(scores).max()) or 1.0
    high = float(scores.max()) + scale
    steepest = arm_value(-1.0, np.zeros_like(scores), rate, duration)  # slope of the last piece on the left
    low = -scale
    while (ends := _line(low, scores, rate, duration))[1] < steepest * (1 - _EQUAL):
        low *= 4
    breaks: list[float] = []
    stack = [((low, ends), (high, _line(high, scores, rate, duration)))]
    while stack:
        (x0, line0), (x1, line1) = stack.pop()
        if line0[1] - line1[1] <= _EQUAL * (line0[1] + 1e-300):
            continue
        x = (line0[0] - line1[0]) / (line0[1] - line1[1])
        between = _line(x, scores, rate, duration)
        envelope = line0[0] - line0[1] * x
        size = max(abs(line0[0]), abs(line0[1] * x), 1e-300)
        if between[0] - between[1] * x <= envelope + _EQUAL * size:
            breaks.append(x)
        else:
            stack += [((x0, line0), (x, between)), ((x, between), (x1, line1))]
    nodes = np.array([2 * low, *sorted(breaks), high])
    value = np.array([arm_value(x, scores, rate, duration) for x in nodes])
    worth = scores[:, None] - nodes - duration[:, None] * value
    size = np.abs(nodes) + duration[:, None] * value + scale
    return [_roots(nodes, w, np.abs(w) <= 1e-10 * s) for w, s in zip(worth, size, strict=True)]


def _roots(nodes, worth, zero):
    """Zeros of a piecewise linear function given at nodes; one that only touches counts twice."""
    sign = np.where(zero, 0.0, np.sign(worth))
    firm = np.flatnonzero(sign)
    roots = []
    for i, j in itertools.pairwise(firm):
        if j > i + 1:  # zero nodes in between
            roots += [nodes[i + 1]] * (1 if sign[i] != sign[j] else 2)
        elif sign[i] != sign[j]:
            roots.append(nodes[i] + worth[i] / (worth[i] - worth[j]) * (nodes[j] - nodes[i]))
    return np.array(roots)


def _line(price, scores, rate, duration):
    """(intercept, slope) of q's piece at this price, q = intercept - slope ell, by policy iteration."""
    taken, value = None, 0.0
    for _ in range(_MAX_ITERATIONS):
        now = scores - price - duration * value > 0
        if taken is not None and np.array_equal(now, taken):
            break
        whole = 1 + (rate * duration)[now].sum()
        intercept, slope = (rate * scores)[now].sum() / whole, rate[now].sum() / whole
        new = intercept - slope * price
        if taken is not None and new <= value:
            break
        taken, value, line = now, new, (float(intercept), float(slope))
    return line

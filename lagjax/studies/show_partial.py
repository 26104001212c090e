"""A comparison of dispatching policies as rows, a table, a picture and a section of a report."""

from __future__ import annotations

import functools
import json

import numpy as np
import xarray as xr

from lagjax.plots.partial import draw_below, draw_reward, plot_horizon
from lagjax.studies.dataset import rows_of
from lagjax.studies.page import Picture, Section, Table
from lagjax.studies.study import Study
from lagjax.studies.tables import align, plus_minus, said

ROW_KEYS = (
    "policy", "discounted_reward", "discounted_ci95", "average_reward", "average_ci95", "below_oracle_percent",
    "below_oracle_ci95", "value", "optimal_value", "horizon", "replicas", "oracle", "seen_value",
    "drift", "drift_ci95", "stationary",
)  # fmt: skip


def rows(data: xr.Dataset) -> list[dict]:
    """One dict per policy with the keys `ROW_KEYS` and plain Python values; None where there is none."""
    last = data.isel(horizon=-1)
    return list(
        rows_of(
            last, ("policy",), ROW_KEYS,
            lambda cell: {
                "replicas": cell.sizes["replica"], "oracle": data.attrs["oracle"] or None,
                "below_oracle_percent": cell.below_oracle,
            },
        )
    )  # fmt: skip


def table(data: xr.Dataset) -> str:
    """The table of a comparison, between what was simulated and the optima that are known."""
    return "\n".join([head(data), align(*_lines(data)), *_optima(data)])


def _optima(data):
    kind = "average" if _configuration(data)["discount"] == 1 else "for ever"
    best = "of all policies that see what the dispatcher sees"
    for value, what in ((data.optimal_value, best), (data.seen_value, "with all backlogs seen")):
        if np.isfinite(value.item()):
            yield f"optimum {what}, {kind}: {value.item():.6g}"


def _configuration(data):
    return json.loads(data.attrs["configuration"])


def head(data: xr.Dataset) -> str:
    """What was simulated, in a line."""
    of, horizon = _configuration(data), int(data.horizon.values[-1])
    total = "total" if of["discount"] == 1 else f"discounted (beta {of['discount']:g})"
    count = len(of["rates"])
    return (
        f"N = {count} server{'s' if count > 1 else ''}, {of['model']} model, K = {of['capacity']}, start {of['start']}: jobs "
        f"taken, {total} over {horizon} slots, and per slot in the second half (at most {np.sum(of['rates']):g} can be served)"
    )


def _lines(data):
    average, two = _configuration(data)["discount"] == 1, bool(np.isfinite(data.optimal_value.item()))
    oracle, lines = data.attrs["oracle"], []
    for policy in map(str, data.policy.values):
        one = data.sel(policy=policy).isel(horizon=-1)
        lines.append(
            [
                policy, _reward(one.discounted_reward, one.discounted_ci95),
                _reward(one.average_reward, one.average_ci95) + said(one),
                *([_reward(one.below_oracle, one.below_oracle_ci95)] if oracle else []),
                *([f"{one.value.item():.6g}"] if two else []),
            ]
        )  # fmt: skip
    header = ["policy", "total reward" if average else "discounted reward", "average reward"]
    header += [f"% below {oracle}"] * bool(oracle) + ["exact average" if average else "exact, for ever"] * two
    return header, lines


_reward = functools.partial(plus_minus, form=".5g", half_form=".2g")


def lead(data: xr.Dataset) -> str:
    """What was simulated, and how."""
    return f"{head(data)}. {data.sizes['replica']:,} replicas, seed {data.attrs['seed']}."


def sections(data: xr.Dataset):
    """One, with both pictures and the table."""
    drawn = (
        (draw_reward, "Discounted reward against the horizon"),
        (draw_below, "Percent below the best policy that sees all backlogs, against the horizon"),
    )
    pictures = [
        Picture(functools.partial(draw, data=data), says) for draw, says in drawn[: 2 if data.attrs["oracle"] else 1]
    ]
    yield Section(
        "Rewards",
        says=list(_optima(data)),
        pictures=pictures,
        tables=[Table("Jobs taken by each policy", *_lines(data))],
    )


STUDY = Study(
    "partial", rows, table, lambda data: {"partial": plot_horizon(data)}, lead, sections,
    lambda found: [f"average reward of {row['policy']}" for row in found if row["stationary"] is False],
)  # fmt: skip

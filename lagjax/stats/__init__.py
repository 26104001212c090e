"""Statistics: means with intervals from independent replicas, what is left of a start, and slopes against size."""

from lagjax.stats.estimate import Estimate, estimate, percent_of_bound, ratio_of_means
from lagjax.stats.slope import Slope, log_log_slope
from lagjax.stats.start import (
    FALSE_ALARM,
    NOT_STATIONARY,
    RELAXATIONS,
    RUN_ON,
    Left,
    left_of_start,
    pooled_relaxation,
    told,
    warmup_steps,
)

__all__ = [
    "FALSE_ALARM", "NOT_STATIONARY", "RELAXATIONS", "RUN_ON", "Estimate", "Left", "Slope", "estimate", "left_of_start",
    "log_log_slope", "percent_of_bound", "pooled_relaxation", "ratio_of_means", "told",
    "warmup_steps",
]  # fmt: skip

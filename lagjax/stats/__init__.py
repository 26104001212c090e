"""Statistics: means with intervals from independent replicas, paired differences, and slopes against size."""

from lagjax.stats.estimate import Estimate, estimate, percent_of_bound, ratio_of_means
from lagjax.stats.slope import Slope, log_log_slope

__all__ = ["Estimate", "Slope", "estimate", "log_log_slope", "percent_of_bound", "ratio_of_means"]

"""Statistics: means with intervals from independent replicas, and paired differences."""

from lagjax.stats.estimate import Estimate, estimate, percent_of_bound

__all__ = ["Estimate", "estimate", "percent_of_bound"]

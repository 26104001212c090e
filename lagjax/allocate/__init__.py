"""How a budget is shared among servers: the waterfill and its rounding (Lag, Appendix A)."""

from lagjax.allocate.race_limit import race_limit
from lagjax.allocate.rounding import largest_remainders
from lagjax.allocate.waterfill import waterfill

__all__ = ["largest_remainders", "race_limit", "waterfill"]

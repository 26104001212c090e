"""Index policies tuned for one finite system, starting from LAG."""

from lagjax.tune.named import NAMES, SINGLE_NAMES, SLOW, TUNED, named_policy

__all__ = ["NAMES", "SINGLE_NAMES", "SLOW", "TUNED", "named_policy"]

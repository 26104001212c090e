"""Index policies tuned for one finite system, starting from LAG."""

from lagjax.tune.racing import Race, race
from lagjax.tune.tuned import NAMES, SINGLE_NAMES, SLOW, TUNED, Tuned, named_policy, tune

__all__ = ["NAMES", "SINGLE_NAMES", "SLOW", "TUNED", "Race", "Tuned", "named_policy", "race", "tune"]

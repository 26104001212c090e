"""Index policies tuned for one finite system, starting from LAG."""

from lagjax.tune.named import NAMES, SINGLE_NAMES, SLOW, TUNED, named_policy
from lagjax.tune.racing import Race, race
from lagjax.tune.tuned import Tuned, tune

__all__ = ["NAMES", "SINGLE_NAMES", "SLOW", "TUNED", "Race", "Tuned", "named_policy", "race", "tune"]

"""Random: any free servers."""

from __future__ import annotations

import numpy as np

from lagjax.instance import Instance
from lagjax.policies.table import Policy, make_policy


def uniform(instance: Instance) -> Policy:
    """k free servers, uniformly at random (Lag, section 5.1)."""
    return make_policy("random", np.zeros((instance.num_types, instance.num_servers)))

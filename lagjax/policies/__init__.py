"""Policies as data: tiers and weights per task type."""

from lagjax.policies.registry import POLICIES, PolicyLike, build_policy, selection_matters
from lagjax.policies.table import Policy, from_priorities, make_policy, strict_order

__all__ = [
    "POLICIES",
    "Policy",
    "PolicyLike",
    "build_policy",
    "from_priorities",
    "make_policy",
    "selection_matters",
    "strict_order",
]

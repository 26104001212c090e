"""Dispatching with partial queue information (Chadaga and Modiano): beliefs about servers that are seen only when they are
chosen, Whittle indices with a certificate, the optimum of two servers, and a batched simulator."""

from lagjax.partial_information.arms import Arm, arms_of
from lagjax.partial_information.index import IndexTable, adaptive_greedy, closed_form, whittle_indices
from lagjax.partial_information.iteration import ExactReward
from lagjax.partial_information.pair import evaluate, optimum
from lagjax.partial_information.policies import POLICIES, Dispatching, build_policies, from_index
from lagjax.partial_information.seen import seen_optimum, seen_states, shortest_queue
from lagjax.partial_information.simulate import Rewards, simulate_dispatching
from lagjax.partial_information.subsidy import Indexability, Passive, indexability, subsidised, thresholds
from lagjax.partial_information.system import System, make_system

__all__ = [
    "POLICIES",
    "Arm",
    "Dispatching",
    "ExactReward",
    "IndexTable",
    "Indexability",
    "Passive",
    "Rewards",
    "System",
    "adaptive_greedy",
    "arms_of",
    "build_policies",
    "closed_form",
    "evaluate",
    "from_index",
    "indexability",
    "make_system",
    "optimum",
    "seen_optimum",
    "seen_states",
    "shortest_queue",
    "simulate_dispatching",
    "subsidised",
    "thresholds",
    "whittle_indices",
]

"""JSQ(d) load balancing under strict compatibility constraints (Rutten and Mukherjee, 2023)."""

from lagjax.compatibility.certificate import Certificate, certify, singular_value
from lagjax.compatibility.families import FAMILIES, blocks, complete, random, regular, ring
from lagjax.compatibility.files import read_graph
from lagjax.compatibility.graph import Graph, check_load, graph_of, subcriticality
from lagjax.compatibility.mean_field import fixed_point, mean_queue_length, mean_sojourn, trajectory
from lagjax.compatibility.policies import Policy, join_idle_queue, jsq, named_policy, random_routing
from lagjax.compatibility.run import bundle_means, simulate, trace

__all__ = [
    "FAMILIES", "Certificate", "Graph", "Policy", "blocks", "bundle_means", "certify", "check_load", "complete",
    "fixed_point", "graph_of", "join_idle_queue", "jsq", "mean_queue_length", "mean_sojourn", 
    "named_policy", "random", "random_routing", "read_graph", "regular", "ring", "simulate", "singular_value", "subcriticality",
    "trace", "trajectory",
]  # fmt: skip

"""Routing jobs to parallel multiserver queues with finite room, with least loss (Nino-Mora, EJOR 2012): blocking formulas,
index policies, the optimal splitting, exact losses and the optimum of small systems, and a batched simulator."""

from lagjax.loss_routing.erlang import blocking, erlang_b, erlang_c, log_blocking, mean_number, queue
from lagjax.loss_routing.exact import ExactLoss, LeastLoss, exact_loss, least_loss
from lagjax.loss_routing.policies import POLICIES, RoutingPolicy, build_routing, from_index
from lagjax.loss_routing.simulate import LossCounts, simulate_routing
from lagjax.loss_routing.splitting import Bounds, Splitting, optimal_splitting, relaxation_bounds, split_loss
from lagjax.loss_routing.system import System, make_system

__all__ = [
    "POLICIES",
    "Bounds",
    "ExactLoss",
    "LeastLoss",
    "LossCounts",
    "RoutingPolicy",
    "Splitting",
    "System",
    "blocking",
    "build_routing",
    "erlang_b",
    "erlang_c",
    "exact_loss",
    "from_index",
    "least_loss",
    "log_blocking",
    "make_system",
    "mean_number",
    "optimal_splitting",
    "queue",
    "relaxation_bounds",
    "simulate_routing",
    "split_loss",
]

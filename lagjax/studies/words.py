"""What the variables and coordinates of the studies are called, counted in and mean: one table for Datasets and rows."""

from __future__ import annotations

from typing import NamedTuple

INTERVAL = "_ci95"
# Numbers that rows have without a decimal point.
WHOLE = frozenset(
    {
        "copies", "dispatchers", "events", "horizon", "level", "overloaded_servers", "replicas", "servers", "states",
        "steps", "time", "types", "warmup",
    }
)  # fmt: skip


class Words(NamedTuple):
    """Attributes of a variable."""

    long_name: str
    units: str
    description: str


def words_of(name: str, study: str = "") -> Words:
    """Returns what a variable or coordinate of a study is.

    Raises:
      KeyError: nothing is said of it.
    """
    for prefix in ("assigned_", "task_", "server_"):  # followed by the name of an instance
        if name.startswith(prefix):
            return Words(*_PER_INSTANCE[prefix])
    own = _OWN.get(study, {})
    if name in own:
        return Words(*own[name])
    if name.endswith(INTERVAL):
        of = words_of(_INTERVALS.get(name, name.removesuffix(INTERVAL)), study)
        said = "half-width of the 95% interval, Student's t over independent replicas; NaN where there is none"
        return Words(f"{of.long_name}: half-width", of.units, f"{of.long_name}: {said}")
    return Words(*_COMMON[name])


_INTERVALS = {  # intervals that are not called after what they belong to
    "reward_ci95": "reward_per_step",
    "percent_ci95": "percent_of_occ_ub",
    "loss_ci95": "loss_rate",
    "discounted_ci95": "discounted_reward",
    "average_ci95": "average_reward",
}
_PER_INSTANCE = {
    "assigned_": ("assignments", "servers per step",
        "servers given to tasks of a type, one row for each server, per step of the counted steps, mean over replicas"),
    "task_": ("task type", "1", "names of the instance's task types"),
    "server_": ("server", "1", "names of the instance's servers"),
}  # fmt: skip
_COMMON = {
    "instance": ("instance", "1", "name of the system"),
    "offered_load": ("load", "1", "rho: mean number of servers that all tasks would keep busy, per server, if none were lost"),
    "policy": ("policy", "1", "who chooses the servers"),
    "than": ("policy compared with", "1", "the policy that another one is compared with on the same tasks"),
    "replica": ("replica", "1", "independent run; the same number is the same tasks under every policy"),
    "system_size": ("size", "1", "place of the pair (copies, dispatchers) in the study"),
    "copies": ("copies n", "1", "copies of each server for each dispatcher"),
    "dispatchers": ("dispatchers m", "1", "dispatchers, each with one task a step at most"),
    "reward": ("reward", "reward per step", "reward of each replica per counted step (and per copy, where the system is scaled)"),
    "reward_per_step": ("reward per step", "reward per step", "mean over replicas of the reward per counted step"),
    "percent_of_occ_ub": ("reward in % of OCC-UB", "percent",
        "reward per step as a percentage of OPT(OCC-LP(B)) at the blocking B measured"),
    "percent_of_optimum": ("reward in % of the optimum", "percent",
        "reward per step as a percentage of the best that any policy can do; NaN where that is not known"),
    "difference": ("paired difference", "points of OCC-UB",
        "percent_of_occ_ub of `policy` less that of `than`, on the same tasks"),
    "blocked": ("blocking of a replica", "1", "fraction of the counted tasks of a replica that were lost; of every policy alike"),
    "blocking": ("blocking B", "1", "fraction of the counted tasks that were lost, mean over replicas; of every policy alike"),
    "occ_ub": ("OCC-UB", "reward per step", "OPT(OCC-LP(B)) at the blocking B measured: the upper bound"),
    "occ_ub_0": ("OPT(OCC-LP(0))", "reward per step", "the bound without blocking, that of the fluid limit: none at finite size"),
    "kiid_ub": ("OPT(KIID)", "reward per step", "the bound of the KIID model, for reference; NaN where it was not solved"),
    "optimal_reward": ("optimum", "reward per step", "exact reward of the best policy; NaN where it is not known"),
    "optimal_percent_of_occ_ub": ("optimum in % of OCC-UB", "percent",
        "the optimum as a percentage of OPT(OCC-LP(B)) at the exact blocking B"),
    "steps": ("steps counted", "steps", "steps of each replica that were counted"),
    "warmup": ("steps dropped", "steps", "steps of each replica before those that were counted"),
    "tasks": ("tasks counted", "tasks", "tasks that arrived in the counted steps of all replicas, lost ones included"),
    "drift": ("drift", "points of OCC-UB", "second half of what was counted less the first: what is left of the start"),
    "stationary": ("stationary", "1", "1 where nothing is seen to be left of the start, 0 where something is, NaN if unknown"),
    "selection_matters": ("selection matters", "1",
        "1 where the policy comes from an LP with several optima that make different policies, NaN if unknown"),
}  # fmt: skip
_OWN = {  # words of one study, or of another meaning there
    "route": {
        "arrival_rate": ("arrivals", "jobs per unit time", "lambda: rate of arriving jobs"),
        "traffic": ("traffic", "1", "arrivals over what all servers together can serve"),
        "loss": ("loss of a replica", "jobs per unit time", "rate of lost jobs of each replica"),
        "loss_rate": ("loss", "jobs per unit time", "rate of lost jobs, mean over replicas"),
        "seen": ("replicas with a loss", "replicas", "replicas that saw a loss"),
        "drift": ("drift", "jobs per unit time", "loss rate of the second half less that of the first"),
        "exact_loss": ("exact loss", "jobs per unit time", "stationary rate of lost jobs without noise; NaN if not computed"),
        "residual": ("residual", "1", "largest residual of the balance equations of exact_loss"),
        "difference": ("paired difference", "jobs per unit time", "loss rate of `policy` less that of `than` on the same events"),
        "ratio": ("paired ratio", "1", "loss rate of `policy` over that of `than`, on the same events"),
        "loss_lower_bound": ("lower bound", "jobs per unit time", "no routing loses less"),
        "optimal_loss": ("least loss", "jobs per unit time", "exact loss of the best routing; NaN if not computed"),
        "optimal_bracket": ("bracket of the least loss", "jobs per unit time", "width of what value iteration leaves"),
        "states": ("joint states", "states", "states of all queues together"),
        "events": ("events counted", "events", "events of the uniformised chain of each replica that were counted"),
    },
    "compat": {
        "level": ("level i", "tasks", "a server counts at level i if it has at least i tasks"),
        "bundle": ("bundle", "1", "64 replicas that share addresses: one independent observation"),
        "graph": ("graph", "1", "family or file of the compatibility graph"),
        "servers": ("servers N", "servers", "servers of the graph"),
        "types": ("task types M", "task types", "task types of the graph"),
        "mean_server_degree": ("server degree", "task types", "task types that a server can do, mean over servers"),
        "offered_load": ("load", "1", "lambda: tasks arriving per server and mean service time"),
        "occupancy": ("occupancy q_i", "1", "fraction of servers with at least i tasks, time average of each bundle"),
        "queue_length": ("queue length of a bundle", "tasks per server", "tasks per server, time average of each bundle"),
        "fixed_point": ("fixed point q*_i", "1", "occupancy at the fixed point of the mean field"),
        "mean_queue_length": ("queue length", "tasks per server", "tasks per server, mean over bundles"),
        "fixed_point_queue_length": ("queue length at the fixed point", "tasks per server", "sum of fixed_point over all levels"),
        "mean_sojourn_time": ("sojourn time", "mean service times", "time of a task in the system, by Little's law"),
        "fixed_point_sojourn_time": ("sojourn time at the fixed point", "mean service times", "the same at the fixed point"),
        "drift": ("drift", "tasks per server", "queue length of the second half of the time less that of the first"),
        "queue_length_above_levels": ("tasks above the levels", "tasks per server", "queue length beyond the last level"),
        "sup_distance": ("sup-distance", "1",
            "largest distance of an occupancy from the ODE's over levels and times, from an uneven start; NaN if not followed"),
        "sigma": ("singular value", "1", "second singular value of the normalised graph"),
        "epsilon": ("epsilon", "1", "deviation that makes a type badly connected"),
        "bad_types_at_least": ("bad types, lower bound", "1", "no smaller fraction of types is badly connected to some servers"),
        "bad_types_at_most": ("bad types, upper bound", "1", "no set of servers has a larger fraction of badly connected types"),
        "subcriticality_margin": ("margin", "1", "1 less the largest load of a server under random routing"),
        "overloaded_servers": ("overloaded servers", "servers", "servers that random routing would overload"),
        "time": ("time counted", "mean service times", "time of each replica that was counted"),
        "warmup": ("time dropped", "mean service times", "time of each replica before that"),
        "replicas": ("replicas", "replicas", "replicas simulated"),
        "events": ("events counted", "events", "events of the uniformised chain that were counted, all replicas together"),
    },
    "exact": {
        "blocking": ("blocking B", "1", "exact stationary probability that a task is lost; of every policy alike"),
        "occ_ub": ("OCC-UB", "reward per step", "OPT(OCC-LP(B)) at the exact blocking B: the upper bound"),
        "reward_per_step": ("reward per step", "reward per step", "exact stationary reward per step"),
        "percent_of_occ_ub": ("reward in % of OCC-UB", "percent", "reward_per_step as a percentage of occ_ub"),
        "states": ("states", "states", "states of the policy's chain, servers that it need not tell apart counted together"),
        "optimal_states": ("states of the optimum", "states", "states over which the best policy was found"),
        "level_bound": ("bound by running tasks", "reward per step",
            "no policy earns more; NaN unless durations are geometric with one mean"),
    },
    "partial": {
        "horizon": ("horizon", "slots", "slots from the start on"),
        "discounted_reward": ("discounted reward", "jobs", "jobs taken over the horizon, discounted; undiscounted at discount 1"),
        "average_reward": ("average reward", "jobs per slot", "jobs taken per slot in the second half of the horizon"),
        "drift": ("drift", "jobs per slot", "average of the last quarter of the horizon less that of the one before"),
        "value": ("exact reward", "jobs", "expected reward for ever (per slot at discount 1); NaN unless there are two servers"),
        "optimal_value": ("optimum", "jobs", "the best that sees what the dispatcher sees; NaN unless there are two servers"),
        "seen_value": ("optimum with all backlogs seen", "jobs", "the most that full information allows; NaN if not computed"),
        "reward": ("reward up to a horizon", "jobs", "jobs taken up to the horizon, discounted, mean over replicas"),
        "below_oracle": ("below the oracle", "percent", "(R_oracle - R) / R_oracle on the same departures; NaN without one"),
        "lead": ("lead", "jobs", "reward of the first policy less this one's, on the same departures"),
        "discounted": ("discounted reward of a replica", "jobs", "jobs that a replica took over the horizon, discounted"),
    },
}  # fmt: skip

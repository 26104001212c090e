"""The exact blocking probability: what every work-conserving policy loses (Lag, Lemma 3.1)."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

from lagjax.errors import InputError
from lagjax.exact.chain import assign_matrix, build_chain
from lagjax.exact.service import service_of
from lagjax.exact.stationary import stationary_law
from lagjax.instance import Instance


def geometric_blocking(num_servers: int, total_rate: float, mean: float, servers_per_task: int = 1) -> float:
    """Blocking probability with geometric durations of one mean.

    With m = floor(R / k) and s = 1 - 1/mean, the number N of running tasks moves by N' = Thin_s(N) + [arrival and N < m], so
    its stationary binomial moments b_j = E[C(N, j)] obey
        b_j (1 - s^j) = Lambda s^(j-1) (b_{j-1} - C(m, j-1) B),    b_0 = 1,  b_m = B,
    and hence
        1 / B = sum_{j=0..m} C(m, j) prod_{i=1..j} (1 - s^i) / (Lambda s^(i-1)).
    All terms are positive: the sum is taken in logarithms and is accurate to rounding for any R.

    Args:
      num_servers: R.
      total_rate: Lambda, tasks per step, in (0, 1].
      mean: of the duration, in steps, 1 or more.
      servers_per_task: k.

    Raises:
      InputError: an argument outside its range.
    """
    for field, value in (("num_servers", num_servers), ("servers_per_task", servers_per_task)):
        if value != int(value) or value < 1:
            raise InputError(f"{field} is {value!r}; give a whole number, 1 or more")
    if not 1 <= servers_per_task <= num_servers:
        raise InputError(f"servers_per_task is {servers_per_task!r}; give a whole number from 1 to {num_servers}")
    if not 0 < total_rate <= 1 + 1e-12:
        raise InputError(f"total_rate is {total_rate!r}; give tasks per step, in (0, 1]")
    if not mean >= 1:
        raise InputError(f"mean duration is {mean!r} steps; give a number of steps, 1 or more")
    room = num_servers // servers_per_task
    i = np.arange(1, room + 1)
    with np.errstate(divide="ignore"):  # at mean 1 nothing goes on, and s^0 is still 1
        log_stay = np.log1p(-1 / mean)
    powers = np.r_[0.0, i[:-1] * log_stay]  # log s^(i-1)
    ratio = np.log(-np.expm1(i * log_stay)) - np.log(total_rate) - powers
    choose = gammaln(room + 1) - gammaln(np.arange(room + 1) + 1) - gammaln(room - np.arange(room + 1) + 1)
    return float(np.exp(-logsumexp(choose + np.r_[0.0, np.cumsum(ratio)])))


def exact_blocking(instance: Instance) -> float:
    """Blocking probability B of an instance under any work-conserving policy.

    With geometric durations of one mean this is `geometric_blocking`. Otherwise the chain of running tasks is solved with all
    servers counted together, which no policy can change.

    Raises:
      InputError: that chain has too many states.
    """
    service = service_of(instance)
    k = instance.servers_per_task
    if service.longest == 0 and len(service.finish) == 1:
        return geometric_blocking(instance.num_servers, instance.total_rate, 1 / service.finish[0], k)
    chain = build_chain(instance, (tuple(range(instance.num_servers)),))
    served = chain.free[:, 0] >= k
    always = [rate * served[:, None].astype(float) for rate in instance.arrival_rate]
    law, _ = stationary_law(chain, assign_matrix(chain, always))
    return float(law[~served].sum())

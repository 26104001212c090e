"""Which k free servers a task takes: the heart of every policy at one copy per server.

All arrays carry servers on axis -2 and replicas on axis -1, the layout in which one vector instruction serves many
replicas. A chosen server is reported as a small integer (a "slot"); `nobody` (the dtype's largest value) stands for none.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
from jax import lax

WIDEST_SELECT = 48  # beyond this many task types a gather beats one compare per type


def nobody(dtype):
    """The slot that stands for no server."""
    return jnp.iinfo(dtype).max


def rows_of_type(table, task_type):
    """Returns (..., R, B): row `task_type[b]` of `table` (..., V, R) for every replica b."""
    num_types = table.shape[-2]
    if num_types > WIDEST_SELECT:
        return jnp.moveaxis(table, -2, -1)[..., task_type]
    rows = [table[..., v, :, None] for v in range(num_types)]
    if jnp.issubdtype(table.dtype, jnp.integer):
        bit = 0
        while len(rows) > 1:  # halved by one bit of the type after another: log2 V compares instead of V
            odd = (task_type >> bit) & 1 == 1
            pairs = [jnp.where(odd, rows[i + 1], rows[i]) for i in range(0, len(rows) - 1, 2)]
            rows, bit = pairs + rows[len(rows) // 2 * 2 :], bit + 1
    else:  # one after another: XLA would do a tree of float weights again for every stride of the running sums
        for v in range(1, num_types):
            rows[0] = jnp.where(task_type == v, rows[v], rows[0])
    return jnp.broadcast_to(rows[0], (*table.shape[:-2], table.shape[-1], task_type.shape[-1]))


def first_in_order(rank, free, k):
    """Takes the k free servers of lowest rank.

    Args:
      rank: (..., R, B) unsigned, a permutation of 0..R-1 along the servers.
      free: (..., R, B) bool.
      k: servers to take.

    Returns:
      taken (..., R, B) bool, all False where fewer than k are free, and (k, ..., B) ranks taken, `nobody` there.
    """
    none = nobody(rank.dtype)
    key = jnp.where(free, rank, none)
    # On a GPU a launch costs more than the arithmetic of one pass, which XLA does not vectorise on the CPU.
    best = lax.platform_dependent(
        key, cpu=functools.partial(lowest_by_masking, k=k), default=functools.partial(lowest_in_one_pass, k=k)
    )
    served = best[-1] < none
    taken = (key <= best[-1][..., None, :]) & served[..., None, :]
    return taken, jnp.stack([jnp.where(served, rank_taken, none) for rank_taken in best])


def lowest_by_masking(key, *, k):
    """Returns the k lowest values along axis -2 in order, different but for `nobody`: k minima, each above the last."""
    none = nobody(key.dtype)
    best = [jnp.min(key, axis=-2)]
    for _ in range(k - 1):
        best.append(jnp.min(jnp.where(key > best[-1][..., None, :], key, none), axis=-2))
    return best


def lowest_in_one_pass(key, *, k):
    """The same from one reduction that carries k values."""
    none = jnp.asarray(nobody(key.dtype), key.dtype)

    def merge(low, more):
        for new in more:
            sorted_in = []
            for value in low:
                sorted_in.append(jnp.minimum(value, new))
                new = jnp.maximum(value, new)
            low = sorted_in
        return tuple(low)

    return list(lax.reduce((key, *[jnp.full_like(key, none)] * (k - 1)), (none,) * k, merge, (key.ndim - 2,)))


def numbers_of(taken, k, dtype):
    """Returns (k, ..., B): the numbers of the k servers in `taken` (..., R, B), `nobody` where there are none."""
    server = lax.broadcasted_iota(dtype, taken.shape, taken.ndim - 2)
    return jnp.stack(lowest_by_masking(jnp.where(taken, server, nobody(dtype)), k=k))


def race_in_tiers(tier, weight, free, word, k):
    """Takes k free servers one after another: lowest tier first, within a tier with probability proportional to weight.

    Args:
      tier: (..., R, B) unsigned; lower is taken first.
      weight: sharing weights that broadcast to (..., R, B), positive: an unsigned 1 for an even race, or float32.
      free: (..., R, B) bool.
      word: (k, B) uint32 random words.
      k: servers to take.

    Returns:
      taken (..., R, B) bool, all False where fewer than k are free, and (k, ..., B) servers taken, `nobody` there. An even
      race is exact to 2^-32 a server; a weighted one to 1e-6, the rounding of its sums.
    """
    none = nobody(tier.dtype)
    server = lax.broadcasted_iota(tier.dtype, free.shape, free.ndim - 2)
    served = jnp.sum(free, axis=-2, dtype=tier.dtype) >= k
    key, weight = lax.optimization_barrier(jnp.where(free, tier, none)), lax.optimization_barrier(weight)
    chosen = []
    for j in range(k):
        best = lax.optimization_barrier(jnp.min(key, axis=-2))
        pick = lax.optimization_barrier(draw_share(key == best[..., None, :], weight, word[j]).astype(tier.dtype))
        chosen.append(pick)
        key = lax.optimization_barrier(jnp.where(server == pick[..., None, :], none, key))
    taken = jnp.zeros(free.shape, bool)
    for pick in chosen:
        taken |= server == pick[..., None, :]
    return taken & served[..., None, :], jnp.stack([jnp.where(served, pick, none) for pick in chosen])


def draw_share(eligible, weight, word):
    """Returns (..., B): one of the `eligible` (..., R, B) servers with probability proportional to `weight`."""
    share = jnp.where(eligible, weight, jnp.zeros((), weight.dtype))
    count = jnp.uint8 if share.shape[-2] <= 255 else jnp.uint16
    running = _running_sum(share)
    total = lax.optimization_barrier(running[..., -1, :])
    if jnp.issubdtype(share.dtype, jnp.integer):
        point = lax.optimization_barrier(_scaled(word, total))
        return jnp.sum(running <= point[..., None, :], axis=-2, dtype=count)
    point = (word >> 8).astype(share.dtype) * jnp.asarray(2.0**-24, share.dtype) * total
    point = lax.optimization_barrier(point)
    passed = lax.optimization_barrier(jnp.sum(running <= point[..., None, :], axis=-2, dtype=count))
    # Rounded sums need not increase: a point within an ulp of one can pass all servers, or all up to one that is not
    # eligible. The last eligible one up to there is then the one meant.
    server = lax.broadcasted_iota(count, share.shape, share.ndim - 2)
    return jnp.max(jnp.where(eligible & (server <= passed[..., None, :]), server, jnp.zeros((), count)), axis=-2)


def _running_sum(share):
    """Inclusive sums along the servers by doubling strides: log2 R passes that vectorise, where `jnp.cumsum` does not."""
    stride = 1
    while stride < share.shape[-2]:
        share = lax.optimization_barrier(share)
        share = jnp.concatenate([share[..., :stride, :], share[..., stride:, :] + share[..., :-stride, :]], axis=-2)
        stride *= 2
    return lax.optimization_barrier(share)


def _scaled(word, total):
    """Returns floor(word / 2^32 * total) exactly, in `total`'s dtype, for totals below 2^16."""
    wide = total.astype(jnp.uint32)
    high, low = (word >> 16) * wide, (word & 0xFFFF) * wide
    return ((high + (low >> 16)) >> 16).astype(total.dtype)

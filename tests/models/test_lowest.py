"""The k lowest keys: both ways of finding them give what sorting gives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lagjax.models.select import lowest_by_masking, lowest_in_one_pass, nobody


@pytest.mark.parametrize("lowest", [lowest_by_masking, lowest_in_one_pass])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_lowest_is_the_head_of_the_sorted_keys(lowest, dtype, k):
    rng = np.random.default_rng(k)
    servers = 7
    rank = np.argsort(rng.random((2, servers, 50)), axis=1).astype(dtype)
    key = np.where(rng.random(rank.shape) < 0.5, rank, nobody(jnp.dtype(dtype)))
    best = jax.jit(functools.partial(lowest, k=k))(jnp.asarray(key))
    assert len(best) == k and all(b.dtype == dtype for b in best)
    np.testing.assert_array_equal(np.stack(best, axis=1), np.sort(key, axis=1)[:, :k])

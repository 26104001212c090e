"""The scaled step lowers for a GPU on a machine without one, and calls nobody back."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lagjax import gallery
from lagjax.models import scaled, streams
from lagjax.policies import build_policy


@pytest.mark.parametrize("policy", ["lag", "greedy", "alg-sc-lp"])
def test_lowers_for_cuda_without_callback(policy):
    instance = gallery("priority", 0.8)
    replicas = 4
    host = scaled.scaled_tables(instance, build_policy(policy, instance), 16, 4, 4)
    with jax.enable_x64(True):
        tables = jax.device_put(host)
    keys = scaled.Keys(
        *(streams.replica_keys(0, s, np.arange(replicas)) for s in (streams.EXOGENOUS, streams.PARTITION, streams.TIES))
    )
    types, servers = instance.scores.shape
    per_type = jnp.zeros((types, replicas), jnp.int32)
    counts = scaled.Counts(jnp.zeros((types, servers, replicas), jnp.int32), per_type, per_type)

    def chunk(state, counts, first, last, tables, keys):
        return lax.fori_loop(first, last, lambda t, c: scaled.step(c[0], c[1], t, tables, keys), (state, counts))

    exported = jax.export.export(jax.jit(chunk), platforms=["cuda"])(
        scaled.empty(host, replicas), counts, np.uint32(0), np.uint32(3), tables, keys
    )
    assert exported.platforms == ("cuda",)
    called = set(re.findall(r"custom_call @(\w+)", exported.mlir_module()))
    assert not {name for name in called if "callback" in name}, called

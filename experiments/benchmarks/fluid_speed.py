"""Steps of the fluid map G against two competitors, in one run on one core: microseconds per start and step.

    python experiments/benchmarks/fluid_speed.py [--core 0] [--json FILE]
    python experiments/benchmarks/fluid_speed.py --full     1,000 starts x 10,000 steps of journal, on all cores

Competitors: a compiled simulator of G in Numba, start by start (types filled in a static order that stops where the budget ends,
the state shifted in place in one vectorised pass, products and sums rounded as written), and NumPy on the whole batch at once.
Rounds alternate and processor time is taken, so a slower minute hits all of them; the final states must agree. lagjax's figure is
the compiled loop of `find_attractor`, with the distance to the fixed point every 25 steps; compilation is reported apart.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np

LOAD = 0.7
STRIDE = 25  # steps between two distances, as in 10,000 steps of `find_attractor`
AGREEMENT = 1e-12


# ---- the competitors ---------------------------------------------------------------------------------


def tables(system):
    """(V, R+1) where the groups of equal tier begin, (V, R) servers in that order, their weights; the rest of the system."""
    tier, weight = np.asarray(system.tier), np.asarray(system.weight, np.float64)
    law = np.asarray(system.law, np.float64)
    if system.rule != "capped" or len(law) != 1:
        raise ValueError("the competitors know the capped rule and one service law")
    order = np.argsort(tier, axis=1, kind="stable")
    first = np.full((len(tier), tier.shape[1] + 1), tier.shape[1])
    for v, servers in enumerate(order):
        begins = np.unique(tier[v, servers], return_index=True)[1]
        first[v, : len(begins)] = begins
    weight = np.take_along_axis(weight, order, axis=1)
    rates = np.asarray(system.arrival_rate, np.float64)
    return first, order, weight, rates, law[0], float(system.servers_per_task)


@functools.cache
def numba_loop():
    from numba import njit

    @njit
    def level_of(left, phi, servers, weight):
        level = 0.0
        while True:
            used, share = 0.0, 0.0
            for j in range(len(servers)):
                if phi[servers[j]] <= level * weight[j]:
                    used += phi[servers[j]]
                else:
                    share += weight[j]
            if share <= 0.0 or not (left - used) / share > level:
                return level
            level = (left - used) / share

    @njit
    def fill(taken, phi, first, order, weight, rates, k):
        taken[:] = 0.0
        for v in range(len(rates)):
            left = k
            for g in range(len(phi)):
                a, b = first[v, g], first[v, g + 1]
                if a == b or left <= 0.0:
                    break
                if b == a + 1:
                    amount = min(phi[order[v, a]], left)
                    taken[order[v, a]] += rates[v] * amount
                    left -= amount
                    continue
                room = 0.0
                for j in range(a, b):
                    room += phi[order[v, j]]
                level = np.inf if room <= left else level_of(left, phi, order[v, a:b], weight[v, a:b])
                for j in range(a, b):
                    taken[order[v, j]] += rates[v] * min(phi[order[v, j]], level * weight[v, j])
                left -= min(room, left)

    @njit
    def run(states, steps, first, order, weight, rates, law, k):
        servers, last = states.shape[1], states.shape[2] - 1
        dense = law.min() > 0.0
        begin, end = np.flatnonzero(law)[0], np.flatnonzero(law)[-1] + 1
        some = law[begin:end]  # nothing is added where the law is 0
        phi, taken = np.empty(servers), np.empty(servers)
        for s in range(len(states)):
            for _ in range(steps):
                for r in range(servers):
                    phi[r] = states[s, r, 0]
                fill(taken, phi, first, order, weight, rates, k)
                for r in range(servers):
                    x, a = states[s, r], taken[r]
                    x[0] = x[0] - a + x[1]
                    if dense:
                        for i in range(1, last):
                            x[i] = x[i + 1] + a * law[i - 1]
                        x[last] = a * law[last - 1]
                    else:
                        for i in range(1, last):
                            x[i] = x[i + 1]
                        x[last] = 0.0
                        there = x[begin + 1 : end + 1]
                        for i in range(len(some)):
                            there[i] += a * some[i]

    return run


def numpy_loop(states, steps, first, order, weight, rates, law, k):
    """In place, on the whole batch."""
    groups = [
        [(order[v, a:b], weight[v, a:b]) for a, b in zip(first[v], first[v, 1:], strict=False) if a < b]
        for v in range(len(rates))
    ]
    for _ in range(steps):
        phi = np.ascontiguousarray(states[:, :, 0].T)
        taken = np.zeros_like(phi)
        for rate, tiers in zip(rates, groups, strict=True):
            left = np.full(phi.shape[1], k)
            for servers, share in tiers:
                if not left.any():
                    break
                if len(servers) == 1:
                    amount = np.minimum(phi[servers[0]], left)
                    taken[servers[0]] += rate * amount
                    left -= amount
                    continue
                room = phi[servers]
                level = np.zeros_like(left)
                for _ in servers:
                    full = room <= level * share[:, None]
                    used = np.where(full, room, 0).sum(axis=0)
                    still = np.where(full, 0, share[:, None]).sum(axis=0)
                    higher = np.where(still > 0, (left - used) / np.where(still > 0, still, 1), level)
                    if not (higher > level).any():
                        break
                    level = np.maximum(level, higher)
                amount = np.where(left >= room.sum(axis=0), room, np.minimum(room, level * share[:, None]))
                taken[servers] += rate * amount
                left = np.maximum(left - amount.sum(axis=0), 0)
        free = states[:, :, 0] - taken.T + states[:, :, 1]
        states[:, :, 1:-1] = states[:, :, 2:]
        states[:, :, -1] = 0
        states[:, :, 1:] += taken.T[:, :, None] * law
        states[:, :, 0] = free


# ---- lagjax ------------------------------------------------------------------------------------------


def without_waterfill(system, x):
    """G with a hundredth of what is free taken: what the update of the state alone costs."""
    import jax.numpy as jnp

    from lagjax.fluid import map as fluid

    def hundredth(system, x):
        free = jnp.asarray(x)[..., 0]
        return free[..., None, :] * (0.01 * jnp.asarray(system.arrival_rate, free.dtype)[:, None])

    with mock.patch.object(fluid, "assignment_rates", hundredth):
        return fluid.fluid_map.__wrapped__(system, x)


def lagjax_loop(system, starts, steps, of=None):
    """Calls of the compiled loop of `find_attractor` on one core: () -> final states."""
    import jax
    import jax.numpy as jnp

    from lagjax.engine.devices import compiler_options, place_replicas
    from lagjax.fluid import attractor, fluid_map

    run = attractor._program(place_replicas(1, jax.devices()[:1]).mesh, tuple(compiler_options("cpu").items()))
    step = jax.tree_util.Partial(of or fluid_map, system)
    state = jnp.asarray(starts.reshape(-1, attractor.BLOCK, *starts.shape[1:]))
    strides = np.full(steps // STRIDE, STRIDE, np.int32)
    return lambda: np.asarray(run(step, state, state[0, 0], strides)[0]).reshape(starts.shape)


def random_starts(system, count):
    """(count, R, d+1)."""
    law = np.asarray(system.law)
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(law.shape[1] + 1, 0.3), (count, np.asarray(system.tier).shape[1]))


def timed(cases, rounds):
    """Processor seconds of the rounds of every case, in turns."""
    spent = {name: [] for name in cases}
    for _ in range(rounds):
        for name, run in cases.items():
            begin = time.process_time()
            run()
            spent[name].append(time.process_time() - begin)
    return spent


def measure(name, args):
    """Figures of one instance."""
    from lagjax.fluid import fluid_system
    from lagjax.gallery import gallery
    from lagjax.policies import build_policy

    instance = gallery(name, LOAD)
    system = fluid_system(instance, build_policy("lag", instance))
    starts, constants = random_starts(system, args.starts), tables(system)
    fewer = max(STRIDE, args.steps // 10)

    def in_place(loop, steps):
        def run():
            states = starts.copy()
            loop(states, steps, *constants)
            return states

        return run

    begin = time.process_time()
    ours = lagjax_loop(system, starts, args.steps)
    final = ours()
    first = time.process_time() - begin
    compiled = in_place(numba_loop(), args.steps)
    gap = np.abs(compiled() - final).max()
    few = lagjax_loop(system, starts, fewer)()
    gap = max(gap, np.abs(in_place(numpy_loop, fewer)() - few).max())
    if not gap <= AGREEMENT:
        raise SystemExit(f"{name}: the final states differ by {gap:.1e}")
    update = lagjax_loop(system, starts, args.steps, without_waterfill)
    update()
    cases = {"lagjax": ours, "update": update, "numba": compiled, "numpy": in_place(numpy_loop, fewer)}
    spent = timed(cases, args.rounds)
    done = dict.fromkeys(cases, args.steps) | {"numpy": fewer}
    us = {who: statistics.median(t) / args.starts / done[who] * 1e6 for who, t in spent.items()}
    to_numba = statistics.median(np.divide(spent["lagjax"], spent["numba"]))
    to_numpy = statistics.median(np.divide(spent["numpy"], spent["lagjax"])) * args.steps / fewer
    bytes_moved = 2 * 8 * starts[0].size
    return {
        "us": us, "times_numba": to_numba, "numpy_times": to_numpy, "gap": float(gap), "first_seconds": first,
        "state_bytes_in_and_out": bytes_moved,
    }  # fmt: skip


def variants(system):
    """The system itself, with every server twice and four times (and as much load), and with durations twice as long."""
    import dataclasses

    def more(times):
        tier, copies = np.asarray(system.tier), np.arange(times)
        return dataclasses.replace(
            system, scores=np.tile(system.scores, times), arrival_rate=times * np.asarray(system.arrival_rate),
            tier=np.concatenate([times * tier + i for i in copies], axis=1), weight=np.tile(system.weight, times),
        )  # fmt: skip

    longer = dataclasses.replace(system, law=np.repeat(system.law, 2, axis=1) / 2)
    return {"starts": system, "R": more(2), "R again": more(4), "d": longer}


def scaling(name, args):
    """Cost of twice as many starts, servers and steps of service over the cost of one, medians of rounds in turns."""
    from lagjax.fluid import fluid_system
    from lagjax.gallery import gallery
    from lagjax.policies import build_policy

    instance = gallery(name, LOAD)
    system = fluid_system(instance, build_policy("lag", instance))
    steps = args.steps // 2 // STRIDE * STRIDE
    cases = {"one": lagjax_loop(system, random_starts(system, args.starts), steps)}
    for what, other in variants(system).items():
        count = args.starts * (2 if what == "starts" else 1)
        cases[what] = lagjax_loop(other, random_starts(other, count), steps)
    for run in cases.values():
        run()
    spent = timed(cases, args.rounds)
    over = {what: "R" if what == "R again" else "one" for what in cases if what != "one"}
    return {what: statistics.median(np.divide(spent[what], spent[base])) for what, base in over.items()}


def full(starts, steps):
    """The whole of `find_attractor` on journal, on all cores: seconds of wall and of processor, compilation included."""
    import jax

    from lagjax.fluid import find_attractor, fluid_map, fluid_system, lp_fixed_point, make_starts
    from lagjax.gallery import gallery
    from lagjax.lp import solve_occ
    from lagjax.policies import build_policy

    jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    instance = gallery("journal", LOAD)
    with jax.enable_x64(True):
        step = jax.tree_util.Partial(fluid_map, fluid_system(instance, build_policy("lag", instance)))
        point = lp_fixed_point(instance, solve_occ(instance))
        made = make_starts(starts, point)
        wall, spent = time.perf_counter(), time.process_time()
        found = find_attractor(step, point, made, steps)
        wall, spent = time.perf_counter() - wall, time.process_time() - spent
    print(
        f"journal, {starts} starts x {steps} steps, {len(jax.devices())} devices: {wall:.1f} s, processor {spent:.1f} s "
        f"({spent / starts / steps * 1e6:.2f} us per start and step), attractor {found.verdict}, "
        f"largest final distance {found.max_final_distance:.1e}"
    )
    return {"starts": starts, "steps": steps, "seconds": wall, "processor_seconds": spent, "attractor": found.verdict}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--instances", nargs="+", default=["journal", "priority", "low-rank"])
    parser.add_argument("--starts", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if args.full:
        page = {"full": full(1000, 10_000)}
    else:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {args.core})  # before JAX counts its threads
        import jax

        page = {"table": {}, "scaling": {}}
        with jax.enable_x64(True):
            columns = ("lagjax", "update", "numba", "numpy", "x numba", "numpy x", "gap", "first s")
            print(f"{f'us per start and step, load {LOAD}':30s}" + "".join(f"{c:>9s}" for c in columns))
            for name in args.instances:
                page["table"][name] = row = measure(name, args)
                shown = [f"{row['us'][who]:.2f}" for who in ("lagjax", "update", "numba", "numpy")]
                shown += [f"{row['times_numba']:.2f}", f"{row['numpy_times']:.1f}", f"{row['gap']:.0e}"]
                shown += [f"{row['first_seconds']:.1f}"]
                print(f"{name:30s}" + "".join(f"{x:>9s}" for x in shown), flush=True)
            print(f"{'cost of twice as much':30s}" + "".join(f"{c:>9s}" for c in ("starts", "R", "R again", "d")))
            for name in args.instances:
                page["scaling"][name] = row = scaling(name, args)
                print(f"{name:30s}" + "".join(f"{row[c]:9.2f}" for c in ("starts", "R", "R again", "d")), flush=True)
    if args.json:
        args.json.write_text(json.dumps(page, indent=1))


if __name__ == "__main__":
    sys.exit(main())

"""The bits of a solution do not depend on the number of BLAS threads."""

import os
import subprocess
import sys

CODE = """
import hashlib, numpy as np, lagjax
rng = np.random.default_rng(1)
made = hashlib.sha256()
for shape in ((150, 220),):
    scores = np.round(rng.random(shape), 2)
    instance = lagjax.make_instance(scores, lagjax.geometric(150), servers_per_task=2, load=0.7)
    for selection in ("canonical", "vertex"):
        one, two = lagjax.solve_occ(instance, selection=selection), lagjax.solve_kiid(instance, selection)
        for array in (one.index, one.tie_weight, one.server_price, two.reduced, two.assignment_rate):
            made.update(array.tobytes())
print(made.hexdigest())
"""


def test_threads_do_not_matter():
    def digest(threads):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, threads)}
        return subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True).stdout

    assert len({digest(threads) for threads in ("1", "2", "8")}) == 1

"""Studies under a dozen faults and more; `python experiments/faults.py` has the rest."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_dozen_faults_lose_nothing_and_change_no_byte():
    """A second driver, Ctrl-C, four damaged files, clocks that jump, a read-only folder, full disks, kills of the driver.

    Then one kill of each of the five studies, with memory that shrinks.
    """
    done = subprocess.run(
        [sys.executable, ROOT / "experiments" / "faults.py", "--kills", "3", "--study-kills", "1", "--worker-kills", "0"],
        cwd=ROOT, capture_output=True, text=True, timeout=1200, env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout and done.stdout.count("ok ") >= 12 + 5 * 4

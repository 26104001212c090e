"""A script that starts workers outside its guard is refused in one line, before any worker starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from lagjax.runs.guard import _guarded, check_guarded

SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from toys import CONFIGURATION, jobs
from lagjax.errors import InputError
from lagjax.runs.execute import execute
from lagjax.runs.running import Running

try:
    execute(jobs(), CONFIGURATION, Running(workers=1))
except InputError as error:
    print(error)
"""


def test_an_unguarded_script_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout == (
        f"{script}, line 10: workers import this script, and would run it again; put what it does below "
        'if __name__ == "__main__":\n'
    )


@pytest.mark.parametrize(
    ("source", "line", "guarded"),
    [
        ("x = 1\nrun()\n", 2, False),
        ("if __name__ == '__main__':\n    x = 1\n    run()\n", 3, True),
        ("if '__main__' == __name__ and True:\n    for i in range(3):\n        run(\n            i)\n", 4, True),
        ("if __name__ == '__main__':\n    x = 1\nrun()\n", 3, False),
        ("if __name__ != '__main__':\n    x = 1\nelse:\n    run()\n", 4, True),
        ("if x:\n    run()\n", 2, False),
        ("def main():\n    run()\n\nmain()\n", 4, False),
        ("no python (", 1, True),
        ("", 1, True),
    ],
)
def test_lines_below_a_guard_are_told_from_others(source, line, guarded):
    assert _guarded(source, line) is guarded


def test_what_runs_these_tests_is_guarded():
    check_guarded()

"""The README's Python runs, and its commands exist."""

import re
from pathlib import Path

from lagjax.cli.app import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_python_example_runs(capsys):
    codes = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    for code in codes:
        code = code.replace("policies=[", "steps=500, replicas=8, policies=[")
        exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert len(codes) == 4 and "mine" in out and "% of the optimum" in out and "True\n" in out


def test_commands_are_the_ones_that_exist():
    named = set(re.findall(r"lagjax (\w+)", " ".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL))))
    assert named == {command.callback.__name__ for command in app.registered_commands}

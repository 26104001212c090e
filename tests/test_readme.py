"""The README's Python runs, and its commands exist."""

import re
import shlex
from pathlib import Path

from lagjax.cli.app import COMMANDS, command

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_python_example_runs(capsys):
    codes = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    for code in codes:
        code = code.replace("policies=[", "steps=500, replicas=8, policies=[")
        exec(compile(code, "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert len(codes) == 4 and "mine" in out and "% of the optimum" in out and "True\n" in out


def test_commands_are_the_ones_that_exist_and_are_read():
    lines = "\n".join(re.findall(r"```bash\n(.*?)```", README, re.DOTALL)).splitlines()
    said = [shlex.split(line, comments=True) for line in lines if line.startswith("lagjax ")]
    assert {words[1] for words in said} == set(COMMANDS)
    for words in said:
        command(words[1]).make_context(words[1], words[2:])

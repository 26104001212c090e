"""The command line in this process, as in tests/cli."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("cli_conftest", Path(__file__).parents[1] / "cli" / "conftest.py")
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
lagjax = _module.lagjax

"""Local workers import the script that starts them; one that starts them again while it is imported would never end."""

from __future__ import annotations

import ast
import linecache
import multiprocessing
import sys
from types import FrameType

from lagjax.errors import InputError


def check_guarded() -> None:
    """Raises InputError where the running script starts workers outside `if __name__ == "__main__":`.

    A session without a script (a notebook, a prompt) is imported by nobody and needs no guard. Where the calls do not come
    from the script's own lines, as in a thread, nothing can be said, and the workers' copies refuse to start others.
    """
    inside = getattr(multiprocessing.current_process(), "_inheriting", False)  # a worker, importing the script
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    line = _line_of_script()
    if inside or (file is not None and line is not None and not _guarded("".join(linecache.getlines(file)), line)):
        where = f"{file}, line {line}" if line else f"{file or 'the script'}"
        raise InputError(
            f'{where}: workers import this script, and would run it again; put what it does below if __name__ == "__main__":'
        )


def _line_of_script():
    """The line at which the main module stands, or None where it has not called."""
    main = sys.modules.get("__main__")
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>" and main is not None and frame.f_globals is main.__dict__:
            return frame.f_lineno
        frame = frame.f_back
    return None


def _guarded(source, line):
    """Whether that line of a script lies in an `if` that asks for `__name__`; True where the script cannot be read."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return True
    return not source or any(
        isinstance(node, ast.If)
        and node.lineno <= line <= (node.end_lineno or line)
        and any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
        for node in ast.walk(tree)
    )

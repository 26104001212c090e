"""The exceptions that a command line shows as one line."""

import re

MAX_LENGTH = 1000  # characters of a message; values that users give may have any number


def one_line(message: str) -> str:
    """Returns a message without line breaks, and without its middle if it is very long."""
    message = re.sub(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*", " ", message)
    return message if len(message) <= MAX_LENGTH else f"{message[: MAX_LENGTH // 2]} ... {message[-MAX_LENGTH // 3 :]}"


class InputError(ValueError):
    """Input that cannot be used; the message is one line naming what, where and how to mend it."""

    def __init__(self, message: str):
        super().__init__(one_line(message))


class RunError(RuntimeError):
    """A run that could not finish; the message is one line that says why and how to go on."""


class Interrupted(RunError):
    """A run that the user stopped; the message says how to go on."""


class SolverError(RuntimeError):
    """A numerical solver missed its stated accuracy, or gave up; the message is one line that names what was solved."""

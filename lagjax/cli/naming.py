"""Faults of the library, told in the words of the command line."""

from __future__ import annotations

import contextlib
import re

from lagjax.errors import InputError


@contextlib.contextmanager
def named_as_options(*names: str):
    """Around a command: faults of the library that begin with the name of a parameter begin with its option instead."""
    try:
        yield
    except InputError as error:
        raise InputError(re.sub(rf"^(?=({'|'.join(names)}) )", "--", str(error))) from None

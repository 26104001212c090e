"""The exceptions that a command line shows as one line."""


class InputError(ValueError):
    """Input that cannot be used; the message is one line naming what, where and how to mend it."""


class RunError(RuntimeError):
    """A run that could not finish; the message is one line that says why and how to go on."""


class Interrupted(RunError):
    """A run that the user stopped; the message says how to go on."""


class SolverError(RuntimeError):
    """A numerical solver missed its stated accuracy, or gave up; the message is one line that names what was solved."""

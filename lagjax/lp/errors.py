"""What a linear program that cannot be solved raises."""


class SolverError(RuntimeError):
    """A linear program was not solved to the stated residuals; the message says how far it came and what to try."""

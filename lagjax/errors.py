"""The one exception that bad input raises."""


class InputError(ValueError):
    """Input that cannot be used; the message is one line naming what, where and how to mend it."""

"""One BLAS thread: sums of several threads have other last bits, and the programs are too small to gain from them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

_Given = ParamSpec("_Given")
_Returned = TypeVar("_Returned")


@functools.cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  its BLAS is not NumPy's, and only loaded ones are held

    return ThreadpoolController()


def on_one_thread(function: Callable[_Given, _Returned]) -> Callable[_Given, _Returned]:
    """The function, with the BLAS of NumPy and SciPy held to one thread while it runs."""

    @functools.wraps(function)
    def held(*args: _Given.args, **kwargs: _Given.kwargs) -> _Returned:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return held

"""Policies as data: how many compatible servers a task looks at, and how far it sees."""

from __future__ import annotations

from typing import NamedTuple

from lagjax.compatibility.graph import Graph
from lagjax.engine.checks import whole_number
from lagjax.errors import InputError

ALL = 2**30  # look at every compatible server
FAR = 2**30  # see the whole queue


class Policy(NamedTuple):
    """A task looks at `choices` random compatible servers (all, if there are fewer) and joins the shortest, ties at random.

    Attributes:
      name: for tables.
      choices: d, at least 1.
      sees: queues of this length and more look alike.
    """

    name: str
    choices: int
    sees: int = FAR


def jsq(choices: int = ALL) -> Policy:
    """Join the shortest of d queues; of all compatible ones by default.

    Raises:
      InputError: d is not a whole number, 1 or more.
    """
    whole_number("choices", choices, 1)
    return Policy("jsq" if choices >= ALL else f"jsq({choices})", min(choices, ALL))


def random_routing() -> Policy:
    """Join a random compatible server."""
    return Policy("random", 1)


def join_idle_queue() -> Policy:
    """Join a random idle compatible server; a random compatible one if none is idle."""
    return Policy("jiq", ALL, 1)


def named_policy(name: str, choices: int = 2) -> Policy:
    """Returns the policy of a name: jsq-d (with `choices`), jsq, random or jiq.

    Raises:
      InputError: there is none of that name, or choices is not a whole number, 1 or more.
    """
    whole_number("choices", choices, 1)
    makers = {"jsq-d": lambda: jsq(choices), "jsq": jsq, "random": random_routing, "jiq": join_idle_queue}
    if name not in makers:
        raise InputError(f"no policy '{name}'; choose from {', '.join(makers)}")
    return makers[name]()


def looks_at(policy: Policy, graph: Graph) -> int:
    """Returns the largest number of servers that any task looks at."""
    return min(policy.choices, int(graph.size.max()))

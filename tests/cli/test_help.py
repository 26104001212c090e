"""The help of every command, and that the same words mean the same in all of them."""

import shlex

import pytest

from lagjax.cli.app import COMMANDS, command

EVERY = [pytest.param(command(name), id=name) for name in COMMANDS]
STUDIES = {"sweep", "converge", "route", "compat", "partial", "exact"}
RUNS = {"workers", "scheduler", "processes", "memory", "fresh"}


def options(one):
    return {parameter.name: parameter for parameter in one.params if parameter.param_type_name == "option"}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_hundred_columns_and_has_examples(lagjax, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = lagjax(name, "--help")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    assert f"Example: lagjax {name}" in out


@pytest.mark.parametrize("one", EVERY)
def test_every_option_is_explained(one):
    for parameter in one.params:
        said = parameter.help
        assert said and said[-1] in ".]", f"{parameter.name}: {said}"


@pytest.mark.parametrize("one", EVERY)
def test_the_examples_are_read(one):
    said = [" ".join(part.split()) for part in one.help.split("\n\n")]
    examples = [part.removeprefix("Example: ") for part in said if part.startswith("Example: ")]
    assert examples
    for example in examples:
        program, name, *words = shlex.split(example)
        assert (program, name) == ("lagjax", one.name)
        one.make_context(name, list(words))


@pytest.mark.parametrize("one", EVERY)
def test_nothing_has_to_be_given(one):
    one.make_context(one.name, [])


def test_the_same_words_mean_the_same():
    """One option, one help text (but for defaults), and what all commands or all studies have, all of them have."""
    texts = {}
    for name in COMMANDS:
        has = options(command(name))
        assert {"out", "json_file"} <= set(has), name
        assert name == "report" or {"seed", "progress", "cache"} <= set(has), name
        assert (set(has) >= RUNS) == (name in STUDIES), name
        for key in {"json_file", "seed", "progress", "cache", "selection", *RUNS} & set(has):
            texts.setdefault(key, set()).add((has[key].help, tuple(has[key].opts)))
    assert all(len(said) == 1 for said in texts.values()), texts

"""Graphs: families, files, load, and the certificate against all subsets of small graphs."""

import itertools

import numpy as np
import pytest

from lagjax.compatibility import (
    FAMILIES,
    blocks,
    certify,
    check_load,
    complete,
    graph_of,
    random,
    read_graph,
    regular,
    ring,
)
from lagjax.compatibility import certificate as certificate_module
from lagjax.compatibility.certificate import singular_value
from lagjax.compatibility.families import default_degree
from lagjax.errors import InputError


def dense(graph):
    """(M, N) 0/1 matrix of a graph."""
    return (graph.biadjacency().toarray() > 0)[graph.row].astype(int)


def test_families_have_their_degrees():
    np.testing.assert_array_equal(dense(complete(4, 6)), 1)
    for degree in (3, 12, 25, 30):  # sparse, dense, complement, complete
        table = dense(regular(30, 30, degree, seed=degree))
        assert (table.sum(axis=0) == degree).all() and (table.sum(axis=1) == degree).all()
    table = dense(regular(20, 40, 6))
    assert (table.sum(axis=0) == 6).all() and (table.sum(axis=1) == 3).all()
    table = dense(ring(6, 6, 3))
    np.testing.assert_array_equal(table[5], [1, 1, 0, 0, 0, 1])
    assert (table.sum(axis=0) == 3).all()
    table = dense(blocks(6, 12, 4))
    np.testing.assert_array_equal(table, np.kron(np.eye(3, dtype=int), np.ones((4, 2), int)))
    edges = dense(random(200, 300, 30, seed=4)).sum()
    assert abs(edges - 6000) < 5 * np.sqrt(6000 * 0.9)
    assert not np.array_equal(dense(random(50, 50, 20, seed=1)), dense(random(50, 50, 20, seed=2)))


def test_types_with_the_same_servers_share_a_row():
    graph = graph_of("g", [np.array(s) for s in ([2, 0], [1], [0, 2], [0, 1, 2])], 3)
    assert len(graph.size) == 3 and graph.row[0] == graph.row[2]
    np.testing.assert_array_equal(dense(graph), [[1, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 1]])
    assert complete(10_000, 10_000).neighbours.shape == (1, 10_000)
    np.testing.assert_array_equal(graph.server_degree(), [3, 2, 3])


def test_random_routing_loads():
    graph = graph_of("g", [np.array(s) for s in ([0], [0, 1])], 2)
    np.testing.assert_allclose(graph.random_routing_load(0.6), 0.6 * np.array([1.5, 0.5]))
    other = graph_of("g", [np.array(s) for s in ([0], [0, 1], [1], [1])], 2)
    np.testing.assert_allclose(other.random_routing_load(0.6), 0.6 * np.array([0.75, 1.25]))
    margin = check_load(graph, 0.6)
    assert margin.margin == pytest.approx(0.1) and margin.busiest == 0 and margin.overloaded == 0
    with pytest.raises(InputError, match=r"server 0 is overloaded .*below 0\.6667"):
        check_load(graph, 0.7)
    assert check_load(graph, 0.7, allow_overloaded=True).overloaded == 1
    with pytest.raises(InputError, match="overloaded"):
        check_load(graph, 2 / 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_default_degrees_fit(family):
    for servers, types in ((10, 10), (100, 100), (60, 120), (1, 1)):
        graph = FAMILIES[family](servers, types, default_degree(family, servers, types), 0)
        assert (graph.num_servers, graph.num_types) == (servers, types)


def worst(table, epsilon):
    """The largest fraction of bad types over all subsets."""
    size, n = table.sum(axis=1), table.shape[1]
    subsets = np.array(list(itertools.product((0, 1), repeat=n)))
    off = np.abs((table @ subsets.T) / size[:, None] - subsets.sum(axis=1) / n)
    return (off >= epsilon - 1e-12).mean(axis=0).max()


@pytest.mark.parametrize("seed", range(6))
def test_certificate_brackets_the_worst_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    table = rng.random((9, 10)) < rng.uniform(0.3, 0.9)
    table[:, 0] |= ~table.any(axis=1)
    graph = graph_of("g", [np.flatnonzero(row) for row in table], 10)
    projected = (table / table.sum(axis=1, keepdims=True)) @ (np.eye(10) - 0.1)
    assert singular_value(graph) == pytest.approx(np.linalg.svd(projected, compute_uv=False)[0], abs=1e-10)
    for epsilon in (0.15, 0.3, 0.45):
        found, exact = certify(graph, epsilon), worst(table.astype(int), epsilon)
        assert found.at_least <= exact + 1e-12 <= found.at_most + 2e-12
        assert found.at_least >= exact - 0.23  # two of nine types: the search is good, not exact
        off = np.abs(table.astype(int) @ found.servers / table.sum(axis=1) - found.servers.mean())
        assert (off >= epsilon - 1e-12).mean() == pytest.approx(found.at_least)


def test_certificates_of_the_families():
    assert certify(complete(50, 50)).sigma < 1e-12 and certify(complete(50, 50)).at_least == 0
    assert certify(blocks(60, 60, 10)).sigma == pytest.approx(1) and certify(blocks(60, 60, 10)).at_least == 1
    assert certify(ring(200, 200, 20)).sigma > 0.95 and certify(ring(200, 200, 20)).at_least > 0.8
    even = certify(regular(200, 200, 28), 0.3)
    assert 1.6 / np.sqrt(28) < even.sigma < 2.2 / np.sqrt(28)
    assert even.at_least < even.at_most < 0.5


def test_iterative_singular_values_are_the_dense_ones(monkeypatch):
    graphs = [regular(60, 60, 7), random(50, 80, 20, seed=3), ring(60, 60, 9)]
    exact = [singular_value(graph) for graph in graphs]
    monkeypatch.setattr(certificate_module, "DENSE", 1)
    np.testing.assert_allclose([singular_value(graph) for graph in graphs], exact, rtol=1e-8)


def test_read_graph(tmp_path):
    path = tmp_path / "desk.csv"
    path.write_text("type,server\n0,1\n1, 0 # a comment\n\n1,2\n")
    graph = read_graph(path)
    assert graph.name == "desk"
    np.testing.assert_array_equal(dense(graph), [[0, 1, 0], [1, 0, 1]])
    assert read_graph(path, servers=7).num_servers == 7


SAME_EDGES = [
    "type,server\n0,1\n1,0\n1,2\n", "0,1\n1,0\n1,2\n", "Type , Server\n0 , 1\n1,0\n1,2", "server,type\n1,0\n0,1\n2,1\n",
    "0;1\n1;0\n1;2\n", "type;server\r\n0;1\r\n1;0\r\n1;2\r\n", "0\t1\n1\t0\n1\t2\n", "type\tserver\n0\t1\n1\t0\n1\t2\n",
    "0 1\n 1  0\n1 2\n", "# edges\n\n0,1 # one\n1,0\n#1,1\n1,2\n", '"0","1"\n"1","0"\n1,2\n', "sep=;\n0;1\n1;0\n1;2\n",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME_EDGES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_way_to_write_the_edges_gives_one_graph(tmp_path, text, encoding):
    path = tmp_path / "desk.txt"
    path.write_bytes(text.encode(encoding))
    said = []
    np.testing.assert_array_equal(dense(read_graph(path, note=said.append)), [[0, 1, 0], [1, 0, 1]])
    plain = "," in text.splitlines()[-1] and "#" not in text and encoding != "utf-16"
    assert len(said) == (not plain and not (text.startswith("sep") and encoding != "utf-16"))


BAD_FILES = [
    ("", "no edges"),
    ("type,server\n", "no edges"),
    ("0,1\n0,1\n", "line 2: pair 0,1 is already on line 1"),
    ("0,1\n1\n", "line 2: '1' is no pair"),
    ("0,1\n1,x\n", "line 2"),
    ("0;0\n0,1\n1,0\n1,1\n", "line 1: '0;0' is neither a pair of whole numbers nor the header type,server"),
    ("a,s1\n0,1\n", "line 1: 'a,s1' is neither a pair"),
    ("source,target\n0,1\n", "line 1: 'source,target' is neither a pair"),
    ("0,1\n1 0\n", "line 2: '1 0' is no pair"),
    ("0,1,0.5\n", "line 1: '0,1,0.5' is neither"),
    ("# an edge list\n", "no edges"),
    ("0,1\n1,-2\n", "line 2: '1,-2' is no pair"),
    ("0,1\n1,2.5\n", "line 2"),
    ("0,0\n2,1\n", "type 1 has no server"),
    ("0,99999999\n", "servers is 100000000"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES, ids=[repr(t) for t, _ in BAD_FILES])
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_graph(path)


BAD = [
    (lambda: regular(10, 10, 2.5), "does not share out evenly"),
    (lambda: regular(10, 15, 1), "does not share out evenly"),
    (lambda: regular(10, 10, 0), "degree is 0"),
    (lambda: ring(10, 10, 11), "at most 10"),
    (lambda: blocks(10, 10, 3), "does not divide"),
    (lambda: random(10, 10, -1), "degree is -1"),
    (lambda: random(100, 100, 0.5), "has no server"),
    (lambda: complete(0, 3), "servers is 0"),
    (lambda: complete(3, 70_000), "types is 70000"),
    (lambda: graph_of("g", [np.array([0, 3])], 3), "outside 0 to 2"),
    (lambda: graph_of("g", [np.array([1, 1])], 3), "server 1 twice"),
    (lambda: certify(complete(3, 3), 0.0), "epsilon is 0"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_graphs(make, message):
    with pytest.raises(InputError, match=message):
        make()

"""The study of experiments/routing.py on a grid of two systems: page and picture."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from lagjax.plots.routing import plot_routing_grid

FILE = Path(__file__).parents[2] / "experiments" / "routing.py"


def test_page_and_picture(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_file_location("routing_study", FILE)
    study = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "routing_study", study)  # dataclasses look there
    spec.loader.exec_module(study)
    grid = study.Grid(servers=((2, 5),), waiting=((0, 0), (5, 5)), rates=((1, 0.2),), traffic=(0.3, 1.1))
    data = study.solve(grid)
    above = data.loss / data.optimum - 1
    assert float(above.min()) > -1e-10 and data.system.values[1] == "m 2,5; n 7,10; µ 1,0.2"
    assert float(above.sel(policy="rb", traffic=0.3, system=data.system[1])) > 1.2  # light traffic: twice the optimum
    assert float(above.sel(policy="rb", traffic=1.1).max()) < 0.01
    text = study.page(data)
    assert "2 systems of two and three queues" in text and "| m 2,5; n 7,10; µ 1,0.2 | 0.3 | 126.69 |" in text
    figure = plot_routing_grid(data)
    assert len(figure.axes) == 3 and len(figure.axes[0].lines) == data.sizes["policy"] + 1
    assert np.isfinite(figure.axes[0].lines[0].get_ydata()).all()
    figure.savefig(tmp_path / "grid.png")

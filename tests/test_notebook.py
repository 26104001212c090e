"""The quickstart runs from top to bottom, as on a fresh machine."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "quickstart.ipynb"


def test_quickstart_runs_in_ten_cells(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) == 10
    NotebookClient(
        notebook, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert (tmp_path / "sweep.nc").stat().st_size > 0
    assert "image/png" in code[-1].outputs[-1]["data"]
    printed = "".join(o.get("text", "") for cell in code for o in cell.outputs)
    assert "cautious" in printed and "±" in printed

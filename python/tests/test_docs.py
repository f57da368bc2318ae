"""What `docs/python.md` and the notebook show is run."""

import re

import pytest
from conftest import ROOT


def test_the_page_runs_from_top_to_bottom(monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert names["frame"]["busy_time"].notna().all() and names["mine"].runs == ["frames"]
    assert (tmp_path / "timeline.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_notebook_runs_in_a_clean_kernel():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs/python.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<table>" in data.get("text/html", "") for data in shown) and any("image/svg+xml" in data for data in shown)

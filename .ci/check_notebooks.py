"""Every notebook runs from a clean kernel, in time, and is kept without outputs."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[1]
#: Wall seconds one notebook may take, kernel start included.
LIMIT = 20.0


def problems(path: Path) -> list[str]:
    """What is wrong with a notebook."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    if any(cell.outputs or cell.execution_count for cell in code):
        found.append("outputs are kept: clear them before you commit")
    began = time.perf_counter()
    try:
        NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": ROOT}}).execute()
    except CellExecutionError as error:
        found.append(str(error))
    took = time.perf_counter() - began
    if took > LIMIT:
        found.append(f"took {took:.0f} s, at most {LIMIT:.0f} are allowed")
    print(f"{path.relative_to(ROOT)}: {len(code)} cells in {took:.1f} s", flush=True)
    return [f"{path.relative_to(ROOT)}: {text}" for text in found]


def main() -> None:
    """Run them all, two at a time."""
    paths = sorted(ROOT.joinpath("notebooks").glob("*.ipynb"))
    if not paths:
        raise SystemExit("there are no notebooks")
    with ThreadPoolExecutor(2) as threads:
        found = [problem for each in threads.map(problems, paths) for problem in each]
    for problem in found:
        print(problem, file=sys.stderr)
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()

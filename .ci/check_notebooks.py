"""Every notebook runs from a clean kernel, in time, and is kept without outputs.

    python .ci/check_notebooks.py                 all of notebooks/
    python .ci/check_notebooks.py FILE...         these
    python .ci/check_notebooks.py --write DIR     and write each, with its outputs, to DIR

The documentation shows those of the directory that the environment variable TOOLRT_NOTEBOOKS names.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[1]
#: Wall seconds one notebook may take, kernel start included.
LIMIT = 20.0

_stripped = runpy.run_path(str(Path(__file__).with_name("strip_notebooks.py")))["stripped"]
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def problems(path: Path, write_to: Path | None = None) -> list[str]:
    """What is wrong with a notebook; written with its outputs to the directory `write_to`, if there is one."""
    text = path.read_text(encoding="utf-8")
    notebook: Any = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    found = []
    if _stripped(text) != text:
        found.append("it has outputs, or what an editor noted in it: python .ci/strip_notebooks.py")
    began = time.perf_counter()
    try:
        NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": ROOT}}).execute()
    except CellExecutionError as error:
        found.append(_COLOURS.sub("", str(error)))
    took = time.perf_counter() - began
    if took > LIMIT:
        found.append(f"took {took:.0f} s, at most {LIMIT:.0f} are allowed")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found += [_COLOURS.sub("", said) for said in _warnings(code)]
    if write_to is not None:
        nbformat.write(notebook, write_to / path.name)
    print(f"{path.name}: {len(code)} cells in {took:.1f} s", flush=True)
    return [f"{path.name}: {text}" for text in found]


def _warnings(code: list[Any]) -> list[str]:
    """What cells wrote to standard error: nothing in a notebook that is shown to a class."""
    return [
        f"a cell complains: {output.text}"
        for cell in code
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
    ]


def main() -> None:
    """Run them all, two at a time."""
    parser = argparse.ArgumentParser(description="Run the notebooks.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--write", type=Path, metavar="DIR", help="where to write them with their outputs")
    chosen = parser.parse_args()
    paths = chosen.paths or sorted(ROOT.joinpath("notebooks").glob("*.ipynb"))
    if not paths:
        raise SystemExit("there are no notebooks")
    if chosen.write is not None:
        chosen.write.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as threads:
        found = [problem for each in threads.map(lambda path: problems(path, chosen.write), paths) for problem in each]
    for problem in found:
        print(problem, file=sys.stderr)
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()

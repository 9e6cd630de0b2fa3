"""Take the outputs out of notebooks: what is kept in git is what a person wrote.

    python .ci/strip_notebooks.py               all of notebooks/, in place
    python .ci/strip_notebooks.py FILE...       these
    python .ci/strip_notebooks.py --filter      from standard input to standard output, for git
    python .ci/strip_notebooks.py --install     have git do it in this clone, whenever a notebook is added

`.gitattributes` names the filter; git runs it in clones in which it is installed, and in no other.  Nothing is needed
but Python.  A notebook that is clean already comes out byte for byte as it went in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

#: All there is to know about the kernel: any Python 3 will do, and a newer one is no change.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def stripped(text: str) -> str:
    """The notebook without outputs, counts of executions, and what a user interface noted for itself.

    Raises:
        ValueError: the text is no notebook.
    """
    notebook: Any = json.loads(text)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ValueError("it has no cells")
    for cell in notebook["cells"]:
        tags = cell.get("metadata", {}).get("tags")
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
        source = cell["source"]
        if isinstance(source, str):
            cell["source"] = source.splitlines(keepends=True)
    notebook["metadata"] = METADATA
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def strip_files(paths: list[Path]) -> bool:
    """Strip in place what is not clean; whether all of them were notebooks."""
    good = True
    for path in paths:
        before = path.read_text(encoding="utf-8")
        try:
            after = stripped(before)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"{path}: this is no notebook: {error!r}", file=sys.stderr)
            good = False
            continue
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"{path}: stripped")
    return good


def install() -> None:
    """Set the filter that `.gitattributes` names, for this clone alone."""
    for key, value in (("clean", "python3 .ci/strip_notebooks.py --filter"), ("smudge", "cat"), ("required", "true")):
        subprocess.run(["git", "config", f"filter.strip-notebooks.{key}", value], cwd=ROOT, check=True)
    print("from now on git takes the outputs out of notebooks as they are added")


def main() -> None:
    """Do what the arguments say."""
    arguments = sys.argv[1:]
    if arguments == ["--install"]:
        install()
    elif arguments == ["--filter"]:
        try:
            text = stripped(sys.stdin.buffer.read().decode("utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise SystemExit(f"strip_notebooks: this is no notebook, so git is not given it: {error!r}") from error
        sys.stdout.buffer.write(text.encode())
    elif any(argument.startswith("-") for argument in arguments):
        raise SystemExit((__doc__ or "").split("\n\n")[1])
    else:
        paths = [Path(argument) for argument in arguments] or sorted(ROOT.joinpath("notebooks").glob("*.ipynb"))
        raise SystemExit(not strip_files(paths))


if __name__ == "__main__":
    main()

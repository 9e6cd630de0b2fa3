"""``toolrt run`` on the example, again and again: every run leaves the files and results of ``--lanes serial``.

``python .ci/check_example.py 200`` with the Python of an environment that has the ``cli`` extra; hypothesis must not
be there, because nothing may depend on it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def tree(root: Path) -> dict[str, str]:
    """What is in a directory: the target of each link, the mode and the content of each file."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = f"{path.stat().st_mode & 0o777:o} {path.read_bytes().hex()}"
        else:
            found[name] = "directory"
    return found


def once(lanes: str) -> tuple[dict[str, str], object]:
    """Run the example on a copy of its directory; the files it leaves and the message to send back."""
    with tempfile.TemporaryDirectory() as work:
        shop = Path(work, "shop")
        shutil.copytree(EXAMPLES / "shop", shop, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        response = str(EXAMPLES / "response.json")
        arguments = ["run", response, "--workspace", str(shop), "--lanes", lanes, "--format", "anthropic"]
        done = subprocess.run([sys.executable, "-m", "toolrt", *arguments], capture_output=True, text=True)
        if done.returncode != 1:  # two of the calls are not OK, on purpose
            raise SystemExit(f"toolrt run --lanes {lanes} ended with {done.returncode}:\n{done.stderr}")
        return tree(shop), json.loads(done.stdout)


def main() -> None:
    """Run as often as the command line says."""
    runs = int(sys.argv[1])
    if importlib.util.find_spec("hypothesis"):
        raise SystemExit("hypothesis is installed here: use an environment without it")
    expected = once("serial")
    with ThreadPoolExecutor(2) as threads:
        same = sum(ended == expected for ended in threads.map(once, ["by_claims"] * runs))
    print(f"{same} of {runs} runs end like --lanes serial")
    if same != runs:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

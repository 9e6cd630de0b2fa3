"""The npm packages that a site is built from: Pyodide, CodeMirror, and esbuild, which bundles the editor.

Rules.  They are no part of toolrt's wheel.  ``npm ci`` installs exactly what ``page/package-lock.json`` names, checked
by its hashes, into a folder of the user's cache, once for each state of that file; or the caller names a folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from toolrt.errors import MisuseError

#: What the site is made of, as it is in this package.
PAGE = Path(__file__).with_name("page")

_NAMED = ("package.json", "package-lock.json")
_NEEDED = ("pyodide/pyodide.asm.wasm", "codemirror/package.json", "esbuild/package.json")


def node(*arguments: str | Path) -> None:
    """Run Node.

    Raises:
        MisuseError: there is no Node, or it failed; the text has what it said.
    """
    _run("node", *map(str, arguments))


def node_modules(packages: Path | None) -> Path:
    """Give the ``node_modules`` with what is needed; without `packages` they are installed into the cache.

    Raises:
        MisuseError: `packages` lacks one, or npm is missing or failed.
    """
    if packages is None:
        packages = _cached()
    found = packages if packages.name == "node_modules" else packages / "node_modules"
    missing = [name.partition("/")[0] for name in _NEEDED if not (found / name).exists()]
    if missing:
        raise MisuseError(
            f"{found} has no {', '.join(missing)}: run `npm ci` beside a copy of {PAGE / 'package.json'} and "
            "package-lock.json, or name no folder"
        )
    return found.absolute()


def _cached() -> Path:
    digest = hashlib.sha256(b"".join((PAGE / name).read_bytes() for name in _NAMED)).hexdigest()[:16]
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(caches, "toolrt", f"playground-{digest}")
    done = folder / "node_modules" / ".package-lock.json"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in _NAMED:
            shutil.copyfile(PAGE / name, folder / name)
        _run("npm", "ci", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund")
    return folder


def _run(command: str, *arguments: str) -> None:
    found = shutil.which(command)
    if found is None:
        raise MisuseError(f"the playground is built with Node.js 20 or newer, and there is no `{command}`: install it")
    done = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MisuseError(f"{command} {' '.join(arguments[:2])} failed:\n{done.stderr.strip() or done.stdout.strip()}")

"""``--explore-changed``: a test that was explored is explored again when something that it runs has changed.

Rules.
    1. What a test runs: its file, the ``conftest.py`` files above it, and the source files that they import, directly
       or not; of what is installed, the versions.  Files of data are not looked at.
    2. A test that was explored, and whose code has not changed, is skipped.  When more executions are asked for than
       it has had, it gets the missing ones, by another seed.  A test that failed, or is undecided, is run again.
    3. ``--explore-changed=REF`` asks git: tests are explored that run a file in which the working tree differs from
       where it left REF.  Nothing need be remembered for that.
    4. What was explored is kept in pytest's cache, by the process that writes the summary.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from toolrt.sim._parsing import parsed

#: Where pytest's cache keeps what was explored.
CACHE = "toolrt/explored"

_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@attrs.define
class Changes:
    """What has changed since the tests were explored."""

    config: pytest.Config
    #: The files that differ from those of a commit; None: what is remembered decides.
    _differ: frozenset[Path] | None = None
    #: What was explored of each test, by its name.
    _explored: dict[str, dict[str, Any]] = attrs.Factory(dict)
    _files: dict[Path, frozenset[Path]] = attrs.Factory(dict)
    _digests: dict[Path, bytes] = attrs.Factory(dict)
    _installed: bytes = b""

    @classmethod
    def since(cls, config: pytest.Config, ref: str) -> Changes:
        """Give the changes since the branch left `ref`, or since the tests were explored when it is empty.

        Raises:
            UsageError: git does not know `ref`, or pytest's cache is off and `ref` is empty.
        """
        if ref:
            return cls(config, _differing_from(ref, config.rootpath))
        cache = getattr(config, "cache", None)
        if cache is None:
            raise pytest.UsageError("--explore-changed: pytest's cache is off; give a commit (--explore-changed=REF)")
        return cls(config, explored=cache.get(CACHE, {}))

    def digest(self, item: pytest.Item, plan: str) -> str:
        """Give a digest of all that decides what an exploration of `item` finds.

        Args:
            item: the test.
            plan: how it is explored, but for the number of executions.
        """
        if not self._installed:
            known = sorted(f"{found.name}=={found.version}" for found in importlib.metadata.distributions())
            self._installed = "\n".join([sys.version, *known]).encode()
        whole = hashlib.sha256(self._installed + plan.encode())
        for file in sorted(self.files(item)):
            whole.update(str(file).encode() + self._digest_of(file))
        return whole.hexdigest()

    def spent(self, item: pytest.Item, digest: str) -> float:
        """Give how many executions need not be repeated; infinity when all that there is has been explored."""
        if self._differ is not None:
            return 0 if self.files(item) & self._differ else float("inf")
        known = self._explored.get(item.nodeid, {})
        if known.get("digest") != digest:
            return 0
        return float("inf") if known["whole"] else float(known["executions"])

    def keep(self, found: dict[str, dict[str, Any]]) -> None:
        """Remember what was explored in this run, beside what was known of other tests."""
        cache = getattr(self.config, "cache", None)
        if cache is None:
            return
        kept = dict(cache.get(CACHE, {}))
        for name, test in found.items():
            before = kept.pop(name, {})
            if test["digest"] and test["kind"] == "explored":
                # Executions of the same code that were not repeated now count, too.
                had = before.get("executions", 0) if before.get("digest") == test["digest"] else 0
                executions = test["executions"] + had
                kept[name] = {"digest": test["digest"], "executions": executions, "whole": test["whole"]}
            elif test["kind"] == "unchanged" and before:
                kept[name] = before
        cache.set(CACHE, kept)

    def files(self, item: pytest.Item) -> frozenset[Path]:
        """Give the source files that `item` runs."""
        found: set[Path] = set()
        for start in [item.path, *(folder / "conftest.py" for folder in item.path.parents)]:
            if start.is_file() and (start == item.path or start.is_relative_to(self.config.rootpath)):
                self._add(start, found)
        return frozenset(found)

    def _add(self, start: Path, found: set[Path]) -> None:
        waiting = [start.resolve()]
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                waiting += self._imported_by(file) - found

    def _imported_by(self, file: Path) -> frozenset[Path]:
        if file not in self._files:
            names = _names_imported(file)
            origins = (origin for name in names if (origin := _origin(name)) is not None)
            self._files[file] = frozenset(origin for origin in origins if not str(origin).startswith(_INSTALLED))
        return self._files[file]

    def _digest_of(self, file: Path) -> bytes:
        if file not in self._digests:
            self._digests[file] = hashlib.sha256(file.read_bytes()).digest()
        return self._digests[file]


changes_key = pytest.StashKey[Changes]()


def _names_imported(file: Path) -> set[str]:
    """Name the modules that a source file imports anywhere in it, and those that what it imports may be."""
    try:
        tree = parsed(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    package = _package_of(file)
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= set(_with_parents(alias.name))
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*filter(None, above), *filter(None, [node.module])])
            found |= {*_with_parents(name), *(f"{name}.{alias.name}" for alias in node.names)}
    return found


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _package_of(file: Path) -> str:
    """Name the package that a file is in, by the folders above it that are packages."""
    names: list[str] = []
    folder = file.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names)


def _origin(name: str) -> Path | None:
    """Give the source file of a module; None where it has none, or there is no such module."""
    module = sys.modules.get(name)
    place = getattr(module, "__file__", None)
    if module is None and sys.modules.get(name.rpartition(".")[0]) is not None:
        # One that is imported later, in a function.  Its package is there, so nothing is run to find it.
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError, ValueError):
            spec = None
        place = None if spec is None else spec.origin
    return Path(place).resolve() if place is not None and place.endswith(".py") else None


def _differing_from(ref: str, root: Path) -> frozenset[Path]:
    """Give the files in which the working tree differs from where it left `ref`, and those that git does not know."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise pytest.UsageError(f"--explore-changed={ref}: git {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    top = Path(git("rev-parse", "--show-toplevel").strip())
    base = git("merge-base", ref, "HEAD").strip()
    names = {*git("diff", "--name-only", base).splitlines(), *git("ls-files", "-o", "--exclude-standard").splitlines()}
    # The second list is told from `root`, the first from the top.
    return frozenset(place.resolve() for name in names for place in (top / name, root / name) if place.exists())

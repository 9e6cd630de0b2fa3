"""All files that are known, at one age: their facts, and which file a written import means.

Rules.  What is answered depends on the files' paths and facts alone; where several files could be meant, the one that
shares the longest path with the importing file is, and of those the first by its path.
"""

from __future__ import annotations

import posixpath
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cached_property

from toolrt.plugins.code._facts import Facts, Import, from_text
from toolrt.plugins.code._languages import LANGUAGES
from toolrt.plugins.code._store import FileRow

#: How many files' facts are kept at most: some 60 kB each.
_FACTS_KEPT = 1000

_EMPTY = Facts("", 0)

_SCRIPTS = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".d.ts")


class SourceTree:
    """The files, as one connection has them; for one thread at a time.

    Args:
        facts: facts that were loaded before, by digest and language; it is filled.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        files: Mapping[str, FileRow],
        facts: OrderedDict[tuple[bytes | None, str], Facts],
    ) -> None:
        self._connection = connection
        self.files = files
        self._facts = facts

    def facts(self, path: str) -> Facts:
        """The facts of a file; empty ones of a file that is not known."""
        row = self.files.get(path)
        if row is None or not row.language:
            return _EMPTY
        key = row.digest, row.language
        known = self._facts.get(key)
        if known is not None:
            self._facts.move_to_end(key)
            return known
        found = self._connection.execute("SELECT said FROM facts WHERE file = ?", (row.id,)).fetchone()
        facts = self._facts[key] = _EMPTY if found is None else from_text(found[0])
        if len(self._facts) > _FACTS_KEPT:
            self._facts.popitem(last=False)
        return facts

    def defining(self, name: str) -> list[str]:
        """The files that define something of that name, by path."""
        return self._paths("SELECT file FROM defined WHERE name = ?", name)

    def mentioning(self, name: str) -> list[str]:
        """The files that may call, import or inherit from something of that name, by path."""
        return self._paths("SELECT file FROM mentioned WHERE name = ?", name)

    def _paths(self, query: str, name: str) -> list[str]:
        try:
            found = self._connection.execute(query, (name,)).fetchall()
        except UnicodeEncodeError:
            return []
        return sorted(self._by_id[id] for (id,) in found if id in self._by_id)

    @cached_property
    def _by_id(self) -> dict[int, str]:
        return {row.id: path for path, row in self.files.items()}

    # Which file a written import means

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        """The paths by what a module of theirs is called: the file's name without its ending, or its directory's."""
        found: dict[str, list[str]] = {}
        for path, row in self.files.items():
            if not row.language:
                continue
            directory, name = posixpath.split(path)
            stem = name.split(".")[0]
            if stem in ("__init__", "mod", "index", "lib"):
                found.setdefault(posixpath.basename(directory), []).append(path)
            found.setdefault(stem, []).append(path)
        return found

    @cached_property
    def _packages(self) -> frozenset[str]:
        """The directories that are Python packages."""
        return frozenset(
            posixpath.dirname(path)
            for path in self.files
            if posixpath.basename(path) in ("__init__.py", "__init__.pyi")
        )

    @cached_property
    def _directories(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.files:
            found.setdefault(posixpath.dirname(path), []).append(path)
        return found

    def siblings(self, path: str) -> list[str]:
        """The files in the same directory, by path."""
        return self._directories.get(posixpath.dirname(path), [])

    def python_module(self, module: str, level: int, importer: str) -> str | None:
        """The file of a Python module, as `importer` writes it; a package is its ``__init__.py``."""
        parts = module.split(".") if module else []
        if level:
            base = posixpath.dirname(importer)
            for _ in range(level - 1):
                base = posixpath.dirname(base)
            return self._python_at(posixpath.join(base, *parts) if parts else base)
        if not parts:
            return None
        candidates = []
        for path in self._by_stem.get(parts[-1], ()):
            if not path.endswith((".py", ".pyi")):
                continue
            whole, name = posixpath.split(path)
            own = whole if name.startswith("__init__.") else posixpath.join(whole, name.rpartition(".")[0])
            tail = own.split("/")
            if tail[-len(parts) :] != parts:
                continue
            root = "/".join(tail[: len(tail) - len(parts)])
            if root in self._packages and root:
                continue
            candidates.append(path)
        return self._nearest(candidates, importer)

    def _python_at(self, base: str) -> str | None:
        for path in (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi", f"{base}/__init__.pyi"):
            if path.removeprefix("/") in self.files:
                return path.removeprefix("/")
        return None

    def _nearest(self, candidates: Iterable[str], importer: str) -> str | None:
        def rank(path: str) -> tuple[int, int, str]:
            return -len(posixpath.commonprefix([path, importer])), int(path.endswith(".pyi")), path

        return min(candidates, key=rank, default=None)

    def is_python_package(self, path: str) -> bool:
        """Whether the file stands for its directory."""
        return posixpath.basename(path) in ("__init__.py", "__init__.pyi")

    def imported(self, path: str, one: Import) -> list[str]:
        """The files that an import in `path` means, by path; none where it means nothing that is known."""
        language = self.files[path].language
        if language == "python":
            found = self._python_imported(path, one)
        elif LANGUAGES[language].related == "javascript":
            found = self._script_imported(path, one.module)
        elif language in ("c", "cpp"):
            found = self._included(path, one)
        elif language == "go":
            found = self._go_imported(path, one.module)
        elif language == "java":
            found = self._java_imported(path, one)
        elif language == "rust":
            found = self._rust_imported(path, one)
        else:
            found = self._ruby_required(path, one)
        return [file for file in dict.fromkeys(found) if file != path]

    def _python_imported(self, path: str, one: Import) -> list[str]:
        module = self.python_module(one.module, one.level, path)
        if one.name and one.name != "*":
            inner = self.python_module(f"{one.module}.{one.name}" if one.module else one.name, one.level, path)
            if module is None or (inner is not None and not self._binds(module, one.name)):
                return [inner] if inner is not None else []
        return [] if module is None else [module]

    def _binds(self, path: str, name: str) -> bool:
        facts = self.facts(path)
        return any(symbol.name == name and symbol.parent < 0 for symbol in facts.symbols) or any(
            binding.target == name and binding.scope < 0 for binding in facts.bindings
        )

    def _script_imported(self, path: str, module: str) -> list[str]:
        if not module.startswith("."):
            return []
        base = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        stem, ending = posixpath.splitext(base)
        names = [base, *(base + one for one in _SCRIPTS), *(f"{base}/index{one}" for one in _SCRIPTS)]
        if ending in (".js", ".mjs", ".cjs", ".jsx"):
            names += [stem + one for one in _SCRIPTS]
        return [name for name in names if name in self.files][:1]

    def _included(self, path: str, one: Import) -> list[str]:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), one.module))
        if one.level and beside in self.files:
            return [beside]
        return self._ending_with(one.module, path)

    def _ending_with(self, tail: str, path: str) -> list[str]:
        """The nearest file whose path ends with `tail`, alone; none: there is no such file."""
        stem = posixpath.basename(tail).split(".")[0]
        found = self._nearest([file for file in self._by_stem.get(stem, ()) if f"/{file}".endswith(f"/{tail}")], path)
        return [] if found is None else [found]

    def _go_imported(self, path: str, module: str) -> list[str]:
        parts = module.split("/")
        for skip in range(len(parts)):
            tail = "/".join(parts[skip:])
            directories = [directory for directory in self._directories if f"/{directory}".endswith(f"/{tail}")]
            best = self._nearest(directories, path)
            if best is not None and skip < len(parts):
                files = [file for file in self._directories[best] if file.endswith(".go")]
                if files:
                    return files
        return []

    def _java_imported(self, path: str, one: Import) -> list[str]:
        if one.name == "*":
            tail = one.module.replace(".", "/")
            directory = self._nearest([each for each in self._directories if f"/{each}".endswith(f"/{tail}")], path)
            return (
                [] if directory is None else [each for each in self._directories[directory] if each.endswith(".java")]
            )
        for name in (f"{one.module}.{one.name}", one.module):  # the second is a static import
            if found := self._ending_with(f"{name.replace('.', '/')}.java", path):
                return found
        return []

    def _rust_imported(self, path: str, one: Import) -> list[str]:
        parts = [part for part in [*one.module.split("::"), one.name] if part and part not in ("crate", "*")]
        while parts and parts[0] in ("self", "super"):
            parts = parts[1:]
        for count in range(len(parts), 0, -1):
            some = parts[:count]
            files = []
            for file in self._by_stem.get(some[-1], ()):
                own = file.removesuffix(".rs").removesuffix("/mod").split("/")
                if file.endswith(".rs") and own[-len(some) :] == some:
                    files.append(file)
            found = self._nearest(files, path)
            if found is not None:
                return [found]
        return []

    def _ruby_required(self, path: str, one: Import) -> list[str]:
        name = one.module if one.module.endswith(".rb") else f"{one.module}.rb"
        if one.level:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            return [beside] if beside in self.files else []
        return self._ending_with(name, path)

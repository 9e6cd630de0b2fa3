"""Who calls whom, what imports what, and what a change may reach.

Rules.  An edge is worked out when it is asked for, from the facts of the files as they are.  Answers are in the
order of paths and lines.  A call belongs to the function it is written in, and so do those of functions inside of it;
those in a class's body belong to the class.  To call a class is to call what makes its values (``__init__``, ``new``,
``constructor``, ``initialize``).

Limits.  What calls by a table (but for one that a Python file writes out), by a decorator, by a framework or by text is
not seen.  A call through a base class is an edge to the base's method; what a change reaches follows it to those that
override it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from toolrt.plugins.code._by_name import ByName
from toolrt.plugins.code._facts import MODULE, Call, Facts, Symbol, last_names
from toolrt.plugins.code._languages import LANGUAGES
from toolrt.plugins.code._resolve import Python, Target
from toolrt.plugins.code._tree import SourceTree

#: How many symbols a search for a way, or for what a change reaches, looks at.
VISITED_MOST = 5000

#: Up to how many other names callers are looked for by.
_ALIASES_MOST = 64

_MAKERS = ("__init__", "__new__", "__post_init__", "__attrs_post_init__", "new", "constructor", "initialize")


@attrs.frozen
class Place:
    """A symbol and where it is."""

    #: Its file, relative to the tree's root, with slashes.
    path: str
    #: The line of its name, from 1; of a file as a whole 1.
    line: int
    #: Its name with those of what it is in; "" is the file as a whole.
    name: str
    kind: str
    signature: str


@attrs.frozen
class CodeEdge:
    """One call."""

    #: The symbol it is in.
    caller: Place
    #: What it means; None: that is not known.
    callee: Place | None
    #: Where it is written.
    path: str
    line: int
    #: What is written before the arguments.
    written: str
    #: Whether nothing but the name's being the only one says what it means.
    by_name: bool = False


class Graph:
    """The graph of one tree at one age; for one thread at a time."""

    def __init__(self, tree: SourceTree) -> None:
        self.tree = tree
        self._python = Python(tree)
        self._by_name = ByName(tree)
        self._renamed: dict[tuple[str, bool], dict[str, list[str]]] = {}

    # Symbols

    def symbol(self, target: Target) -> Symbol | None:
        """The symbol that `target` names, or None for a file."""
        return None if target.symbol == MODULE else self.tree.facts(target.path).symbols[target.symbol]

    def place(self, target: Target) -> Place:
        """Where `target` is."""
        symbol = self.symbol(target)
        if symbol is None:
            return Place(target.path, 1, "", "file", "")
        return Place(target.path, symbol.named_at, symbol.qualified, symbol.kind, symbol.signature)

    def found(self, wanted: str, path: str | None = None) -> list[Target]:
        """The symbols called `wanted` (``name``, ``Class.name``), in the file at `path` or everywhere."""
        name = wanted.rpartition(".")[2]
        found: list[Target] = []
        for file in self.tree.defining(name):
            if path is not None and file != path:
                continue
            for symbol in self.tree.facts(file).symbols:
                own = symbol.qualified
                if symbol.name == name and (own == wanted or own.endswith(f".{wanted}")) and symbol.kind != "impl":
                    found.append(Target(file, symbol.ordinal))
        real = [one for one in found if self._symbol(one).kind != "prototype"]
        exact = [one for one in real or found if self._symbol(one).qualified == wanted]
        return exact or real or found

    def _symbol(self, target: Target) -> Symbol:
        return self.tree.facts(target.path).symbols[target.symbol]

    # Calls

    def meant(self, path: str, call: Call) -> tuple[tuple[Target, ...], bool]:
        """What a call in the file at `path` means, and whether only by name."""
        if self.tree.facts(path).language == "python":
            return self._python.called(path, call.caller, call.callee), False
        guess = self._by_name.called(path, call)
        return guess.targets, guess.by_name_alone

    def _edge(self, path: str, call: Call, target: Target | None, by_name: bool) -> CodeEdge:
        caller = self.place(Target(path, call.caller))
        return CodeEdge(caller, None if target is None else self.place(target), path, call.line, call.callee, by_name)

    def _inside(self, target: Target) -> frozenset[int]:
        """The ordinals of the symbol and of what is in it."""
        if target.symbol == MODULE:
            facts = self.tree.facts(target.path)
            return frozenset((MODULE, *range(len(facts.symbols))))
        inside = {target.symbol}
        for symbol in self.tree.facts(target.path).symbols[target.symbol + 1 :]:
            if symbol.parent in inside:
                inside.add(symbol.ordinal)
        return frozenset(inside)

    def calls_in(self, target: Target) -> Iterator[tuple[Call, tuple[Target, ...], bool]]:
        """The calls in `target`, a symbol or a file, and what they mean."""
        inside = self._inside(target)
        for call in self.tree.facts(target.path).calls:
            if call.caller in inside:
                yield call, *self.meant(target.path, call)

    def callees(self, target: Target) -> list[CodeEdge]:
        """What the symbol `target` calls; an edge for each place, and each thing it may mean there."""
        edges = []
        for call, targets, by_name in self.calls_in(target):
            if targets:
                edges += [self._edge(target.path, call, one, by_name) for one in targets]
            elif call.name:
                edges.append(self._edge(target.path, call, None, False))
        return edges

    def callers(self, target: Target) -> tuple[list[CodeEdge], list[CodeEdge]]:
        """The callers of the symbol `target`, and unresolved calls of its name."""
        wanted = {target}
        name = self._symbol(target).name
        names = {name}
        symbol = self._symbol(target)
        if symbol.name in _MAKERS and symbol.parent != MODULE:
            holder = Target(target.path, symbol.parent)
            wanted.add(holder)
            names.add(self._symbol(holder).name)
        names, files = self._spread(names)
        known: list[CodeEdge] = []
        possible: list[CodeEdge] = []
        for path in sorted(files):
            facts = self.tree.facts(path)
            here = names | self._aliases(path, names, local=True)
            for call in facts.calls:
                if call.name not in here and (call.name or here.isdisjoint(last_names(call.callee))):
                    continue
                targets, by_name = self.meant(path, call)
                if any(one in wanted for one in targets):
                    known.append(self._edge(path, call, target, by_name))
                elif not targets and call.name == name and self._may_be(path, call, target):
                    possible.append(self._edge(path, call, None, False))
        return known, possible

    def _spread(self, names: set[str]) -> tuple[set[str], set[str]]:
        """`names` with those that other files may call the same by, and the files that may call any of them."""
        asked: set[str] = set()
        files: set[str] = set()
        while (new := names - asked) and len(names) <= _ALIASES_MOST:
            asked |= new
            found = {file for one in new for file in self.tree.mentioning(one)}
            files |= found
            names = names.union(*(self._aliases(file, names) for file in found))
        return asked, files

    def _aliases(self, path: str, names: set[str], local: bool = False) -> set[str]:
        """What the file at `path` calls things of these names by; with `local` also within its functions."""
        renamed = self._renamed.get((path, local))
        if renamed is None:
            renamed = self._renamed[path, local] = _renamed(self.tree.facts(path), local)
        found: set[str] = set()
        pending = list(names)
        while pending:
            for one in renamed.get(pending.pop(), ()):
                if one not in found:
                    found.add(one)
                    pending.append(one)
        return found

    def _may_be(self, path: str, call: Call, target: Target) -> bool:
        """Whether an unresolved call may mean `target`."""
        own, its = self.tree.files[path].language, self.tree.files[target.path].language
        of_value = call.callee != call.name
        return LANGUAGES[own].related == LANGUAGES[its].related and (
            not of_value or self._symbol(target).kind not in ("function", "class")
        )

    def _next(self, target: Target) -> list[tuple[Target, int]]:
        """What the symbol leads to: what it calls, and for a class what makes its values; with lines."""
        symbol = self.symbol(target)
        found: dict[Target, int] = {}
        if symbol is not None and symbol.kind not in ("function", "method", "constructor", "prototype", "macro"):
            for inner in self.tree.facts(target.path).symbols:
                if inner.parent == target.symbol and inner.name in (*_MAKERS, symbol.name):
                    found[Target(target.path, inner.ordinal)] = inner.named_at
            return list(found.items())
        for call, targets, _ in self.calls_in(target):
            for one in targets:
                found.setdefault(one, call.line)
        return list(found.items())

    def way(self, source: Target, target: Target) -> tuple[list[tuple[Place, int]] | None, bool]:
        """The shortest way of calls from `source` to `target`, each step with the line of the call that leads on, and
        whether all was looked at.
        """
        before: dict[Target, tuple[Target, int] | None] = {source: None}
        row = [source]
        while row and target not in before:
            following: list[Target] = []
            for one in row:
                for reached, line in self._next(one):
                    if reached not in before:
                        before[reached] = one, line
                        following.append(reached)
                if len(before) > VISITED_MOST:
                    break
            if len(before) > VISITED_MOST and target not in before:
                return None, False
            row = following
        if target not in before:
            return None, True
        steps: list[tuple[Place, int]] = [(self.place(target), 0)]
        here = before[target]
        while here is not None:
            one, line = here
            steps.append((self.place(one), line))
            here = before[one]
        return steps[::-1], True

    # Files

    def imports(self, path: str) -> list[tuple[str, int]]:
        """The files that a file imports, each with the first line that does, by path."""
        found: dict[str, int] = {}
        for one in self.tree.facts(path).imports:
            for file in self.tree.imported(path, one):
                found[file] = min(found.get(file, one.line), one.line)
        return sorted(found.items())

    def outside(self, path: str) -> list[str]:
        """What the file at `path` imports that no known file is, as it is written."""
        found: dict[str, None] = {}
        for one in self.tree.facts(path).imports:
            if not self.tree.imported(path, one):
                found["." * one.level + one.module if self.tree.files[path].language == "python" else one.module] = None
        return sorted(found)

    def importers(self, path: str) -> list[tuple[str, int]]:
        """The files that import a file, each with the first line that does, by path."""
        names = _names_of_file(path)
        files = dict.fromkeys(file for name in names for file in self.tree.mentioning(name))
        if path.endswith(".go"):
            files.update(dict.fromkeys(file for file in self.tree.files if file.endswith(".go")))
        found = []
        for file in sorted(files):
            if file != path:
                lines = [line for other, line in self.imports(file) if other == path]
                if lines:
                    found.append((file, lines[0]))
        return found

    # What a change reaches

    def reached(self, starts: Iterable[Target], deepest: int) -> tuple[list[tuple[int, Place, Place]], bool]:
        """The symbols that `starts` may reach in `deepest` calls: how many, where, and through which; and whether
        all was looked at.
        """
        seen = dict.fromkeys(starts)
        row = list(seen)
        found: list[tuple[int, Place, Place]] = []
        for depth in range(1, deepest + 1):
            following: dict[Target, Place] = {}
            for one in row:
                for reached in self._reaches(one):
                    if reached not in seen:
                        seen[reached] = None
                        following[reached] = self.place(one)
                if len(seen) > VISITED_MOST:
                    return found, False
            found += sorted(((depth, self.place(one), through) for one, through in following.items()), key=_by_place)
            row = list(following)
        return found, True

    def _reaches(self, target: Target) -> list[Target]:
        """What a change of one symbol may change next: who calls it, who calls what it overrides, what inherits it."""
        symbol = self.symbol(target)
        if symbol is None:
            return []
        asked = [target, *self._overridden(target, symbol)]
        found: dict[Target, None] = {}
        for one in asked:
            for edge in self.callers(one)[0]:
                caller = self._target_of(edge)
                if caller is not None:
                    found[caller] = None
        for one in self._heirs(target, symbol):
            found[one] = None
        found.pop(target, None)
        return list(found)

    def _target_of(self, edge: CodeEdge) -> Target | None:
        for symbol in self.tree.facts(edge.path).symbols:
            if symbol.qualified == edge.caller.name and symbol.named_at == edge.caller.line:
                return Target(edge.path, symbol.ordinal)
        return Target(edge.path, MODULE)

    def _overridden(self, target: Target, symbol: Symbol) -> list[Target]:
        if symbol.parent == MODULE or self.tree.facts(target.path).language != "python":
            return []
        found: list[Target] = []
        if self.tree.facts(target.path).symbols[symbol.parent].kind != "class":
            return found
        for base in self._python.order(Target(target.path, symbol.parent))[1:]:
            for one in self.tree.facts(base.path).symbols:
                if one.parent == base.symbol and one.name == symbol.name:
                    found.append(Target(base.path, one.ordinal))
        return found

    def _heirs(self, target: Target, symbol: Symbol) -> list[Target]:
        """The classes that inherit from a class."""
        if symbol.kind in ("function", "method", "constructor", "prototype", "macro", "type"):
            return []
        found = []
        for path in self.tree.mentioning(symbol.name):
            facts = self.tree.facts(path)
            names = {symbol.name} | self._aliases(path, {symbol.name}, local=True)
            for one in facts.symbols:
                may_be = any(base.rpartition(".")[2].rstrip("[]") in names for base in one.bases)
                if may_be and target in self.bases(path, one):
                    found.append(Target(path, one.ordinal))
        return found

    def bases(self, path: str, symbol: Symbol) -> tuple[Target, ...]:
        """What the class `symbol` of the file at `path` inherits from, as far as it is known."""
        if self.tree.facts(path).language == "python":
            found = (
                one for base in symbol.bases for one in self._python.meant(path, symbol.parent, base.replace("[]", ""))
            )
            return tuple(one for one in found if one.symbol != MODULE and not one.value)
        return self._by_name.bases(path, symbol)


def innermost(symbols: Sequence[Symbol], line: int) -> Symbol | None:
    """The innermost symbol that a line is in."""
    around = [one for one in symbols if one.line <= line <= one.end_line and one.kind != "impl"]
    return max(around, key=lambda one: (one.start, -one.end), default=None)


def _by_place(found: tuple[int, Place, Any]) -> tuple[int, str, int, str]:
    depth, place, _ = found
    return depth, place.path, place.line, place.name


def _renamed(facts: Facts, local: bool) -> dict[str, list[str]]:
    """By each name: the other names that imports and assignments of a file give to what has it."""
    found: dict[str, list[str]] = {}
    for one in facts.imports:
        if one.bound and one.bound != one.name:
            found.setdefault(one.name, []).append(one.bound)
    for binding in facts.bindings:
        wide = "." in binding.target or binding.scope == MODULE or facts.symbols[binding.scope].kind == "class"
        if wide or local:
            for name in last_names(binding.value):
                found.setdefault(name, []).append(binding.target.rpartition(".")[2])
    return found


def _names_of_file(path: str) -> list[str]:
    """The last names by which imports may mean a file."""
    directory, _, name = path.rpartition("/")
    stem = name.split(".")[0]
    names = [stem, name]
    if stem in ("__init__", "mod", "index", "lib") or name.endswith((".go", ".java")):
        names.append(directory.rpartition("/")[2])
    if path.endswith("/__init__.py"):
        names.append("*")
    return list(dict.fromkeys(names))

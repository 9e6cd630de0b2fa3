"""Which variables inner functions share, and which of those may change while they are shared.

Rules.  A variable that is bound once, outside of loops, before the first function that captures it begins, never
changes as others see it: its loads need no report.  Neither do those that only a comprehension captures, which is over
at once.
"""

# The methods have the names that `ast` gives its nodes.
# ruff: noqa: N815

from __future__ import annotations

import ast
from typing import Any

import attrs

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_Place = tuple[int, int]


@attrs.define(eq=False)
class Scope:
    """One function, comprehension, class or module."""

    kind: str
    parent: Scope | None
    place: _Place
    #: Where each name is bound, and whether in a loop.
    binds: dict[str, list[tuple[_Place, bool]]] = attrs.Factory(dict)
    used: set[str] = attrs.Factory(set)
    globals: set[str] = attrs.Factory(set)
    nonlocals: set[str] = attrs.Factory(set)
    #: The inner scopes that share each variable of this one.
    sharers: dict[str, list[Scope]] = attrs.Factory(dict)
    #: The variables of this scope whose loads and stores are reported.
    shared: set[str] = attrs.Factory(set)

    def owner(self, name: str) -> Scope | None:
        """Give the scope whose variable `name` is here; None for a global's."""
        if name in self.globals:
            return None
        if name in self.binds and name not in self.nonlocals:
            return None if self.kind == "module" else self
        above = self.parent
        while above is not None:
            if above.kind not in ("class", "module"):
                if name in above.globals:
                    return None
                if name in above.binds and name not in above.nonlocals:
                    return above
            above = above.parent
        return None


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.scopes: dict[ast.AST, Scope] = {}
        self.globals: set[str] = set()
        self._scope = Scope("module", None, (0, 0))
        self._loops = 0

    def read(self, tree: ast.AST) -> None:
        self.scopes[tree] = self._scope
        self.generic_visit(tree)

    def _bind(self, name: str, node: Any, scope: Scope | None = None) -> None:
        place = (node.lineno, node.col_offset)
        (scope or self._scope).binds.setdefault(name, []).append((place, self._loops > 0))

    def _within(self, kind: str, node: Any) -> tuple[Scope, int]:
        before = self._scope, self._loops
        self._scope = self.scopes[node] = Scope(kind, self._scope, (node.lineno, node.col_offset))
        self._loops = 0
        return before

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._scope.used.add(node.id)
        else:
            self._bind(node.id, node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        scope = self._scope
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        self._bind(node.target.id, node, scope)
        if scope is not self._scope:
            self._scope.used.add(node.target.id)

    def visit_Global(self, node: ast.Global) -> None:
        self._scope.globals.update(node.names)
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._scope.nonlocals.update(node.names)
        self._scope.used.update(node.names)

    def _visit_function(self, node: Any) -> None:
        if not isinstance(node, ast.Lambda):
            self._bind(node.name, node)
            for decorator in node.decorator_list:
                self.visit(decorator)
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.visit(default)
        before = self._within("function", node)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for argument in every:
            if argument is not None:
                self._scope.binds.setdefault(argument.arg, []).append(((0, 0), False))
        for inner in [node.body] if isinstance(node, ast.Lambda) else node.body:
            self.visit(inner)
        self._scope, self._loops = before

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _visit_function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name, node)
        for inner in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(inner)
        before = self._within("class", node)
        for statement in node.body:
            self.visit(statement)
        self._scope, self._loops = before

    def _visit_comprehension(self, node: Any) -> None:
        self.visit(node.generators[0].iter)
        kind = "generator" if isinstance(node, ast.GeneratorExp) else "comprehension"
        before = self._within(kind, node)
        for place, generator in enumerate(node.generators):
            self.visit(generator.target)
            if place:
                self.visit(generator.iter)
            for condition in generator.ifs:
                self.visit(condition)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self._scope, self._loops = before

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def _visit_loop(self, node: Any) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_For = visit_AsyncFor = visit_While = _visit_loop

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name, node)
            # It is unbound again at the end.
            self._bind(node.name, node)
        self.generic_visit(node)

    def _visit_import(self, node: Any) -> None:
        for name in node.names:
            self._bind(name.asname or name.name.partition(".")[0], node)

    visit_Import = visit_ImportFrom = _visit_import

    def _visit_capture(self, node: Any) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self._bind(name, node)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _visit_capture

    def visit_arg(self, node: ast.arg) -> None:
        """Leave annotations alone."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
        self.visit(node.target)


def scopes_of(tree: ast.AST) -> tuple[dict[ast.AST, Scope], set[str]]:
    """Give the scope of each node that has one, and the names that `global` statements name."""
    reader = _Reader()
    reader.read(tree)
    rebound: set[tuple[int, str]] = set()
    for scope in reader.scopes.values():
        for name in scope.used | scope.binds.keys():
            owner = scope.owner(name)
            if owner is None or owner is scope:
                continue
            owner.sharers.setdefault(name, []).append(scope)
            if name in scope.nonlocals or (scope.kind == "comprehension" and name in scope.binds):
                rebound.add((id(owner), name))
    for scope in reader.scopes.values():
        for name, sharers in scope.sharers.items():
            if all(sharer.kind == "comprehension" and sharer.parent is scope for sharer in sharers):
                continue
            binds = scope.binds[name]
            first = min(sharer.place for sharer in sharers)
            once = len(binds) == 1 and not binds[0][1] and binds[0][0] <= first
            if not once or (id(scope), name) in rebound:
                scope.shared.add(name)
    return reader.scopes, reader.globals

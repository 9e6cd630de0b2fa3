"""Mutants by machine: every small change of a module's functions, applied in this process.

A mutant is one changed node of a module's syntax tree.  The module is compiled with it, and the function around it gets
the new code object: `function.__code__` is replaced, so that every place that holds the function runs the mutant.

What is not changed, since no law is about it:

- what only tells: blocks under ``if observer...``, ``if probe...``, and calls of these two,
- what only refuses wrong arguments: ``raise``, and an ``if`` that does nothing else,
- assertions, docstrings, annotations, texts, defaults, decorators, and what runs at import (the tables).
"""

from __future__ import annotations

import ast
import copy
import gc
import importlib
import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial

import attrs

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
}
_TELLS = ("observer", "probe", "_footprints")


@attrs.frozen(slots=False)
class CodeMutant:
    """One change of one function."""

    #: The module's dotted name.
    module: str
    #: The function around the change, by its path in the module.
    function: str
    #: The line before and after, without what is around it.
    change: str
    #: Which of the equal changes of this function it is, from 0.
    number: int
    #: The line in the module now.
    line: int = attrs.field(eq=False)
    #: Makes the code, which takes a while.
    _compile: Callable[[], types.CodeType] = attrs.field(eq=False, repr=False)

    @cached_property
    def code(self) -> types.CodeType:
        """The code of the function with the change."""
        return self._compile()

    @property
    def name(self) -> str:
        """What it is known by, also when lines above it move."""
        again = f" ({self.number + 1})" if self.number else ""
        return f"{self.module} {self.function}: {self.change}{again}"


def _tells(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Name) and part.id in _TELLS for part in ast.walk(node))


def _refuses(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and not node.orelse and all(isinstance(one, ast.Raise) for one in node.body)


def _may_go(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node that may stand in place of `node`."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        yield ast.Compare(node.left, [_COMPARED[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif (
        isinstance(node, ast.BinOp)
        and type(node.op) in _COMPUTED
        and not isinstance(node.right, ast.Constant | ast.JoinedStr)
    ):
        yield ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in _COMPUTED:
        yield ast.AugAssign(node.target, _COMPUTED[type(node.op)](), node.value)
        yield ast.Pass()
    elif isinstance(node, ast.If | ast.While | ast.IfExp) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call
    ):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield changed
    elif _may_go(node):
        yield ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Continue):
        yield ast.Break()
    elif isinstance(node, ast.Break):
        yield ast.Continue()


class _Finder:
    """Finds every change of the functions of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        #: The parent's list or field, the place in it, the change, and the function around it.
        self.found: list[tuple[ast.AST, str, int | None, ast.AST, ast.AST, str]] = []

    def look(self) -> None:
        for node in self._tree.body:
            self._enter(node, "")

    def _enter(self, node: ast.AST, path: str) -> None:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                self._enter(inner, f"{path}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for at, statement in enumerate(node.body):
                self._visit(node, "body", at, statement, f"{path}{node.name}")

    def _visit(self, parent: ast.AST, field: str, at: int | None, node: ast.AST, function: str) -> None:
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom) or _refuses(node):
            return
        if isinstance(node, ast.Expr) and (isinstance(node.value, ast.Constant) or _tells(node)):
            return
        if isinstance(node, ast.If) and _tells(node.test):
            for place, inner in enumerate(node.orelse):
                self._visit(node, "orelse", place, inner, function)
            return
        if isinstance(node, ast.expr) and _tells(node):
            return
        self.found += [(parent, field, at, node, change, function) for change in _changes(node)]
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
                continue
            if isinstance(value, list):
                for place, inner in enumerate(value):
                    if isinstance(inner, ast.AST):
                        self._visit(node, name, place, inner, function)
            elif isinstance(value, ast.AST):
                self._visit(node, name, None, value, function)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


def _put(parent: ast.AST, field: str, at: int | None, node: ast.AST) -> None:
    if at is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[at] = node


def mutants_of(module: str) -> list[CodeMutant]:
    """Every mutant of the functions of a module, in the order of its lines."""
    file = importlib.import_module(module).__file__
    assert file is not None
    with open(file, encoding="utf-8") as opened:
        tree = ast.parse(opened.read())
    finder = _Finder(tree)
    finder.look()
    found: list[CodeMutant] = []
    counts: dict[tuple[str, str], int] = {}
    for parent, field, at, node, change, function in finder.found:
        before, after = (ast.unparse(one).splitlines()[0] for one in (node, change))
        text = f"{before} -> {after}"
        number = counts[function, text] = counts.get((function, text), -1) + 1
        code = partial(_compiled, tree, file, function, (parent, field, at), node, change)
        found.append(CodeMutant(module, function, text, number, node.lineno, code))  # type: ignore[attr-defined]
    return found


def _compiled(
    tree: ast.Module, file: str, function: str, place: tuple[ast.AST, str, int | None], node: ast.AST, change: ast.AST
) -> types.CodeType:
    """The code of a function with `change` in place of `node`."""
    ast.copy_location(change, node)
    _put(*place, change)
    try:
        compiled = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
    finally:
        _put(*place, node)
    line = node.lineno  # type: ignore[attr-defined]
    # Of the same name are overloads, which are never run, and the setter of a property.
    named = [one for one in _codes(compiled) if one.co_qualname == function and one.co_firstlineno <= line]
    return max(named, key=lambda code: code.co_firstlineno)


#: Where a function is written: file, qualified name, first line.
Place = tuple[str, str, int]


def place(code: types.CodeType) -> Place:
    """Where the code is written; a mutant's code has the place of what it stands for."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


@cache
def functions_by_place() -> dict[Place, list[types.FunctionType]]:
    """Every function that lives now, by the place where it is written."""
    found: dict[Place, list[types.FunctionType]] = {}
    gc.unfreeze()  # what is frozen is not among the objects
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType):
            found.setdefault(place(one.__code__), []).append(one)
    return found


@contextmanager
def applied_code(mutant: CodeMutant) -> Iterator[None]:
    """Inside the block the mutant's function has the mutant's code.

    Raises:
        LookupError: no function has it, or the change takes a variable of an outer function away.
    """
    functions = functions_by_place().get(place(mutant.code), [])
    if not functions:
        raise LookupError(f"no function is {mutant.function} of {mutant.module}")
    before = [(one, one.__code__) for one in functions]
    if any(one.__code__.co_freevars != mutant.code.co_freevars for one in functions):
        raise LookupError(f"{mutant.name}: other variables of outer functions")
    # A generator stays one: Trio and the callers look at the flags.
    kept = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    assert all(one.__code__.co_flags & kept == mutant.code.co_flags & kept for one in functions)
    for one in functions:
        one.__code__ = mutant.code
    try:
        yield
    finally:
        for one, code in before:
            one.__code__ = code

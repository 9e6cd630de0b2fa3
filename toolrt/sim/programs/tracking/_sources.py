"""From a source to the code of living functions.

Rules.  A module is not executed again: its source is rewritten and compiled, and each function that is there gets the
code that stands where its own stood, by name, line and place.  It keeps its identity, closure and defaults.  A function
for which there is no such code stays as it is, and is foreign: what calls it may do anything.  Where pytest has
rewritten the assertions of a module, it does so first here, too.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import sys
import warnings
from types import CodeType, FunctionType
from typing import Any

from toolrt.sim._parsing import parsed
from toolrt.sim.programs.tracking import _touch
from toolrt.sim.programs.tracking._kinds import is_tracked, note_tracked
from toolrt.sim.programs.tracking._rewrite import fill, rewritten

_Key = tuple[str, int, Any]

# By file and source: the new codes, by what they stand for.
_known: dict[tuple[Any, ...], dict[_Key, list[CodeType]]] = {}
# The other way: what the code was before.
_before: dict[int, CodeType] = {}
#: What changes the tree of a file before it is compiled (`toolrt.sim.programs.given`); None: nothing does.
woven: Any = None

# By file the expressions that stand in each line of what was rewritten last, each once.
_expressions: dict[str, dict[int, list[str]]] = {}


def source_of(file: str, namespace: dict[str, Any] | None = None) -> str:
    """Give the source of a file, or of a notebook's cell; "" when there is none."""
    return "".join(linecache.getlines(file, namespace))


def module_of(namespace: dict[str, Any]) -> str:
    """Give the name of the module whose globals these are; "builtins", as for its classes, when it says none."""
    name = namespace.get("__name__")
    return name if isinstance(name, str) else "builtins"


def new_code(function: FunctionType) -> CodeType | None:
    """Give the code that reports, for `function` as it is now; None when there is none."""
    code = function.__code__
    if is_tracked(code):
        return code
    candidates = _codes_of(function).get(_key(code), ())
    fitting = [new for new in candidates if new.co_freevars == code.co_freevars]
    return fitting[0] if len(fitting) == 1 else None


def is_stale(function: FunctionType) -> bool:
    """Say whether the file of its module has no such code any more: it was edited since it was imported."""
    code = function.__code__
    is_of_module = code.co_filename == function.__globals__.get("__file__")
    return is_of_module and bool(source_of(code.co_filename)) and _key(code) not in _codes_of(function)


def expressions_of(file: str, line: int) -> list[str]:
    """Give the attributes, items and variables that stand in a line of what was rewritten."""
    return _expressions.get(file, {}).get(line, [])


def _key(code: CodeType) -> _Key:
    is_lambda = code.co_name == "<lambda>"
    return code.co_qualname, code.co_firstlineno, _end_of(code) if is_lambda else None


def _end_of(code: CodeType) -> Any:
    """Give the line and column where a lambda ends, which tell two of one line from each other."""
    return max((end or 0, column or 0) for _, end, _, column in code.co_positions())


def _codes_of(function: FunctionType, rewrites: bool = True) -> dict[_Key, list[CodeType]]:
    file, namespace = function.__code__.co_filename, function.__globals__
    source = source_of(file, namespace)
    by_pytest = "@pytest_ar" in namespace
    key = (file, source, by_pytest, rewrites, woven.key if woven is not None and file in woven.files else ())
    found = _known.get(key)
    if found is None:
        found = _known[key] = {}
        tree = _tree_of(source, file, by_pytest) if source else None
        if tree is not None:
            _compile(tree, file, module_of(namespace), function, found, rewrites)
    return found


def woven_code(function: FunctionType) -> CodeType | None:
    """Give the code of `function` as it is now with what `woven` puts into it; None where there is none."""
    candidates = _codes_of(function, rewrites=False).get(_key(function.__code__), ())
    fitting = [new for new in candidates if new.co_freevars == function.__code__.co_freevars]
    return fitting[0] if len(fitting) == 1 else None


def namespace_of(program: Any) -> dict[str, Any]:
    """Give the globals of a program whose module no name leads to, such as a page's; else nothing."""
    while isinstance(program, functools.partial):
        program = program.func
    program = inspect.unwrap(program)
    space = getattr(getattr(program, "__func__", program), "__globals__", None)
    if not isinstance(space, dict):
        return {}
    known = sys.modules.get(module_of(space))
    return {} if known is not None and vars(known) is space else space


def _tree_of(source: str, file: str, by_pytest: bool) -> ast.Module | None:
    try:
        tree = parsed(source, file)
    except SyntaxError:
        return None
    _note_expressions(tree, file)
    if woven is not None and file in woven.files:
        woven.change(tree, file)
    if by_pytest:
        rewrite: Any = sys.modules["_pytest.assertion.rewrite"]
        rewrite.rewrite_asserts(tree, source.encode(), file)
    return tree


def _compile(
    tree: ast.Module,
    file: str,
    module: str,
    function: FunctionType,
    into: dict[_Key, list[CodeType]],
    rewrites: bool,
) -> None:
    if rewrites:
        _touch.declared.setdefault(module, set()).update(rewritten(tree, module))
    # A notebook's cell may await outside of any function.
    flags = function.__code__.co_flags & _FUTURES | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        # A placeholder is a text that is called.
        warnings.simplefilter("ignore")
        code = compile(tree, file, "exec", flags=flags, dont_inherit=True)
    if rewrites:
        code = fill(code)
        note_tracked(code)
    todo = [code]
    while todo:
        outer = todo.pop()
        for inner in outer.co_consts:
            if isinstance(inner, CodeType):
                into.setdefault(_key(inner), []).append(inner)
                todo.append(inner)


# The flags of "from __future__ import ...".
_FUTURES = 0x1FE0000


def _note_expressions(tree: ast.AST, file: str) -> None:
    lines: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript):
            for line in {node.lineno, node.end_lineno or node.lineno}:
                found, text = lines.setdefault(line, []), ast.unparse(node)
                if text not in found:
                    found.append(text)
    # A file is read again for another world, or when it was edited.
    _expressions[file] = lines

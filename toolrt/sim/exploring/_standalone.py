"""The source of a program with all that it names of its own module, so that it can stand in a file by itself.

Limits.  Names are looked for in the source, so what ``globals()`` or ``exec`` reach is not found.  Of toolrt, `Cell`
and `watch` alone have a stand-in.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from toolrt.errors import NotReproducible
from toolrt.sim._parsing import parsed

_CELL = """
class {name}:
    def __init__(self, value=None, name=None):
        self.value = value

    def get(self):
        return self.value

    def set(self, value):
        self.value = value
"""

#: What stands for names of toolrt in the file.
_STAND_INS = {"Cell": _CELL, "watch": "def {name}(thing):\n    return thing\n"}

#: The instructions that look for a name in a module.
_LOADS_OUTSIDE = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")

#: What each file imports.
HEADER = (
    "from __future__ import annotations",
    "",
    "import random",
    "import sys",
    "",
    "import trio",
    "import trio.testing",
)


def standalone(program: Callable[..., Any]) -> tuple[str, str]:
    """Give the source of `program` and of what it needs, each before what needs it, and the call of it.

    Raises:
        NotReproducible: something of it has no source, or is toolrt's.
    """
    arguments: list[str] = []
    while isinstance(program, functools.partial) or hasattr(program, "__wrapped__"):
        if isinstance(program, functools.partial):
            given = [("", value) for value in program.args] + list(program.keywords.items())
            arguments[:0] = [f"{name}{'=' * bool(name)}{_literal_of(name, value)}" for name, value in given]
            program = program.func
        else:
            program = program.__wrapped__
    if not isinstance(program, FunctionType | MethodType) or program.__name__ == "<lambda>":
        raise NotReproducible(f"the program is no function with a name, but {program!r:.80}")
    file = _File()
    called = program.__name__
    if isinstance(program, MethodType):
        called = f"{file.add_new(program.__self__)}.{called}"
    else:
        file.add_function(program)
    source = "\n\n\n".join(text.strip("\n") for text in file.parts) + "\n"
    return source, f"{called}({', '.join(arguments)})"


def _literal_of(name: str, value: object) -> str:
    if not _is_literal(value):
        raise NotReproducible(f"its argument {name}{' ' * bool(name)}is {value!r:.60}, and has no literal")
    return repr(value)


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except Exception:
        return False


class _File:
    """The parts of the file, as they are found."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        #: What each name of the file stands for.
        self._bound: dict[str, object] = {}

    def add_function(self, function: FunctionType) -> None:
        """Add a function, and before it what it names."""
        if not self._is_new(function.__name__, function):
            return
        source, node = _source_of(function)
        kept = inspect.getclosurevars(function).nonlocals
        free = set(function.__code__.co_freevars)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Nonlocal) and free.intersection(inner.names):
                raise NotReproducible(f"{function.__name__} changes a variable of the function around it")
        for name in _names_in(node):
            if name in free:
                self._add_value(name, kept.get(name), "of the function around the program")
            else:
                self._add_global(name, function.__globals__)
        self.parts.append(source)

    def add_new(self, thing: object) -> str:
        """Add the class of an object that has nothing of its own, and give the call that makes one."""
        if getattr(thing, "__dict__", True):
            raise NotReproducible(f"its method is that of {thing!r:.60}, which has attributes")
        self._add_value(type(thing).__name__, type(thing), "of the program's module")
        return f"{type(thing).__name__}()"

    def _is_new(self, name: str, value: object) -> bool:
        if name in self._bound and self._bound[name] is not value:
            raise NotReproducible(f"{name} is one thing in one module and another one in another")
        is_new = name not in self._bound
        self._bound[name] = value
        return is_new

    def _add_value(self, name: str, value: Any, what: str) -> None:
        """Add a variable by its value, because no statement of a module is known that binds it."""
        if isinstance(value, FunctionType) and value.__name__ == name and not _is_importable(name, value):
            self.add_function(value)
            return
        if not self._is_new(name, value):
            return
        if isinstance(value, ModuleType):
            self._add_line(f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}"))
        elif _is_importable(name, value):
            self._add_line(f"from {value.__module__} import {name}")
        elif isinstance(value, type):
            source, node = _source_of(value)
            for needed in _names_in(node):
                if needed != name:
                    self._add_global(needed, vars(sys.modules.get(value.__module__, builtins)))
            self.parts.append(source)
        else:
            if not _is_literal(value):
                raise NotReproducible(f"{name}, {what}, is {value!r:.60}, and has no source")
            self.parts.append(f"{name} = {value!r}")

    def _add_line(self, line: str) -> None:
        if line not in HEADER:
            self.parts.append(line)

    def _add_global(self, name: str, module: Mapping[str, Any]) -> None:
        if name not in module or name.startswith("__"):
            return  # a builtin, or what each module has
        value = module[name]
        if module is vars(builtins):
            return
        own = getattr(value, "__name__", None) == name
        if _is_of_toolrt(value):
            if isinstance(value, FunctionType) and own and name not in _STAND_INS:
                self.add_function(value)
            elif self._is_new(name, value):
                self._stand_in(name, value)
            return
        statement = _statements_of(module.get("__name__", "")).get(name)
        if statement is None:
            self._add_value(name, value, "of the program's module")
            return
        if not self._is_new(name, value):
            return
        text, node = statement
        for needed in _names_in(node):
            if needed != name:
                self._add_global(needed, module)
        self._add_line(text)

    def _stand_in(self, name: str, value: Any) -> None:
        called = getattr(value, "__name__", "")
        if isinstance(value, ModuleType) and called == "toolrt.sim":
            texts = (text.format(name=each).strip("\n") for each, text in _STAND_INS.items())
            body = textwrap.indent("\n".join(texts), "    ").replace(
                "    def watch", "    @staticmethod\n    def watch"
            )
            self.parts.append(f"class {name}:\n{body}")
        elif called in _STAND_INS:
            self.parts.append(_STAND_INS[called].format(name=name))
        elif isinstance(value, type) and called == name:
            statement = _statements_of(value.__module__).get(name)
            if statement is None:
                raise NotReproducible(f"the program needs {name}, which is toolrt's")
            text, node = statement
            for needed in _names_in(node):
                if needed != name:
                    self._add_global(needed, vars(sys.modules[value.__module__]))
            self.parts.append(text)
        else:
            raise NotReproducible(f"the program needs {name}, which is toolrt's")


def _is_of_toolrt(value: object) -> bool:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == "toolrt"


def _is_importable(name: str, value: Any) -> bool:
    """Whether another program gets it from the module that it says it is of, which is an installed one."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or _is_of_toolrt(value) or getattr(module, name, None) is not value:
        return False
    file = getattr(module, "__file__", None) or sysconfig.get_path("stdlib")
    return file.startswith(sysconfig.get_path("stdlib")) or "site-packages" in Path(file).parts


def _source_of(thing: FunctionType | type) -> tuple[str, ast.stmt]:
    """The source of a function without its decorators, or of a class, and its tree."""
    try:
        source = textwrap.dedent(inspect.getsource(thing))
        node = parsed(source).body[0]
    except (OSError, SyntaxError, TypeError) as error:
        raise NotReproducible(f"the source of {thing.__name__} is not at hand ({error})") from None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return source, node
    node.decorator_list.clear()
    return "\n".join(source.splitlines()[node.lineno - 1 :]), node


def _statements_of(module: str) -> Mapping[str, tuple[str, ast.stmt]]:
    """The statements of a module that bind a name, by the name."""
    try:
        source = inspect.getsource(sys.modules[module])
    except (KeyError, OSError, TypeError):
        return {}
    found: dict[str, tuple[str, ast.stmt]] = {}
    for node in parsed(source).body:
        text = ast.get_source_segment(source, node) or ""
        decorators = getattr(node, "decorator_list", [])
        if decorators:
            first = min(each.lineno for each in decorators) - 1
            text = "\n".join(source.splitlines()[first : node.end_lineno])
        for name, own in _bound_by(node, text):
            found[name] = own, node
    return found


def _bound_by(node: ast.stmt, text: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, text
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname or alias.name.partition(".")[0]), f"import {ast.unparse(alias)}"
    elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
        for alias in node.names:
            yield alias.asname or alias.name, f"from {node.module} import {ast.unparse(alias)}"
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name):
                    yield each.id, text


def _names_in(node: ast.stmt) -> list[str]:
    """The names that a statement looks up outside itself when it runs, in order; annotations are texts in the file."""
    found: dict[str, None] = {}
    left = [compile(ast.Module([node], []), "<file>", "exec", annotations.compiler_flag, dont_inherit=True)]
    while left:
        code = left.pop(0)
        loads = [one for one in dis.get_instructions(code) if one.opname in _LOADS_OUTSIDE]
        found |= dict.fromkeys(one.argval for one in loads)
        left += [each for each in code.co_consts if isinstance(each, CodeType)]
    return list(found)

"""Every public name has a docstring in the house's form.

Rules.
    1. A summary that ends with a full stop; no section but those of the house.
    2. Every parameter is told of: in ``Args:``, which names no other, or by its name in the prose.  What a class is
       made with may have a comment (``#:``) instead; of one that only toolrt makes, fields are enough, and of an error
       what it carries.  `ctx` and what places a call (batch_id, call_index, call_id) mean the same everywhere.
    3. What is given is told: by ``Returns:``, or by a summary that begins with it ("The ...", "Give ...", "Whether
       ..."), as a property's does.
    4. What the function's own code raises is told, and what ``Raises:`` names exists.
    5. Whatever is async, or an async context manager, says when it is a checkpoint.
    6. What the laws order says in which order: the list below.
    7. A method that does what a protocol asks for need not repeat what the protocol tells, and a docstring that says
       "see `x`" not what stands there.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import enum
import functools
import inspect
import re
import runpy
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt.errors

_SITE = Path(__file__).parents[2] / "docs" / "_site"
_names = runpy.run_path(str(_SITE / "names.py"))
_form = runpy.run_path(str(_SITE / "docstrings.py"))
NAMES: dict[str, Any] = _names["names"]()

#: What the laws promise an order for, and so has to say which.
ORDERED = (
    "toolrt.Batch.__anext__",
    "toolrt.Batch.submit",
    "toolrt.ClaimTable.take",
    "toolrt.Runtime.open_batch",
    "toolrt.Runtime.run",
    "toolrt.ToolContext.emit",
    "toolrt.ToolContext.open_batch",
    "toolrt.ToolContext.progress",
    "toolrt.ToolContext.run",
    "toolrt.interop.render_results",
    "toolrt.interop.render_tools",
    "toolrt.order.merged",
    "toolrt.partition",
    "toolrt.run_sync",
)

#: Classes that others of ours are held to, besides the protocols.
BASES = ("toolrt.sim.Policy", "toolrt.sim.Strategy", "toolrt.sim.Search", "toolrt.ToolContext", "toolrt.workspace.Disk")

_VALUE = re.compile(
    r"^(A|All|An|As|At|Both|By|Each|Every|Everything|From|Give|How|If|In|Its|Make|Nothing|No|None|Of|On|One|Only|Read|Return|"
    r"Batches|Calls|Laws|Lists|Mutants|Outcomes|Ranks|Say|Search|Seconds|So|Show|These|Up|Why|Wall|Pick|Text|That|The|This|Those|True|What|When|Where|Whether|Which|Who|Whose|With|Draw|Take|Find|Look|Ask|Run|"
    r"Start|Open|Add|Count|Write|Render|Parse)\b"
)
_WRONG = re.compile(
    r"^(Arguments|Parameters|Params|Return|Raise|Throws|Notes?|Examples?|Usage|Warning)::?$", re.MULTILINE
)


PROPERTIES: set[str] = set()


_NOTHING: set[str] = set()
_EVERYWHERE = {"ctx", "batch_id", "call_index", "call_id"}
#: Classes that a user gets and does not make.
GIVEN = (
    "toolrt.Batch",
    "toolrt.Tool",
    "toolrt.ToolContext",
    "toolrt.TrackedCall",
    "toolrt.plugins.mcp.Connecting",
    "toolrt.plugins.mcp.McpTools",
    "toolrt.order.Ticket",
    "toolrt.processes.Conversation",
    "toolrt.processes.Supervised",
    "toolrt.sim.Execution",
    "toolrt.sim.Failure",
    "toolrt.view.Page",
    "toolrt.workspace.Files",
    "toolrt.workspace.History",
)
#: A docstring that says so leaves to another what is not its own.
_ELSEWHERE = re.compile(r"\b[Ss]ee `[\w.]+`|\b(?:are|is) as (?:those|that) of `[\w.]+`")


def _functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method, as it is defined."""
    for path, one in NAMES.items():
        if inspect.isroutine(one.value):
            yield path, one.value
        elif inspect.isclass(one.value):
            for name, member in _names["members_of"](one.value):
                function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                if isinstance(member, property):
                    PROPERTIES.add(f"{path}.{name}")
                if inspect.isroutine(function):
                    yield f"{path}.{name}", function


FUNCTIONS = dict(_functions())
CLASSES = {path: one.value for path, one in NAMES.items() if inspect.isclass(one.value)}
VALUES = {path: one for path, one in NAMES.items() if path not in CLASSES and not inspect.isroutine(one.value)}


def _sections(doc: str) -> tuple[str, dict[str, list[str]]]:
    prose, sections = _form["sections_of"](doc.splitlines())
    return "\n".join(prose), {title.rstrip(":"): body for title, body in sections}


def _named(doc: str) -> set[str]:
    """The words of a docstring, a plural also as one of them."""
    words = set(re.findall(r"\w+", doc)) | set(re.findall(r"\w+", doc.lower()))
    return words | {word.removesuffix("s") for word in words}


@functools.cache
def _protocols() -> dict[str, tuple[str, ...]]:
    """The docstrings that the methods of public protocols and base classes have, by the method's name."""
    found: dict[str, list[str]] = {}
    for path, one in NAMES.items():
        if inspect.isclass(one.value) and (getattr(one.value, "_is_protocol", False) or path in BASES):
            for name, member in _names["members_of"](one.value):
                found.setdefault(name, []).append(inspect.getdoc(member) or "")
    return {name: tuple(docs) for name, docs in found.items()}


def _complaints_of_form(doc: str) -> Iterator[str]:
    if not doc:
        yield "has no docstring"
        return
    summary = doc.split("\n\n")[0].strip()
    if not re.search(r"[.:]$", re.split(r"\s{2}(?=Checkpoint:|Ordering:)|\n(?=\w+::?$)", summary)[0].strip()):
        yield f"its summary does not end with a full stop: {summary!r}"
    for found in _WRONG.findall(doc):
        if found not in ("Example", "Examples"):
            yield f"{found}: is no section of the house"


def _complaints_of_parameters(
    names: list[str], doc: str, told_elsewhere: set[str] = _NOTHING, *, any_name: bool = False
) -> Iterator[str]:
    _, sections = _sections(doc)
    entries = {part for name, _ in _form["entries_of"](sections.get("Args", [])) for part in name.split(", ")}
    entries = {entry.lstrip("*") for entry in entries}
    if (extra := entries - set(names)) and not any_name:
        yield f"Args names what is no parameter: {sorted(extra)}"
    told = entries | told_elsewhere | _named(doc) | _EVERYWHERE
    if missing := [name for name in names if name not in told]:
        yield f"does not tell of {missing}"


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls") and name[0] != "_"]


def _raised(function: Callable[..., Any]) -> set[str]:
    """The public errors that the function's own code raises by name."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # attrs wrote it
        return set()
    found = set()
    inner = {id(below) for node in ast.walk(tree.body[0]) for below in _within_functions(node, tree.body[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None and id(node) not in inner:
            made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
            if name in toolrt.errors.__all__ and name not in ("InternalError",):
                found.add(name)
    return found


def _within_functions(node: ast.AST, top: ast.AST) -> Iterator[ast.AST]:
    if node is not top and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from ast.walk(node)


def _gives(function: Callable[..., Any]) -> bool:
    """Whether it gives something that its name or the block after ``with`` does not tell."""
    given = str(getattr(function, "__annotations__", {}).get("return"))
    return given not in ("None", "Self", "NoReturn", "Never") and not ("ContextManager" in given or _is_block(function))


def _is_block(function: Callable[..., Any]) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename.endswith("contextlib.py")


def _told(prose: str) -> bool:
    return bool(
        _VALUE.match(prose)
        or re.search(r"[;,] and (give|return)s?\b|[;:] (True|False|None)\b|\binside the block\b", prose)
    )


def _waits(function: Callable[..., Any]) -> bool:
    plain = inspect.unwrap(function)
    if inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain):
        return True
    given = str(getattr(function, "__annotations__", {}).get("return", ""))
    return given.startswith(("AbstractAsyncContextManager", "Awaitable", "Coroutine"))


def _exists(name: str) -> bool:
    last = name.rpartition(".")[2]
    known = any(hasattr(module, last) for module in (builtins, trio, asyncio))
    return known or last in {path.rpartition(".")[2] for path in NAMES}


def complaints_of_function(path: str, function: Callable[..., Any]) -> Iterator[str]:
    """What is wrong with a function's docstring."""
    doc = inspect.getdoc(function) or ""
    yield from _complaints_of_form(doc)
    if not doc:
        return
    prose, sections = _sections(doc)
    asked = "\n".join(_protocols().get(path.rpartition(".")[2], ())) if path.rpartition(".")[0] in NAMES else ""
    if _ELSEWHERE.search(doc):
        asked += "Checkpoint: there.  " + " ".join(_parameters(function))
    kinds = {one.kind for one in inspect.signature(function).parameters.values()}
    options = inspect.Parameter.VAR_KEYWORD in kinds and "Args" in sections
    told = _named(asked) | ({"options"} if options else set())
    yield from _complaints_of_parameters(_parameters(function), doc, told, any_name=options)
    if (
        not asked
        and path not in PROPERTIES
        and _gives(function)
        and not ({"Returns", "Yields"} & set(sections))
        and not _told(prose)
    ):
        yield f"does not tell what it gives: {prose.splitlines()[0]!r}"
    if unsaid := {name for name in _raised(function) if name not in doc}:
        yield f"does not tell that it raises {sorted(unsaid)}"
    for name, _ in _form["entries_of"](sections.get("Raises", [])):
        if unknown := [one for one in name.split(", ") if not one or not _exists(one)]:
            yield f"Raises names {unknown}"
    if _waits(function) and "Checkpoint" not in sections and "Checkpoint:" not in asked:
        yield "is async and has no Checkpoint:"
    if path in ORDERED and "Ordering" not in sections:
        yield "has no Ordering:"


def complaints_of_class(owner: type) -> Iterator[str]:
    """What is wrong with a class's docstring, and with what tells of its fields."""
    doc = vars(owner).get("__doc__") or ""
    doc = inspect.cleandoc(doc)
    yield from _complaints_of_form(doc)
    if issubclass(owner, enum.Enum):
        comments = _names["comments_of"](owner.__module__)
        missing = [member.name for member in owner if (owner.__name__, member.name) not in comments]
        if missing and not set(missing) <= _named(doc):
            yield f"does not tell of {missing}"
        return
    _, sections = _sections(doc)
    told = {key[1] for base in owner.__mro__ for key in _comments(base) if key[0] == base.__name__}
    told |= {part for name, _ in _form["entries_of"](sections.get("Attributes", [])) for part in name.split(", ")}
    told |= _named(inspect.getdoc(owner.__init__) or "") if "__init__" in vars(owner) else set()
    told |= _named(doc)
    if getattr(owner, "_is_protocol", False):
        return
    fields = [field.name for field in attrs.fields(owner) if field.name[0] != "_"] if attrs.has(owner) else []
    try:
        made_with = [] if owner in _given() else _parameters(owner)
    except ValueError:
        made_with = []
    if issubclass(owner, BaseException):
        made_with = _carried(owner)
    made_with = [name for name in made_with if name not in ("args", "kwargs", "kwds")]
    yield from _complaints_of_parameters(list(dict.fromkeys([*made_with, *fields])), doc, told)
    raised = _raised(owner.__init__) if "__init__" in vars(owner) and not attrs.has(owner) else set()
    if unsaid := {name for name in raised if name not in doc}:
        yield f"does not tell that making one raises {sorted(unsaid)}"


@functools.cache
def _given() -> frozenset[type]:
    return frozenset(NAMES[path].value for path in GIVEN)


def _carried(error: type) -> list[str]:
    """The public attributes that an error's own ``__init__`` sets."""
    if "__init__" not in vars(error):
        return []
    tree = ast.parse(textwrap.dedent(inspect.getsource(error.__init__)))
    stored = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return [node.attr for node in stored if not node.attr.startswith("_")]


@functools.cache
def _comments(owner: type) -> dict[tuple[str, str], str]:
    return _names["comments_of"](owner.__module__) if owner.__module__.startswith("toolrt") else {}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_function_has_docstring_in_the_form_of_the_house(path: str) -> None:
    """What it gives, takes, raises and waits for."""
    assert list(complaints_of_function(path, FUNCTIONS[path])) == []


@pytest.mark.parametrize("path", CLASSES)
def test_class_has_docstring_in_the_form_of_the_house(path: str) -> None:
    """What it is, and each of its fields."""
    assert list(complaints_of_class(CLASSES[path])) == []


@pytest.mark.parametrize("path", VALUES)
def test_value_has_a_comment(path: str) -> None:
    """A value's meaning stands above it, after ``#:``."""
    assert _names["comment_of"](VALUES[path].value, VALUES[path].name)


def test_what_is_ordered_is_there() -> None:
    """The list of what promises an order names nothing that has gone."""
    assert set(ORDERED) <= set(FUNCTIONS)

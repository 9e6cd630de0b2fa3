"""Puts constraints into the code of living functions for as long as a program is explored.

Rules.
    1. The source of a function's file is parsed, the lines of a constraint are put into a block of their own, and the
       function gets the code that stands where its own stood: lines, names and closure stay.
    2. Atomic and shielded lines are widened to whole statements of one block.  Where atomic lines end inside of a
       statement, and what follows there waits, a task leaves them behind the last line.  Code that awaits nothing
       is one step by itself, so nothing is put round lines of a plain function.
    3. What a constraint waits at is made anew in each execution, by the program's first task.
    4. A lock order is the one in which an execution's tasks first name the locks.  To name a new one is an access that
       is reported, so strategies that swap steps keep it apart.
    5. Where plain objects are tracked as well, the source is woven first and rewritten then.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any, Self

import trio

from toolrt.errors import DefinitionRefused
from toolrt.probe import access
from toolrt.sim._parsing import parsed
from toolrt.sim.programs.given._constraints import Again, Atomic, Before, CodeLine, Constraint, LockOrder, Shielded
from toolrt.sim.programs.tracking import _sources
from toolrt.sim.programs.tracking._births import reach
from toolrt.sim.programs.tracking._swapped import SwappedCode

_Program = Callable[[], Awaitable[Any]]

#: Functions are looked for among so many objects.
_MOST = 20_000

#: What woven code calls, by the number of a constraint, is a builtin of this name while it is in place.
_NAME = "__toolrt_given_{}__"


def world_of(program: Any, given: Collection[Constraint] | None) -> GivenWorld | None:
    """Give the world of a caller's ``given``; None: there is no constraint.

    Args:
        program: what is explored.
        given: the constraints.

    Raises:
        DefinitionRefused: one is none, or its lines are in no function whose source is at hand.
    """
    if given is None or (isinstance(given, list | tuple) and not given):
        return None
    if not isinstance(given, list | tuple) or not all(isinstance(one, Constraint) for one in given):
        raise DefinitionRefused(
            "given", "a list of constraints, such as [sim.atomic(function, first_line, last_line)]", given
        )
    return GivenWorld(program, tuple(given))


class GivenWorld(SwappedCode):
    """The constraints of one exploration, and the functions that they are woven into.

    Args:
        program: what is explored.
        given: the constraints.

    Raises:
        DefinitionRefused: lines are in no function whose source is at hand.
    """

    def __init__(self, program: Any, given: tuple[Constraint, ...]) -> None:
        self._program = program
        #: The constraints.
        self.given = given
        self.weave = Weave(given)
        super().__init__()
        self._before: list[tuple[FunctionType, CodeType]] = []
        for file in self.weave.files:
            self.weave.check(file)
        with self.active():
            if not self._before:
                places = ", ".join(map(str, given))
                raise DefinitionRefused("given", f"lines of functions that the program leads to ({places})", given)

    def __str__(self) -> str:
        return "; ".join(map(str, self.given))

    def _begin(self) -> None:
        self.weave.outer, _sources.woven = _sources.woven, self.weave
        for number, one in enumerate(self.given):
            setattr(builtins, _NAME.format(number), _hook(self.weave, one))
        for function in self._functions():
            code = _sources.woven_code(function)
            if code is not None and code is not function.__code__:
                self._before.append((function, function.__code__))
                function.__code__ = code

    def _functions(self) -> list[FunctionType]:
        files = set(self.weave.files)
        roots: list[tuple[Any, Any]] = [(("program",), self._program)]
        names = set()
        roots += [(("program", name), one) for name, one in _sources.namespace_of(self._program).items()]
        for name, module in sorted(sys.modules.items()):
            if isinstance(module, ModuleType) and getattr(module, "__file__", None) in files:
                roots.append(((name,), module))
                names.add(name)
        found = reach(roots, names.__contains__, _MOST)
        return [function for function in found.functions if function.__code__.co_filename in files]

    def _end(self) -> None:
        for function, code in self._before:
            function.__code__ = code
        self._before.clear()
        for number in range(len(self.given)):
            delattr(builtins, _NAME.format(number))
        _sources.woven, self.weave.outer = self.weave.outer, None

    def bind(self, program: _Program) -> _Program:
        """Give `program` with the constraints in place in each execution."""

        async def in_this_world() -> Any:
            with self.active():
                self.weave.begin()
                return await program()

        return functools.update_wrapper(in_this_world, program) if isinstance(program, FunctionType) else in_this_world


class Weave:
    """Changes the tree of a file so that the constraints stand in it.

    Args:
        given: the constraints.
    """

    def __init__(self, given: tuple[Constraint, ...]) -> None:
        self._given = given
        #: The files that it changes.
        self.files = tuple(dict.fromkeys(place.file for one in given for place in _places(one)))
        #: What stood in this one's place.
        self.outer: Any = None
        self.lock = trio.Lock()
        self.passed: dict[Constraint, trio.Event] = {}
        #: The locks of a lock order, each with its place in it.
        self.numbers: dict[Any, int] = {}

    @property
    def key(self) -> tuple[Any, ...]:
        """Tells woven code from other code of the same source."""
        return self._given

    def begin(self) -> None:
        """Begin with an execution."""
        self.lock = trio.Lock()
        self.passed = {one: trio.Event() for one in self._given if isinstance(one, Before)}
        self.numbers = {}

    def check(self, file: str) -> None:
        """Refuse lines of `file` that no function has."""
        source = _sources.source_of(file)
        if not source:
            raise DefinitionRefused("given", f"lines of a file whose source is at hand, not of {file}", self._given)
        self.change(parsed(source, file), file)

    def change(self, tree: ast.Module, file: str) -> None:
        """Change the `tree` of `file`.

        Raises:
            DefinitionRefused: no function has the lines of a constraint.
        """
        for number, one in enumerate(self._given):
            name = _NAME.format(number)
            if isinstance(one, Before):
                if one.first.file == file:
                    _put_beside(tree, one.first, f"{name}.set()", behind=not one.reached)
                if one.second.file == file:
                    _put_before(tree, one.second, f"await {name}.wait()")
            if isinstance(one, Again) and one.place.file == file:
                _put_again(tree, one.place)
            for first, last in _regions(one):
                if first.file == file and isinstance(one, LockOrder):
                    _put_in_order(tree, first, last, name)
                elif first.file == file:
                    _put_round(tree, one, first, last, name)
        ast.fix_missing_locations(tree)


def _regions(one: Constraint) -> tuple[tuple[CodeLine, CodeLine], ...]:
    if isinstance(one, Atomic | LockOrder):
        return one.regions
    return ((one.first, one.last),) if isinstance(one, Shielded) else ()


def _places(one: Constraint) -> list[CodeLine]:
    if isinstance(one, Before):
        return [one.first, one.second]
    if isinstance(one, Again):
        return [one.place]
    return [place for region in _regions(one) for place in region]


def _hook(weave: Weave, one: Constraint) -> Any:
    """Give what woven code calls."""
    if isinstance(one, Atomic):
        return _Region(weave)
    if isinstance(one, LockOrder):
        return lambda *locks: _SortedLocks(weave, locks)
    if isinstance(one, Shielded):
        return lambda: trio.CancelScope(shield=True)
    return _Passed(weave, one) if isinstance(one, Before) else None


class _Passed:
    """The event of a `Before`."""

    def __init__(self, weave: Weave, one: Before) -> None:
        self._weave, self._one = weave, one

    def set(self) -> None:
        """Say that the first place was passed."""
        self._weave.passed[self._one].set()

    async def wait(self) -> None:
        """Wait until it is.

        Checkpoint: always.
        """
        await self._weave.passed[self._one].wait()


class _Region:
    """Atomic lines: one task is in them."""

    def __init__(self, weave: Weave) -> None:
        self._weave = weave

    def __call__(self) -> _Entered:
        return _Entered(self._weave.lock)

    def leave(self) -> None:
        """Let others enter, if the running task is inside."""
        if _holds(self._weave.lock):
            self._weave.lock.release()


class _Entered:
    """A block of one task in atomic lines."""

    def __init__(self, lock: trio.Lock) -> None:
        self._lock = lock
        self._is_outermost = False

    async def __aenter__(self) -> None:
        if not _holds(self._lock):
            await self._lock.acquire()
            self._is_outermost = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_outermost and _holds(self._lock):
            self._lock.release()


def _holds(lock: trio.Lock) -> bool:
    return lock.statistics().owner is trio.lowlevel.current_task()


class _SortedLocks(AsyncExitStack):
    """One task and the locks of a lock order; without any, those that it has already."""

    def __init__(self, weave: Weave, locks: Collection[Any]) -> None:
        super().__init__()
        self._numbers, self._locks = weave.numbers, locks

    async def __aenter__(self) -> Self:
        new = [lock for lock in self._locks if lock not in self._numbers]
        if self._locks:
            access(("LockOrder",), write=bool(new))
        for lock in new:
            self._numbers[lock] = len(self._numbers)
        async with AsyncExitStack() as taken:  # a cancel gives back what was taken before it
            for lock in sorted(self._locks, key=self._numbers.__getitem__):
                await taken.enter_async_context(lock)
            self.push_async_exit(taken.pop_all())
        return self


# ---------------------------------------------------------------------- trees

_Block = list[ast.stmt]


def _function_at(tree: ast.Module, first: int, last: int) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Give the innermost function whose body has these lines."""
    found: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = node.body[0].lineno <= last and first <= (node.end_lineno or node.lineno)
            whole = node.body[0].lineno <= first and last <= (node.end_lineno or node.lineno)
            if inside and whole and (found is None or node.lineno >= found.lineno):
                found = node
    if found is None:
        raise DefinitionRefused("given", "lines inside of one function", f"lines {first} to {last}")
    return found


def _statements(tree: ast.Module, first: int, last: int) -> tuple[Any, _Block, int, int]:
    """Give the function, the innermost block, and which of its statements have these lines."""
    function = _function_at(tree, first, last)
    block: _Block = function.body
    while True:
        chosen = [
            index for index, one in enumerate(block) if one.lineno <= last and first <= (one.end_lineno or one.lineno)
        ]
        if not chosen:
            raise DefinitionRefused("given", "lines with a statement", f"lines {first} to {last}")
        inner = _blocks_of(block[chosen[0]]) if len(chosen) == 1 else []
        deeper = [one for one in inner if one[0].lineno <= first and last <= max(each.end_lineno or 0 for each in one)]
        if not deeper:
            return function, block, chosen[0], chosen[-1]
        block = deeper[0]


def _blocks_of(statement: ast.stmt) -> list[_Block]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    for other in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        found.append(other.body)
    return [block for block in found if isinstance(block, list) and block]


def _parsed(text: str, place: ast.stmt) -> ast.stmt:
    made: ast.stmt = ast.parse(f"async def f():\n {text}").body[0].body[0]  # type: ignore[attr-defined]
    for node in ast.walk(made):
        if isinstance(node, ast.stmt | ast.expr):
            node.lineno = node.end_lineno = place.lineno
            node.col_offset = node.end_col_offset = place.col_offset
    return made


def _put_round(tree: ast.Module, one: Constraint, begins: CodeLine, ends: CodeLine, name: str) -> None:
    function, block, first, last = _statements(tree, begins.number, ends.number)
    if not isinstance(function, ast.AsyncFunctionDef):
        return  # it awaits nothing, so it is one step, and no cancel comes in it
    header = f"async with {name}(): pass" if isinstance(one, Atomic) else f"with {name}(): pass"
    if isinstance(one, Atomic):
        _, inner, _, end = _statements(tree, ends.number, ends.number)
        if inner is not block and any(map(_waits, inner[end + 1 :])):
            inner.insert(end + 1, _parsed(f"{name}.leave()", inner[end]))
    around: Any = _parsed(header, block[first])
    around.body = block[first : last + 1]
    around.end_lineno = block[last].end_lineno
    block[first : last + 1] = [around]


def _put_in_order(tree: ast.Module, begins: CodeLine, ends: CodeLine, name: str) -> None:
    _, block, first, last = _statements(tree, begins.number, ends.number)
    nodes = (node for statement in block[first : last + 1] for node in _inside(statement))
    for outer in (node for node in nodes if isinstance(node, ast.AsyncWith)):
        locks = _locks_of(outer)
        if len(locks) > 1:
            made: Any = _parsed(f"{name}()", outer)
            every = ast.Call(made.value.func, [lock.context_expr for lock in locks], [])
            for lock in locks:  # which is held by then
                lock.context_expr = made.value
            outer.items.insert(0, ast.withitem(ast.copy_location(every, made.value)))
            return
    raise DefinitionRefused("given", "lines with an `async with` that takes two locks by name", f"{begins} to {ends}")


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Give a node and what it has inside, without the bodies of functions, from the outside in."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        for child in ast.iter_child_nodes(node):
            yield from _inside(child)


def _locks_of(outer: ast.AsyncWith) -> list[ast.withitem]:
    """Give what `outer` and the blocks in it enter under a name that is bound when `outer` begins."""
    bound = {node.id for node in ast.walk(outer) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    plain = ast.Name | ast.Attribute | ast.Subscript | ast.Constant | ast.BinOp | ast.operator | ast.expr_context
    return [
        item
        for block in _inside(outer)
        if isinstance(block, ast.AsyncWith)
        for item in block.items
        if item.optional_vars is None
        and all(isinstance(node, plain) for node in ast.walk(item.context_expr))
        and not any(isinstance(node, ast.Name) and node.id in bound for node in ast.walk(item.context_expr))
    ]


def _waits(statement: ast.AST) -> bool:
    return any(isinstance(one, ast.Await | ast.AsyncWith | ast.AsyncFor) for one in _inside(statement))


def is_left_before_a_wait(first: CodeLine, last: CodeLine) -> bool:
    """Say whether atomic lines end inside of a statement in which a task waits behind them."""
    tree = parsed(_sources.source_of(first.file) or "")
    _, block, *_ = _statements(tree, first.number, last.number)
    _, inner, _, end = _statements(tree, last.number, last.number)
    return inner is not block and any(map(_waits, inner[end + 1 :]))


def line_of_if(file: str, number: int) -> int | None:
    """Give the line of the innermost ``if`` whose body has line `number` of `file`; None: there is none."""
    tree = parsed(_sources.source_of(file) or "")
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and node.body[0].lineno <= number <= (node.body[-1].end_lineno or 0)
    ]
    return max(lines, default=None)


def _put_again(tree: ast.Module, place: CodeLine) -> None:
    _, block, first, _ = _statements(tree, place.number, place.number)
    looks: Any = block[first]
    if not isinstance(looks, ast.If) or not _waits(looks):
        raise DefinitionRefused("the place of sim.again", "the line of an `if` with a wait inside", place)
    loops = [one for one in _inside(looks) if isinstance(one, ast.For | ast.AsyncFor | ast.While)]
    own = {id(one) for loop in loops for one in ast.walk(loop)}
    if any(isinstance(one, ast.Break | ast.Continue) and id(one) not in own for one in _inside(looks)):
        raise DefinitionRefused("the place of sim.again", "an `if` without break and continue of a loop around", place)
    block[first] = ast.copy_location(ast.While(looks.test, looks.body, looks.orelse), looks)


def _put_beside(tree: ast.Module, place: CodeLine, text: str, behind: bool) -> None:
    _, block, first, last = _statements(tree, place.number, place.number)
    block.insert(last + 1 if behind else first, _parsed(text, block[last]))


def _put_before(tree: ast.Module, place: CodeLine, text: str) -> None:
    function, *_ = _statements(tree, place.number, place.number)
    if not isinstance(function, ast.AsyncFunctionDef):
        raise DefinitionRefused("the second place of sim.before", "a line of an async function, which can wait", place)
    _put_beside(tree, place, text, behind=False)

"""Proves that a step wrote nothing: looks at each instruction that it runs.

Rules.  A step is *quiet* when nothing that it ran can change what another step sees.  An instruction that stores
outside the local variables is a write.  So is a call of anything written in C that is not known to only look, a call
that cannot be seen, a move of an iterator or generator that is older than the step, and an operator that works in
place.  Trio's own checkpoints write nothing that a program sees; the rest of Trio is judged like any other code.  What
reports to the probe is passed over, but not what it calls: the answer is the same whether or not accesses are reported.

A place *comes back* when its code can return to it without a write that stands in the code itself.  Only there is it
worth looking at each instruction, which takes some ten times as long as the step.

Limits.  C code that looks is believed to change nothing.  A ``for`` loop, or `any`, over an iterator in C that was made
before the step moves it unseen.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import PurePath
from types import CodeType, FrameType, ModuleType
from typing import Any

import attrs
import outcome
import trio

from toolrt import probe
from toolrt.sim.engine._clock import VirtualClock
from toolrt.sim.engine._looks import LOOKING

_HERE = PurePath(__file__).parents[1]

# Their own instructions only say what is touched; what they call is looked at.
_PASSED_OVER = (str(_HERE / "_trio_internals"), str(_HERE / "engine"), probe.__file__)

#: Trio counts the checkpoints of a task here, notes that what the task was sent has been used, and does nothing else
#: that another task could see.
_CHECKPOINTS: frozenset[CodeType] = frozenset(
    function.__code__
    for function in (
        trio.lowlevel.checkpoint,
        trio.lowlevel.checkpoint_if_cancelled,
        trio.lowlevel.cancel_shielded_checkpoint,
        outcome.Value.unwrap,
        outcome.Outcome._set_unwrapped,
    )
)

_SUSPENDS = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_YIELD = dis.opmap["YIELD_VALUE"]

_WRITES = (
    "STORE_ATTR",
    "STORE_SUBSCR",
    "STORE_SLICE",
    "STORE_GLOBAL",
    "STORE_NAME",
    "STORE_DEREF",
    "DELETE_ATTR",
    "DELETE_SUBSCR",
    "DELETE_GLOBAL",
    "DELETE_NAME",
    "DELETE_DEREF",
    "IMPORT_",
)
# Where a frame stands that awaits or yields: at YIELD_VALUE, and since Python 3.13 at the instruction after it.
_AWAITS_AFTER = int(sys.version_info >= (3, 13))
_GOES_NOWHERE = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")

# Functions in C that only look.
_LOOKS: frozenset[Any] = frozenset(
    (len, isinstance, issubclass, callable, id, hash, getattr, hasattr, abs, any, all, sum, min, max, sorted, iter)
)
_LOOKING_METHODS: dict[type, frozenset[str]] = {
    dict: frozenset(("get", "keys", "values", "items", "copy", "__contains__", "__getitem__", "__len__", "__iter__")),
    list: frozenset(("index", "count", "copy", "__contains__", "__getitem__", "__len__", "__iter__")),
    set: frozenset(("issubset", "issuperset", "isdisjoint", "copy", "__contains__", "__len__", "__iter__")),
    deque: frozenset(("index", "count", "copy", "__contains__", "__getitem__", "__len__", "__iter__")),
}
_TRACKING = str(_HERE / "programs" / "tracking")
_DECIDED = str(PurePath("_trio_internals") / "_decided.py")
_CURRENT_TIME = VirtualClock.current_time.__code__
_VALUES = (str, bytes, int, float, complex, tuple, frozenset, range, type(None))


@attrs.frozen
class _Code:
    """What is known of a piece of code before it runs.  Instructions are numbered as `f_lasti` does."""

    #: Where a first run begins.
    start: int
    #: The instructions that write.
    writes: frozenset[int]
    #: Each instruction that moves an iterator, and the one that made the iterator, or -1.
    moves: dict[int, int]
    #: The instructions that make an iterator.
    makes: frozenset[int]
    #: The calls that are seen to call something.
    calls: frozenset[int]
    #: The places where it can be left by an await, and come back to without one of the writes.
    comes_back: frozenset[int]


_known: dict[CodeType, _Code] = {}


def _facts_of(code: CodeType) -> _Code:
    found = _known.get(code)
    if found is None:
        found = _known[code] = _read(code)
    return found


# By id, because the hash of code is one of all that it holds; it is kept, so no other code gets its id.
_come_back: dict[int, tuple[CodeType, frozenset[int] | None]] = {}


def comes_back(code: CodeType) -> frozenset[int] | None:
    """Give the places where `code` awaits and may come back to without a write; None: it is a checkpoint of Trio's."""
    found = _come_back.get(id(code))
    if found is None:
        found = _come_back[id(code)] = (code, None if code in _CHECKPOINTS else _facts_of(code).comes_back)
    return found[1]


def _read(code: CodeType) -> _Code:
    bytecode = dis.Bytecode(code)
    instructions = [each for each in bytecode if each.opname != "CACHE"]
    place_of = {each.offset: place for place, each in enumerate(instructions)}
    names = [each.opname for each in instructions]
    start, writes, moves, calls = -1, set(), {}, set()
    after: list[list[int]] = [[] for _ in instructions]
    for place, each in enumerate(instructions):
        name = each.opname
        if name == "RESUME" and start < 0:
            start = each.offset
        if name.startswith(_WRITES) or (name == "BINARY_OP" and each.argrepr.endswith("=")):
            writes.add(each.offset)
            while place and names[place - 1] == "EXTENDED_ARG":
                place -= 1
                writes.add(instructions[place].offset)
            place = place_of[each.offset]
        if name == "FOR_ITER":
            made = (at for at in range(place - 1, -1, -1) if names[at] == "GET_ITER")
            moves[each.offset] = instructions[at].offset if (at := next(made, -1)) >= 0 else -1
        if name.startswith("CALL") and "INTRINSIC" not in name:
            before = next((name for name in reversed(names[:place]) if name != "PRECALL"), "")
            # Neither the call of an async function nor that of a generator runs anything.
            if before != "GET_ITER" and names[place + 1 : place + 2] != ["GET_AWAITABLE"]:
                calls.add(each.offset)
        jumps_to = place_of.get(each.argval, -1) if each.opcode in (*dis.hasjrel, *dis.hasjabs) else -1
        if name == "JUMP_BACKWARD_NO_INTERRUPT" and jumps_to >= 0:
            # The await goes on: it is over in the end.
            after[place].append(place_of.get(instructions[jumps_to].argval, place))
            continue
        if jumps_to >= 0:
            after[place].append(jumps_to)
        is_plain_jump = name in ("JUMP_FORWARD", "JUMP_BACKWARD")
        if name not in _GOES_NOWHERE and not is_plain_jump and place + 1 < len(after):
            after[place].append(place + 1)
    for entry in getattr(bytecode, "exception_entries", ()):
        for offset, place in place_of.items():
            if entry.start <= offset < entry.end and entry.target in place_of:
                after[place].append(place_of[entry.target])
    facts = _Code(
        start,
        frozenset(writes),
        moves,
        frozenset(each.offset for each in instructions if each.opname == "GET_ITER"),
        frozenset(calls),
        frozenset(),
    )
    loops = (
        instructions[place + _AWAITS_AFTER].offset
        for place, name in enumerate(names)
        if name == "YIELD_VALUE" and _comes_round(place, after, [each.offset for each in instructions], place_of, facts)
    )
    return attrs.evolve(facts, comes_back=frozenset(loops))


def _comes_round(
    begin: int, after: list[list[int]], offsets: list[int], place_of: dict[int, int], facts: _Code
) -> bool:
    """Say whether a way leads from an instruction back to it that passes no write and moves no older iterator."""
    seen: set[int] = set()
    put_off: dict[int, list[int]] = {}
    left = list(after[begin])
    while left:
        place = left.pop()
        if place == begin:
            return True
        if place in seen or offsets[place] in facts.writes:
            continue
        made = facts.moves.get(offsets[place])
        if made is not None and place_of.get(made, -1) not in seen:
            put_off.setdefault(made, []).append(place)
            continue
        seen.add(place)
        left += after[place]
        left += put_off.pop(offsets[place], ())
    return False


class StepWatch:
    """Looks at the instructions of one step; one after the other in one thread."""

    def __init__(self) -> None:
        #: True once the step may have written.
        self.wrote = False
        #: True once the step has looked at the clock.
        self.saw_time = False
        self._before: tuple[Any, Any] = (None, None)
        # How each frame was traced before.
        self._traced: list[tuple[FrameType, Any, bool, bool]] = []
        # The frames that the step goes on with, those that it made, and those that this watch has not seen yet.
        self._resumed: set[int] = set()
        self._outermost: FrameType | None = None
        # True while the outermost runs: what Trio's loop does around it is no part of the step.
        self._is_inside = False
        self._made: list[FrameType] = []
        self._unseen: set[int] = set()
        self._iterators: set[tuple[int, int]] = set()
        # The frame whose call has not been seen to call anything.
        self._calling: FrameType | None = None
        # Python 3.12 shows instructions only where some frame had asked for them before `sys.settrace`.
        sys._getframe().f_trace_opcodes = True

    def begin(self, frames: Sequence[FrameType]) -> None:
        """Look from now on; `frames` are those that the step goes on with, the outermost first."""
        self.wrote = self.saw_time = False
        # Not those that end unseen: another frame may get their ids.
        seen = (frame for frame in frames if not (frame.f_code in _CHECKPOINTS or _is_passed_over(frame.f_code)))
        self._resumed = set(map(id, seen))
        self._outermost, self._is_inside = frames[0], False
        self._made, self._iterators, self._calling = [], set(), None
        self._unseen.clear()
        self._before = sys.gettrace(), sys.getprofile()
        sys.setprofile(self._called)
        sys.settrace(self._entered)

    def end(self) -> None:
        """Look no longer."""
        trace, profile = self._before
        sys.settrace(trace)
        sys.setprofile(profile)
        for frame, own, lines, opcodes in reversed(self._traced):
            frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes = own, lines, opcodes
        self._traced.clear()
        if self._unseen:
            # This Python does not show each instruction.
            self.wrote = True
        self._made.clear()
        self._outermost = None

    def _entered(self, frame: FrameType, event: str, _: object) -> Any:
        before = (frame, frame.f_trace, frame.f_trace_lines, frame.f_trace_opcodes)
        own = self._begun(frame)
        if own is not None:
            self._traced.append(before)
        if self._before[0] is None:
            return own
        beside = self._before[0](frame, event, None)
        # Coverage's tracer has put itself in the place of this one.
        sys.settrace(self._entered)
        if beside is None:
            return own
        frame.f_trace_lines = True
        return _Both(own, beside)

    def _begun(self, frame: FrameType) -> Any:
        code = frame.f_code
        self._calling = None
        if frame is self._outermost:
            self._is_inside = True
            if _is_passed_over(code):
                frame.f_trace_lines = frame.f_trace_opcodes = False
                return self._left
        if not self._is_inside:
            return None
        if code.co_name == "report" and code.co_filename.startswith(_TRACKING):
            self.wrote |= bool(frame.f_locals["write"])
        if code.co_filename.startswith(_TRACKING) and code.co_filename.endswith("_calls.py"):
            # What it calls is looked at, and a call that cannot be seen is reported as a write of anything.
            return None
        if code is _CURRENT_TIME or (code.co_name == "_looked" and code.co_filename.endswith(_DECIDED)):
            self.saw_time = True
        if self.wrote or code in _CHECKPOINTS or _is_passed_over(code):
            return None
        if id(frame) not in self._resumed:
            if frame.f_lasti > _facts_of(code).start and frame not in self._made:
                # A generator or coroutine that is older than the step.
                self.wrote = True
                return None
            self._made.append(frame)
        self._unseen.add(id(frame))
        # Python 3.13 shows the instructions of this very run only where `f_trace` is there first.
        frame.f_trace = self._ran
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._ran

    def _left(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "return":
            if frame is self._outermost:
                self._is_inside = False
            if not _is_suspended(frame):
                self._release(frame)
        return self._left

    def _release(self, frame: FrameType) -> None:
        """Let go of a frame that has ended: what it holds ends when it would without this watch."""
        self._traced = [traced for traced in self._traced if traced[0] is not frame]
        self._made = [made for made in self._made if made is not frame]
        self._resumed.discard(id(frame))
        if frame is self._outermost:
            self._outermost = None
        self._calling = None

    def _ran(self, frame: FrameType, event: str, _: object) -> Any:
        if event != "opcode":
            if event == "exception":
                # It was thrown in: a generator that is closed runs no instruction.
                self._unseen.discard(id(frame))
            self._left(frame, event, None)
            return self._ran
        at, facts = frame.f_lasti, _facts_of(frame.f_code)
        self._unseen.discard(id(frame))
        if frame is self._calling or at in facts.writes:
            self.wrote = True
        elif at in facts.calls:
            self._calling = frame
        elif at in facts.makes:
            self._iterators.add((id(frame), at))
        elif (made := facts.moves.get(at)) is not None:
            self.wrote |= id(frame) in self._resumed and (id(frame), made) not in self._iterators
        return self._ran

    def _called(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or not self._is_inside:
            return
        self._calling = None
        if not (self.wrote or _only_looks(function) or _is_passed_over(frame.f_code)):
            self.wrote = frame.f_code not in _CHECKPOINTS


class _Both:
    """What looks at a frame, and the tracer that was there before: a debugger's, or coverage's."""

    __slots__ = ("_beside", "_own")

    def __init__(self, own: Any, beside: Any) -> None:
        self._own, self._beside = own, beside

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if event != "opcode" and self._beside is not None:
            self._beside = self._beside(frame, event, argument)
        if event != "line" and self._own is not None:
            self._own = self._own(frame, event, argument)
        return self


def _is_suspended(frame: FrameType) -> bool:
    """Say whether `frame`, which is left, can go on."""
    code = frame.f_code
    return bool(code.co_flags & _SUSPENDS) and code.co_code[frame.f_lasti - 2 * _AWAITS_AFTER] == _YIELD


def _is_passed_over(code: CodeType) -> bool:
    if id(code) in LOOKING:
        return True
    # Draws of random numbers, and a sleep that moves the clock, are writes like any other.
    return code.co_filename.startswith(_PASSED_OVER) and not code.co_filename.endswith(_DECIDED)


def _only_looks(function: Any) -> bool:
    owner = function.__self__
    if owner is None or isinstance(owner, ModuleType):
        return function in _LOOKS
    for kind, methods in _LOOKING_METHODS.items():
        if isinstance(owner, kind):
            return function.__name__ in methods
    return type(owner) in _VALUES

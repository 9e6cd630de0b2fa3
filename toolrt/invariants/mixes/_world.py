"""The shared things that scripted calls touch, and the tools that act the scripts.

Rules.  A call reports what it does: accesses for the explorer, file events and effects for the laws.  A world belongs
to one execution.  A change of a file or cell takes several steps, so a runtime that lets two calls change one at the
same time is caught.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import trio

from toolrt import probe
from toolrt.events import FileRead, MutationBegan, MutationEnded, ToolEffect, observer
from toolrt.invariants._one_by_one import OneByOneContext
from toolrt.invariants.mixes._twin import TwinDisk
from toolrt.invariants.predicates._story import RETURNS, SHIELD
from toolrt.invariants.script import (
    POINTED_AT,
    Action,
    AddCell,
    AddCells,
    AppendFile,
    BreakState,
    ChangeState,
    Fail,
    FailWhenCancelled,
    FollowCell,
    LeaveOpen,
    OverwriteState,
    Pause,
    ReadCell,
    ReadCells,
    ReadFile,
    Refuse,
    Say,
    Scripted,
    SeeState,
    Shield,
    Sleep,
    SubBatch,
    WriteFile,
    cell_resource,
)
from toolrt.model import (
    READ,
    WRITE,
    Allow,
    BatchOutcome,
    Change,
    Claim,
    Modifier,
    Progress,
    Registry,
    State,
    Tool,
    ToolCall,
    ToolOutput,
)
from toolrt.runtime import ToolContext

if TYPE_CHECKING:
    from toolrt.runtime import ApprovalRequest


_A_BATCH = LeaveOpen("batch")

#: How the runtime calls what was left open; of a sub-batch it names the nursery first.
_A_NURSERY = "a nursery"
_WORDS = {"nursery": _A_NURSERY, "scope": "a cancel scope", "batch": _A_NURSERY}

#: One thing that was left open: its words and, of a sub-batch, its name.
_LeftOpen = tuple[str, str | None]

#: What a rewritten input asks for that claims more than the call holds.
_WIDER = "wider"

#: What the names of the tools of the other batch have before their place.
_BESIDE = "beside"

ClaimsOf = Callable[[Mapping[str, Any], State], Iterable[Claim]]


class _ScriptContext(Protocol):
    """What a script uses of the `ToolContext`."""

    @property
    def batch_id(self) -> str: ...
    @property
    def call_index(self) -> int: ...
    @property
    def state(self) -> State: ...
    def progress(self, message: Any) -> None: ...
    async def run(self, calls: Sequence[ToolCall]) -> BatchOutcome: ...


class ScriptedFailure(Exception):
    """What `Fail` raises."""


class World:
    """Cells and files of one execution, and the tools of one mix.

    Args:
        calls: the scripts, by call_index.
        files: what the files hold at first; a file that is not there is empty.
        twin: the disk on which some of the calls use tools of a workspace.
        beside: the scripts of another batch.
    """

    def __init__(
        self,
        calls: Sequence[Scripted],
        files: Mapping[str, str],
        twin: TwinDisk | None = None,
        beside: Sequence[Scripted] = (),
    ) -> None:
        self._calls = calls
        self._calls_beside = beside
        self.twin = twin
        #: What every file holds.
        self.files: dict[str, str] = dict(files)
        #: What every file ever held, oldest first; None while it was not there.
        self.versions: dict[str, list[str | None]] = {name: [text] for name, text in files.items()}
        self._cells: dict[str, str] = {}
        self._vouches = not any(call.sub_batches for call in calls)
        # Only where a call looks at all cells, so that calls of different cells stay independent for an explorer.
        family = (one for call in calls for one in call.family)
        looks_at_all = any(getattr(action, "under", None) == "" for call in family for action in call.does)
        self._lowest = 0 if looks_at_all else 1
        #: The calls that the approval check was asked for, each by its batch and place.
        self._asked: set[tuple[str, int]] = set()
        #: How many plain calls have begun and not ended.
        self.running = 0
        #: Every script by its tool's name, those of sub-batches too.
        self._by_name: dict[str, Scripted] = {}

    def after_crash(self) -> World:
        """The same for the process that starts after a crash now: files and cells are as they are."""
        world = World(self._calls, self.files)
        world._cells.update(self._cells)
        return world

    # Tools and calls

    def registry(self) -> Registry:
        """One tool for each call, those of sub-batches too, and those of the workspace."""
        scripted = *self._tools("", self._calls), *self._tools(_BESIDE, self._calls_beside)
        return Registry([*scripted, *(() if self.twin is None else self.twin.tools)])

    def calls(self) -> list[ToolCall]:
        """The calls of the batch."""
        return _calls("", self._calls)

    def calls_beside(self) -> list[ToolCall]:
        """The calls of the other batch."""
        return _calls(_BESIDE, self._calls_beside)

    def _tools(self, prefix: str, calls: Sequence[Scripted]) -> Iterator[Tool]:
        for index, call in enumerate(calls):
            if call.uses is not None:
                continue
            yield self._tool(prefix, index, call)
            for number, batch in enumerate(call.sub_batches):
                yield from self._tools(f"{prefix}{index}.{number}.", batch.calls)

    async def _open(self, ctx: _ScriptContext, prefix: str, batch: SubBatch) -> BatchOutcome:
        """Run a sub-batch in the way its script says."""
        calls = _calls(prefix, batch.calls)
        if not (batch.reads and isinstance(ctx, ToolContext)):
            return await ctx.run(calls)
        async with ctx.open_batch() as opened:
            for call in calls:
                opened.submit(call)
            opened.seal()
            async for update in opened:
                if isinstance(update, Progress):
                    ctx.progress(update.message)
        return opened.outcome

    def _tool(self, prefix: str, index: int, call: Scripted) -> Tool:
        self._by_name[f"tool{prefix}{index}"] = call
        places = {id(batch): f"{prefix}{index}.{number}." for number, batch in enumerate(call.sub_batches)}

        async def act(ctx: _ScriptContext, index: int, note: str = "") -> ToolOutput:
            left: list[_LeftOpen] = []
            if isinstance(ctx, ToolContext):
                try:
                    output = await follow(ctx, note, left)
                except ScriptedFailure:
                    _returns(ctx, left)
                    raise
                _returns(ctx, left)
                return output
            # The oracle: it enters nothing, and gives the error of what would be left open.
            errors: list[Exception] = []
            try:
                output = await follow(ctx, note, left)
            except Exception as error:
                errors.append(error)
            if any(what == _A_NURSERY and batch is None for what, batch in left):
                await trio.lowlevel.checkpoint()  # as its end does, where a timeout may come; a batch's has none
            if left or errors:
                raise _left_open(left, *errors) from None
            return output

        async def follow(ctx: _ScriptContext, note: str, left: list[_LeftOpen]) -> ToolOutput:
            seen: list[Any] = [note] if note else []
            modifiers: list[Modifier] = []
            opened = 0
            self.vouch()
            for action in call.does:
                opened += isinstance(action, SubBatch) or action == _A_BATCH
                if isinstance(action, Sleep):
                    await trio.sleep(action.seconds)
                    self.vouch()
                elif isinstance(action, Pause):
                    await trio.lowlevel.checkpoint()
                    self.vouch()
                elif isinstance(action, LeaveOpen):
                    batch = f"batch {ctx.batch_id}/{ctx.call_index}.{opened}" if action == _A_BATCH else None
                    left.append((_WORDS[action.what], batch))
                    if isinstance(ctx, ToolContext):
                        await _enter(ctx, action)
                    elif isinstance(ctx, OneByOneContext) and batch is not None:
                        ctx.sub_batches += 1  # the next sub-batch has the number that it has behind this one
                elif isinstance(action, FailWhenCancelled):
                    await _wait_with_child(action)
                    self.vouch()
                elif isinstance(action, Shield):
                    _effect(ctx, SHIELD)
                    with trio.CancelScope(shield=True):
                        await trio.sleep(action.seconds)
                    self.vouch()
                elif isinstance(action, AddCell | AddCells | FollowCell):
                    held = self._held(action)
                    await trio.lowlevel.checkpoint()
                    self.vouch()
                    self._add(ctx, action, held, seen)
                elif isinstance(action, WriteFile | AppendFile):
                    await self._write(ctx, action)
                elif isinstance(action, SubBatch):
                    outcome = await self._open(ctx, places[id(action)], action)
                    seen.append([[result.outcome.value, result.content] for result in outcome.results])
                    if action.hands_on:
                        modifiers += outcome.modifiers
                else:
                    self._at_once(ctx, action, seen, modifiers)
            return _output(call, seen, modifiers)

        def act_at_once(ctx: _ScriptContext, index: int, note: str = "") -> ToolOutput:
            self.running += 1
            try:
                return do_all(ctx, note)
            finally:
                self.running -= 1

        def do_all(ctx: _ScriptContext, note: str) -> ToolOutput:
            seen: list[Any] = [note] if note else []
            modifiers: list[Modifier] = []
            for action in call.does:
                if isinstance(action, Sleep) and call.thread:
                    time.sleep(action.seconds)
                elif isinstance(action, AddCell | AddCells | FollowCell):
                    self._add(ctx, action, self._held(action), seen)
                elif isinstance(action, WriteFile | AppendFile):
                    self._write_at_once(ctx, action)
                else:
                    self._at_once(ctx, action, seen, modifiers)
            return _output(call, seen, modifiers)

        act_at_once.in_thread = call.thread  # type: ignore[attr-defined]
        claims, follows = call.claims, call.follows
        if any(
            child.follows for batch in call.sub_batches if batch.claimed for one in batch.calls for child in one.family
        ):
            follows = ()  # it lends all that cells may point at
        looked_at = tuple(Claim(cell_resource(cell), READ) for cell in follows) if call.says == "after" else None
        declared: ClaimsOf | tuple[Claim, ...] | None = claims

        def claims_of(input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
            if input["index"] != index:
                return ()
            if input.get("note") == _WIDER:
                return (*claims, Claim(_WIDER, WRITE))
            if not follows:
                return claims
            known = [claim for claim in claims if claim.resource != (POINTED_AT,)]
            return (*known, *(Claim((POINTED_AT, self._pointed_at(cell)), WRITE) for cell in follows))

        if call.says == "nothing" or (call.says == "safe" and not claims):
            declared = None
        elif call.says == "by input" or follows or call.says == "after" or call.approval == "wider":
            declared = claims_of
        return Tool(
            name=f"tool{prefix}{index}",
            function=act_at_once if call.sync else act,
            safe=_is_safe if call.says == "by input" else call.says == "safe",
            claims=declared,
            claims_after=looked_at if callable(declared) else None,
            timeout=call.timeout,
            stops_batch=call.stops,
            interrupt=call.interrupt,
            schema=None,
            pure=call.pure,
            idempotent=call.idempotent,
        )

    def vouch(self) -> None:
        """Declare that a script's step reports all it touches; not with sub-batches, whose lent claims it omits."""
        if self._vouches:
            probe.vouch()

    # Approval

    def approve(self, request: ApprovalRequest) -> Any:
        """The approval check of the mix."""
        call = self._by_name.get(request.name, self._calls[request.call_index])
        place = request.batch_id, request.call_index
        if place in self._asked:
            raise ScriptedFailure("the check was asked twice")
        self._asked.add(place)
        if call.approval_after is None:
            return self._answer(request, call)
        return self._answer_later(request, call, call.approval_after)

    async def _answer_later(self, request: ApprovalRequest, call: Scripted, seconds: float) -> Any:
        await trio.sleep(seconds)
        return self._answer(request, call)

    def _answer(self, request: ApprovalRequest, call: Scripted) -> Any:
        if call.approval == "deny":
            return "not today"
        if call.approval == "rewrite":
            return {"index": request.call_index, "note": "rewritten"}
        if call.approval == "misfit":
            return {"number": request.call_index}
        if call.approval == "wider":
            return {"index": request.call_index, "note": _WIDER}
        if call.approval == "narrow":
            known = [claim for claim in call.claims if claim.resource != (POINTED_AT,)]
            return Allow(within=tuple(known[:-1]))
        if call.approval == "raise":
            raise ScriptedFailure("the check broke")
        return True

    # Actions

    def _at_once(self, ctx: _ScriptContext, action: Action, seen: list[Any], modifiers: list[Modifier]) -> None:
        if isinstance(action, Say):
            for _ in range(action.times):
                ctx.progress(action.text)
        elif isinstance(action, ReadCell):
            seen.append(self._look_at_cell(action.cell))
        elif isinstance(action, ReadCells):
            seen.append(self._look_at_cells(action.under))
        elif isinstance(action, ReadFile):
            seen.append(self._read(ctx, action.file))
        elif isinstance(action, SeeState):
            seen.append(ctx.state.get(action.key))
        elif isinstance(action, ChangeState):
            modifiers.append(Change.call(_add, action.key, action.text))
        elif isinstance(action, OverwriteState) and action.unless_there:
            seen.append(action.key in ctx.state)
            if not seen[-1]:
                modifiers.append(Change.call(_set, action.key, action.text))
        elif isinstance(action, OverwriteState):
            modifiers.append(Change.call(_set, action.key, ctx.state.get(action.key, "") + action.text))
        elif isinstance(action, BreakState):
            modifiers.append(_breaking)
        elif isinstance(action, Fail):
            if action.group:
                raise ExceptionGroup("several", [ScriptedFailure(action.text), ScriptedFailure(f"also {action.text}")])
            raise ScriptedFailure(action.text)

    def _look_at_cell(self, name: str) -> str:
        probe.access(("cell", name), False)
        return self._cells.get(name, "")

    def _look_at_cells(self, under: str) -> dict[str, str]:
        """What that cell and all below it hold, as far as they hold something."""
        probe.access(("cells", under), False)
        return {
            name: text
            for name, text in sorted(self._cells.items())
            if not under or name == under or name.startswith(f"{under}/")
        }

    def _held(self, action: AddCell | AddCells | FollowCell) -> dict[str, str]:
        """What the cells hold that the action adds a text to, by name."""
        if isinstance(action, AddCells):
            return self._look_at_cells(action.under)
        cell = action.cell if isinstance(action, AddCell) else self._pointed_at(action.cell)
        return {cell: self._look_at_cell(cell)}

    def _add(
        self, ctx: _ScriptContext, action: AddCell | AddCells | FollowCell, held: dict[str, str], seen: list[Any]
    ) -> None:
        """Write what the cells held, and the text behind it."""
        for cell, before in held.items():
            self._set_cell(ctx, cell, before + action.text)
            if isinstance(action, FollowCell):
                seen.append([cell, before])

    def _pointed_at(self, name: str) -> str:
        """The name of the cell that this one points at: every text points at another one."""
        return f"{POINTED_AT} {self._look_at_cell(name)}"

    def _set_cell(self, ctx: _ScriptContext, name: str, text: str) -> None:
        probe.access(("cell", name), True)
        parts = name.split("/")
        for depth in range(self._lowest, len(parts) + 1):
            probe.access(("cells", "/".join(parts[:depth])), True)
        self._cells[name] = text
        _effect(ctx, f"cell {name}")

    def _read(self, ctx: _ScriptContext, name: str) -> str:
        probe.access(("file", name), False)
        text = self.files.get(name, "")
        if observer.records:
            observer.tell(FileRead(ctx.batch_id, ctx.call_index, name, _version(text)))
        return text

    async def _write(self, ctx: _ScriptContext, action: WriteFile | AppendFile) -> None:
        name, ok = action.file, False
        probe.access(("file", name), False)
        before = self.files.get(name, "") if isinstance(action, AppendFile) else ""
        _began(ctx, name)
        try:
            await trio.lowlevel.checkpoint()
            self.vouch()
            self._put(name, before + action.text)
            ok = True
            # What was written is whole from here on; a cancel after it finds the file as it will stay.
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
                self.vouch()
        finally:
            _ended(ctx, name, self.files.get(name, ""), ok)

    def _write_at_once(self, ctx: _ScriptContext, action: WriteFile | AppendFile) -> None:
        name = action.file
        before = self.files.get(name, "") if isinstance(action, AppendFile) else ""
        _began(ctx, name)
        self._put(name, before + action.text)
        _ended(ctx, name, self.files[name], True)

    def _put(self, name: str, text: str) -> None:
        probe.access(("file", name), True)
        self.files[name] = text
        self.versions.setdefault(name, [None]).append(text)


def _calls(prefix: str, calls: Sequence[Scripted]) -> list[ToolCall]:
    made = []
    for index, call in enumerate(calls):
        name, input = f"tool{prefix}{index}", {"index": index}
        if call.uses is not None:
            name, input = call.uses.tool, dict(call.uses.input)
        if call.invalid == "unknown":
            name = f"nobody{prefix}{index}"
        elif call.invalid == "input":
            input = {"number": index}
        made.append(ToolCall(f"id{prefix}{index}" if call.call_id is None else call.call_id, name, input))
    return made


async def _enter(ctx: ToolContext, action: LeaveOpen) -> None:
    """Enter what the action names, for good."""
    if action.what == "scope":
        trio.CancelScope().__enter__()
    elif action.what == "batch":
        await ctx.open_batch().__aenter__()
    else:
        nursery = await trio.open_nursery().__aenter__()
        nursery.start_soon(trio.sleep_forever, name="left open")


async def _wait_with_child(action: FailWhenCancelled) -> None:
    async def child() -> None:
        try:
            await trio.sleep(action.seconds)
        except trio.Cancelled:
            raise ScriptedFailure(action.text) from None  # noqa: ASYNC104 - that is what the action is for

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        await trio.sleep(action.seconds)


def _left_open(left: Sequence[_LeftOpen], *errors: Exception) -> Exception:
    """What a call fails with that raised these `errors`, if any, and left that open."""
    if not left:
        return errors[0]
    found = [words for words, _ in reversed(left)] + [batch for _, batch in left if batch is not None]
    what = ", ".join(dict.fromkeys(found))
    wrong = RuntimeError(f"the tool left {what} open: leave what it enters before it ends, with `with` or `async with`")
    return ExceptionGroup("a tool that left something open", [wrong, *errors]) if errors else wrong


def _is_safe(input: Mapping[str, Any]) -> bool:
    return bool(input.get("index", 0) % 2 == 0)


def _output(call: Scripted, seen: list[Any], modifiers: list[Modifier]) -> ToolOutput:
    refusal = next((action.text for action in call.does if isinstance(action, Refuse)), None)
    return ToolOutput(seen, tuple(modifiers), refusal)


def _add(state: State, key: str, text: str) -> State:
    probe.vouch()
    return state.set(key, state.get(key, "") + text)


def _set(state: State, key: str, text: str) -> State:
    probe.vouch()
    return state.set(key, text)


def _breaking(state: State) -> State:
    probe.vouch()
    raise ScriptedFailure("this modifier raises")


def _effect(ctx: _ScriptContext, effect: str) -> None:
    if observer.records:
        observer.tell(ToolEffect(ctx.batch_id, ctx.call_index, effect))


def _returns(ctx: _ScriptContext, left: Sequence[_LeftOpen]) -> None:
    """Report that the tool returns, or raises an error of its own; where it leaves something open it may yet be cut."""
    if not left:
        _effect(ctx, RETURNS)


def _began(ctx: _ScriptContext, name: str) -> None:
    if observer.records:
        observer.tell(MutationBegan(ctx.batch_id, ctx.call_index, name))


def _ended(ctx: _ScriptContext, name: str, text: str, ok: bool) -> None:
    if observer.records:
        observer.tell(MutationEnded(ctx.batch_id, ctx.call_index, name, _version(text), ok))


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]

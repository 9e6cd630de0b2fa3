"""Does a tool keep its promises?  The laws hold for tools that do.

Rules.
    1. Each input is tried by itself, in a simulation, each time in a fresh workspace where one is given: twice, at
       another time, with a cancel at each of its checkpoints, under many orders of its own tasks; and then beside
       every other input with which it may overlap.
    2. What is reported was seen to happen; nothing is inferred from the source.
    3. A tool may fail as it likes: an error is an answer, and is compared like one.

Limits.  Only what goes through the workspace's disk, `toolrt.sim.Cell`, `toolrt.sim.watch` and the probe is seen, and
what a tool that is made anew for each run keeps in closures, those of its helpers, too, and in objects of its package.
A tool that reads the real clock, the network or a global is caught only where its answers differ.  Which claim means
which cell is known by the calls that conflict; for claims that look at a cell, by its name.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations_with_replacement
from typing import Any

import attrs

from toolrt import probe
from toolrt.errors import DefinitionRefused, asks_to_exit
from toolrt.model import EVERYTHING, READ, WRITE, Claim, Mode, Registry, State, Tool, ToolCall, covers
from toolrt.order import by_claims, shares_a_lane
from toolrt.testing._conditions import Case, about_cancel, about_overlap, about_timing
from toolrt.testing._stores import RowName, Store, StoreContent
from toolrt.testing._trial import Content, Trial, is_memory, made, named, run
from toolrt.trace import plain
from toolrt.workspace import Planted, Workspace

# So many pairs of inputs are run beside each other.
_PAIRS = 50
# The same for the calls of several tools.
_PAIRS_OF_TOOLS = 2000

Promise = Callable[[str, str], "BrokenPromise"]


@attrs.frozen
class BrokenPromise:
    """One promise a tool does not keep."""

    #: "input", "safe", "claims", "claims_hold" (law 17), "modifiers",
    #: "state", "deterministic", "timing", "cancel", "blocking", "ends".
    promise: str
    #: What was expected and what was seen.
    detail: str
    #: The tool's name.
    tool: str
    #: The input it was seen with.
    input: Any

    def __str__(self) -> str:
        return f"{self.tool} breaks its promise ({self.promise}): {self.detail} (input {self.input!r})"


def check_tool(
    tool: Tool | Callable[[], Tool] | Callable[[Workspace], Tool],
    inputs: Iterable[Any],
    state: State | None = None,
    workspace: Workspace | Mapping[str, Planted] | None = None,
    *,
    store: Store | None = None,
    executions: int = 20,
) -> list[BrokenPromise]:
    """Every promise that `tool` was seen to break for one of `inputs`; an empty list when it keeps them all.

    What it looks for: a safe tool changes nothing, and what says that it is safe does not raise and says the same
    when asked twice; the claims cover every file it reads or changes, are the same when asked twice and do not
    raise; what they look at is claimed or declared; cells and watched things are written by a tool that claims
    something for writing; calls whose claims do not conflict do not disturb each other, touch no cell that one of
    them changes, and leave together what they leave one after the other; modifiers are pure functions to a `State`;
    the call's own state and input are left as they were; the same input gives the same answer, the same files and
    the same state, whatever the time and the order of the tool's own tasks; a cancel is passed on; an async tool
    does not hold up the loop.

    Args:
        tool: a tool, or a function that makes it: for a workspace, or without an argument.  A tool that keeps
            something between its calls has to be made anew for each run, or its answers differ.
        inputs: inputs as a model would give them, at least one; one that does not fit is reported too.
        state: what `ctx.state` is; the empty one by default.
        workspace: the first content of a disk in memory, made anew for every run (then `tool` is a function of the
            workspace); or a workspace the tool is bound to, which keeps what the tool does to it; or None.
        store: the database that the tool works on, or None.  Before every run its rows are made those that it has now,
            and so they are when this returns.  For calls of several tools see `check_tools`.
        executions: how many orders of steps are tried wherever there is more than one, 1 or more.

    Raises:
        DefinitionRefused: `tool` is none of these, or a function of a workspace without content for one; there is no
            input; or an argument is not what it must be.
        NotSimulated: the tool needs a thread, a socket or a subprocess: it cannot be checked.

    Checkpoint: never (it is not async); call it outside Trio.

    Example::

        assert check_tool(lambda workspace: my_tool(workspace), [{"path": "a.txt"}], workspace={"a.txt": "one"}) == []
    """
    if not isinstance(tool, Tool) and not (callable(tool) and _takes(tool, 1 if isinstance(workspace, Mapping) else 0)):
        raise DefinitionRefused("check_tool(tool)", "a tool, or a function of a workspace and its content", tool)
    state = _checked_state("check_tool", state, executions)
    inputs = _checked_inputs(inputs)
    content: Content = workspace
    if store is not None:
        if workspace is not None:
            raise DefinitionRefused("check_tool(store)", "a store or a workspace, not both", store)
        content = StoreContent.of(store, "check_tool(store)")
        made_tool, _ = made(tool, content)
        content = content.naming(claim for one in inputs for claim in _own_claims(made_tool, one, state))
    found: list[BrokenPromise] = []
    cases: list[tuple[Case, Promise]] = []
    with content if isinstance(content, StoreContent) else contextlib.nullcontext():
        for input in inputs:
            broken, case, promise = _check_input(tool, input, state, content, executions)
            found += broken
            if case is not None and not broken:
                cases.append((case, promise))
        pairs = list(combinations_with_replacement(cases, 2))
        for (one, promise), (two, _) in pairs[:: -(-len(pairs) // _PAIRS) or 1]:
            found += [promise(*broken) for broken in about_overlap(one, two, executions)]
    return found


def check_tools(
    tools: Iterable[Tool],
    calls: Iterable[ToolCall],
    store: Store,
    state: State | None = None,
    *,
    executions: int = 20,
) -> list[BrokenPromise]:
    """Every promise that one of `tools` was seen to break by one of `calls`, or by two of them at once.

    Each call is checked by itself, as `check_tool` does.  Then each two calls that may overlap run at once and one
    after the other, where at least one changes something.  The answers and the rows must be the same.  Where they are
    not, the claims are not enough, which is told once for each two tools; a tool with ``safe=True`` that reads what
    another call changes is found so.

    Args:
        tools: the tools, as for a `Registry`.
        calls: of any of the tools, at least one; several on one row and some on others find most.
        store: the database that the tools work on.  Before every run its rows are made those that it has now, and so
            they are when this returns.
        state: what `ctx.state` is; the empty one by default.
        executions: how many orders of steps are tried wherever there is more than one, 1 or more.

    Raises:
        DefinitionRefused: a call names no tool, there is no call, or an argument is not what it must be.
        NotSimulated: a tool needs a socket or a subprocess: give it a store in memory to be checked with.

    Checkpoint: never (it is not async); call it outside Trio.

    Example::

        assert check_tools([pay, cancel], [ToolCall("1", "pay", {"order_id": "W1"}), ...], database) == []
    """
    state = _checked_state("check_tools", state, executions)
    content, asked = checked_calls("check_tools", tools, calls, store)
    content = content.naming(claim for tool, call in asked for claim in _own_claims(tool, call.input, state))
    found: list[BrokenPromise] = []
    cases: list[tuple[Case, Promise]] = []
    with content:
        for tool, call in asked:
            broken, case, promise = _check_input(tool, call.input, state, content, executions)
            found += broken
            if case is not None and all(one.promise == "cancel" for one in broken):
                cases.append((case, promise))
        pairs = [
            # The tool that claims nothing comes first: its promise is the one that is broken.
            sorted(pair, key=lambda case: not case[0].undeclared)
            for pair in combinations_with_replacement(cases, 2)
            if pair[0][0].changes or pair[1][0].changes
        ]
        told: set[frozenset[str]] = set()
        for (one, promise), (two, _) in pairs[:: -(-len(pairs) // _PAIRS_OF_TOOLS) or 1]:
            if frozenset((one.name, two.name)) in told:
                continue
            for which, detail in about_overlap(one, two, executions):
                found.append(promise(which, detail))
                told.add(frozenset((one.name, two.name)))
    return found


def checked_calls(
    what: str, tools: object, calls: object, store: object
) -> tuple[StoreContent, list[tuple[Tool, ToolCall]]]:
    """Give the store's content, and each call with its tool.

    Raises:
        DefinitionRefused: a call names no tool, or an argument is not what it must be.
    """
    registry = tools if isinstance(tools, Registry) else Registry(tools)  # type: ignore[arg-type]
    listed = list(calls) if isinstance(calls, Iterable) and not isinstance(calls, Mapping | str | bytes) else []
    if not listed or not all(isinstance(call, ToolCall) for call in listed):
        raise DefinitionRefused(f"{what}(calls)", "a list of at least one ToolCall", calls)
    asked = []
    for call in listed:
        tool = registry.get(call.name)
        if tool is None:
            raise DefinitionRefused(f"{what}(calls)", f"calls of {', '.join(registry.names)}", call.name)
        asked.append((tool, call))
    return StoreContent.of(store, f"{what}(store)"), asked


def _checked_state(what: str, state: object, executions: object) -> State:
    if not isinstance(executions, int) or isinstance(executions, bool) or executions < 1:
        raise DefinitionRefused(f"{what}(executions)", "a number of executions, 1 or more", executions)
    if state is not None and not isinstance(state, State):
        raise DefinitionRefused(f"{what}(state)", "a State, or None", state)
    return State() if state is None else state


def _own_claims(tool: Tool, input: Any, state: State) -> Iterable[Claim]:
    return tool.claims_for(input, state) if isinstance(input, Mapping) else ()


def _checked_inputs(inputs: object) -> list[Any]:
    """Give the inputs: exactly one."""
    # The names of one input's fields are no inputs, nor are the letters of a text.
    if isinstance(inputs, Iterable) and not isinstance(inputs, Mapping | str | bytes) and (listed := list(inputs)):
        return listed
    raise DefinitionRefused("check_tool(inputs)", 'a list of at least one input, such as [{"path": "a.txt"}]', inputs)


def _takes(function: Callable[..., Any], arguments: int) -> bool:
    """Say whether `function` can be called with so many arguments by position."""
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError:
        return False
    return True


def _check_input(
    maker: Tool | Callable[..., Tool], input: Any, state: State, content: Content, executions: int
) -> tuple[list[BrokenPromise], Case | None, Promise]:
    """Give what is broken for one input, and the case for what is to be seen only beside others."""
    tool, seen = made(maker, content)
    promise = _promises(tool, input)
    arguments = tool.decode(input)
    if isinstance(arguments, list):
        return [promise("input", f"the input does not fit: {'; '.join(map(str, arguments))}")], None, promise
    found = _about_safe(tool, input, promise) or _about_claims(tool, input, state, seen, promise)
    if found:
        return found, None, promise
    given, before = copy.deepcopy(input), plain(state.to_json())
    run(tool, arguments, state, seen)
    found += _about_values(state, before, input, given, seen, promise)
    if found:
        return found, None, promise
    found += _about_files(tool, state, seen, promise)
    found += _about_rows(tool, seen, promise)
    found += _about_modifiers(state, seen, promise)
    if isinstance(content, Workspace) and seen.changed:
        return found, None, promise  # every further run would start from what this one left
    case = Case(
        maker,
        content,
        given,
        arguments,
        state,
        seen.claims,
        shares_a_lane(by_claims, tool, tool.complete(input)),
        tool.name,
        tool.claims is None,
        bool(seen.changed or seen.cells),
    )
    if not found:
        found += [promise(*broken) for broken in _again(case, seen, executions)]
    if plain(state.to_json()) != before:
        found.append(promise("state", "changed the call's state once it was cancelled, or later"))
    return found, case, promise


def _again(case: Case, seen: Trial, executions: int) -> Iterator[tuple[str, str]]:
    """Run the tool again, and give what it does otherwise; the cause that is nearest is enough."""
    tool, again = case.tool()
    run(tool, case.arguments, case.state, again)
    if again.answer != seen.answer:
        keeps = (
            "" if not isinstance(case.maker, Tool) else "; a tool that keeps something: give a function that makes it"
        )
        yield "deterministic", f"answered {seen.answer!r}, and {again.answer!r} the second time{keeps}"
    elif again.after != seen.after:
        yield "deterministic", "left other files the second time"
    else:
        broken = list(about_timing(case, seen, executions))
        yield from broken or about_cancel(case, seen.steps.count)


def _about_values(
    state: State, before: Any, input: Any, given: Any, seen: Trial, promise: Promise
) -> list[BrokenPromise]:
    """What it did to the values that it shares with others, and to the loop."""
    if plain(state.to_json()) != before:
        return [promise("state", f"expected the call's state to stay {before!r}, it became {state.to_json()!r}")]
    if seen.swapped:
        return [promise("state", "put another state into ctx.state; only a modifier changes the state")]
    if input != given:
        return [promise("state", f"expected its input to stay {given!r}, it became {input!r}")]
    if seen.steps.blocked:
        what = ", ".join(dict.fromkeys(seen.steps.blocked))
        return [promise("blocking", f"held up every other task: {what}; make it a plain def, which runs in a thread")]
    if seen.stuck is not None:
        return [promise("ends", f"never ended by itself: {seen.stuck}")]
    return []


def _promises(tool: Tool, input: Any) -> Promise:
    return lambda promise, detail: BrokenPromise(promise, detail, tool.name, input)


def _about_safe(tool: Tool, input: Any, promise: Promise) -> list[BrokenPromise]:
    """Whether what says that it is safe says so twice, in one word."""
    if not callable(tool.safe):
        return []
    safe = tool.safe
    asked = _asked_twice(lambda: safe(tool.complete(input)))
    if isinstance(asked, str):
        return [promise("safe", f"expected True or False, it raised {asked}")]
    if not isinstance(asked[0], bool):
        return [promise("safe", f"expected True or False, it answered {asked[0]!r}")]
    if asked[0] is not asked[1]:
        return [promise("safe", f"answered {asked[0]!r}, and {asked[1]!r} the second time")]
    return []


def _asked_twice(ask: Callable[[], Any]) -> list[Any] | str:
    """Give both answers, or in words what was raised; an error that asks to end the program is raised again."""
    try:
        return [ask(), ask()]
    except BaseException as error:  # noqa: ASYNC103  it is not async: no cancel comes up in it
        if asks_to_exit(error) is not None:
            raise
        return f"{type(error).__name__}: {error}"  # noqa: ASYNC104


def _about_claims(tool: Tool, input: Any, state: State, seen: Trial, promise: Promise) -> list[BrokenPromise]:
    if tool.claims is None:
        seen.claims = () if tool.is_safe(input) else (EVERYTHING,)
        return []
    claims = tool.claims
    looked_at: dict[tuple[Any, ...], None] = {}

    def ask() -> Any:
        nonlocal looked_at
        with probe.looking() as looked_at:
            return tuple(claims(tool.complete(input), state)) if callable(claims) else claims

    asked = _asked_twice(ask)
    if isinstance(asked, str):
        return [promise("claims", f"expected claims, they raised {asked}")]
    if asked[0] != asked[1]:
        return [promise("claims", f"claimed {_listed(asked[0])}, and {_listed(asked[1])} the second time")]
    if not all(isinstance(claim, Claim) for claim in asked[0]):
        return [promise("claims", f"expected claims, got {asked[0]!r}")]
    seen.claims = asked[0]
    return _about_looks(tool, input, state, looked_at, promise)


def _about_looks(
    tool: Tool, input: Any, state: State, looked_at: Iterable[tuple[Any, ...]], promise: Promise
) -> list[BrokenPromise]:
    """What claims look at: declared, or claimed by its name, or else it may be another one when the call runs."""
    if tool.claims_after is not None:
        after = tool.claims_after
        asked = _asked_twice(lambda: tuple(after(tool.complete(input), state)) if callable(after) else after)
        if isinstance(asked, str):
            return [promise("claims", f"expected claims from claims_after, it raised {asked}")]
        if not all(isinstance(claim, Claim) for claim in asked[0]):
            return [promise("claims", f"expected claims from claims_after, got {asked[0]!r}")]
        if asked[0] != asked[1]:
            text = f"claims_after gave {_listed(asked[0])}, and {_listed(asked[1])} the second time"
            return [promise("claims", text)]
        return []
    claimed = [
        part for claim in tool.claims_for(input, state) for part in claim.resource if isinstance(part, str) and part
    ]
    found = [named(resource) for resource in looked_at if is_memory(resource)]
    open_ones = [name for name in found if not any(part in name for part in claimed)]
    return [
        promise(
            "claims_hold", f"its claims look at {name}, and none of them names it: claim it, and say so by claims_after"
        )
        for name in open_ones
    ]


def _about_files(tool: Tool, state: State, seen: Trial, promise: Promise) -> list[BrokenPromise]:
    found = []
    changed = seen.changed
    if tool.claims is None and not seen.claims:
        # Safe, and nothing claimed: it may touch nothing that others touch.
        found += [promise("safe", f"expected no effect, it changed {name}") for name in changed]
        found += [promise("safe", f"expected no effect, it wrote {cell}") for cell in dict.fromkeys(seen.cells)]
    elif not any(claim.mode is WRITE for claim in seen.claims):
        held = _listed(seen.claims)
        found += [promise("claims", f"wrote {cell}, holding {held}") for cell in dict.fromkeys(seen.cells)]
    if seen.workspace is None or (tool.claims is None and not seen.claims):
        return found
    for name in changed:
        if not _covered(seen.workspace, name, WRITE, seen.claims):
            found.append(promise("claims", f"changed {name}, holding {_listed(seen.claims)}"))
    for name in dict.fromkeys(seen.reads):
        if name not in changed and not _covered(seen.workspace, name, READ, seen.claims):
            found.append(promise("claims", f"read {name}, holding {_listed(seen.claims)}"))
    return found


def _about_rows(tool: Tool, seen: Trial, promise: Promise) -> list[BrokenPromise]:
    """Whether it may change the rows that it changed; of a table that claims name, each row has to be claimed."""
    if seen.store is None or tool.claims is None:
        return []
    names = seen.store.names()
    return [
        promise("claims", f"changed {name}, holding {_listed(seen.claims)}")
        for name in seen.changed
        if (names[name][0] in seen.store.claimed or not any(claim.mode is WRITE for claim in seen.claims))
        and not _covers_row(seen.claims, names[name])
    ]


def _covers_row(claims: Iterable[Claim], name: RowName) -> bool:
    """Whether one of `claims` lets the row be changed; a part of a key may be anything that shows the same."""
    return any(
        claim.mode is WRITE
        and (len(claim.resource) == len(name) or (claim.subtree and len(claim.resource) < len(name)))
        and all(str(mine) == str(part) for mine, part in zip(claim.resource, name, strict=False))
        for claim in claims
    )


def _covered(workspace: Workspace, name: str, mode: Mode, held: tuple[Claim, ...]) -> bool:
    # The file's own claim is the first; the others protect the way to it.
    return covers(held, workspace.claims(f"{workspace.disk.root}/{name.rstrip('/')}", State(), mode)[0])


def _listed(claims: Iterable[Claim]) -> str:
    return ", ".join(map(str, claims)) or "nothing"


def _about_modifiers(state: State, seen: Trial, promise: Promise) -> list[BrokenPromise]:
    found = []
    for position, modifier in enumerate(seen.modifiers):
        answers = []
        for _ in range(2):
            before = plain(state.to_json())
            try:
                after = modifier(state)
            except Exception as error:
                answers.append(f"{type(error).__name__}: {error}")
                continue
            if not isinstance(after, State):
                found.append(promise("modifiers", f"modifier {position} gave {type(after).__name__}, expected a State"))
                break
            if plain(state.to_json()) != before:
                found.append(promise("modifiers", f"modifier {position} changed the state it was given"))
                break
            answers.append(repr(after.to_json()))
        if len(set(answers)) > 1:
            text = f"modifier {position} gave {answers[0]}, and {answers[1]} for an equal state"
            found.append(promise("modifiers", text))
    return found

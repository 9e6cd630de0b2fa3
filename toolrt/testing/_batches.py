"""Batches of a user's own tools: Hypothesis draws the calls, and each batch is explored a little.

Rules.
    1. A batch ends alike under every schedule: the same outcome, content and error of each call, the same state, and
       the same of what the caller looks at.  An ending with a call that took too long is not compared, nor is any
       where cancels are explored.
    2. The laws are asked about the trace of each execution, and then the caller's own check.
    3. A tool's waits last as long as the schedule likes: the clock is explored too.
    4. Tools that keep something between calls are made anew for each execution, by a function of the caller's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import attrs
from hypothesis import strategies as st

from toolrt import invariants, sim
from toolrt.errors import DefinitionRefused
from toolrt.events import CallSettled
from toolrt.model import Outcome, Registry, State, Tool, ToolCall
from toolrt.runtime import Runtime
from toolrt.testing._explored import Check, ExplorationPlan, checked, explore, names_tracked
from toolrt.testing._given import untraced
from toolrt.testing._inputs import inputs
from toolrt.testing._saved import SavedSchedules
from toolrt.trace import plain

Look = Callable[[], Any]
Made = Runtime | Registry | Iterable[Tool]
#: Tools, or what makes them, alone or with a function that looks at what a batch has left.
Maker = Made | Callable[[], Made | tuple[Made, Look]]
Values = Mapping[str, st.SearchStrategy[Any] | Sequence[Any]]

_TOOLS = 3


@attrs.frozen
class _Plan:
    """What is asked about each batch."""

    maker: Maker
    state: State | None
    laws: Mapping[str, invariants.Predicate]
    check: Check | None
    exploration: ExplorationPlan

    def made(self) -> tuple[Runtime, Look]:
        """Make the tools."""
        maker: Any = self.maker
        made: Any = maker() if _is_function(maker) else maker
        look: Look = _nothing
        if isinstance(made, tuple) and len(made) == 2 and callable(made[1]) and not isinstance(made[1], Tool):
            made, look = made
        if isinstance(made, Runtime):
            return made, look
        if isinstance(made, Iterable) and not isinstance(made, Registry):
            made = Registry(made)
        if not isinstance(made, Registry):
            expected = "a toolrt.Registry, a toolrt.Runtime, a list of tools, or a function that gives one"
            raise DefinitionRefused("testing.batches(registry)", expected, made)
        return Runtime(made), look


@attrs.frozen(eq=False, repr=False)
class BatchExample(Sequence[ToolCall]):
    """Calls of one model response, drawn from the schemas of a user's tools; a sequence of `ToolCall`.

    Make them with `batches`.

    Args:
        calls: in call order.
        plan: what is asked about the batch.
    """

    #: In call order.
    calls: tuple[ToolCall, ...]
    _plan: _Plan = attrs.field(repr=False)

    def check(self) -> None:
        """Run the batch under some schedules; each has to end alike, by the laws and by the caller's check.

        Raises:
            Wrong: an execution does not; the text has the minimal schedule, step by step, and what decides it.
            NotShown: no execution failed, and yet nothing was shown: something else than the schedule decided.

        And what a tool raises that asks the program to exit.

        Checkpoint: never; call it outside Trio.
        """
        __tracebackhide__ = True
        plan = self._plan.exploration
        with untraced():
            first = sim.run(self._run) if plan.cancel_at is None else None
        asked = attrs.evolve(plan, check=lambda execution: self._complaints(execution, first))
        explore(self._run, asked, SavedSchedules(None, ""), lambda schedule: f"{_AGAIN}\n    {schedule}")

    async def _run(self) -> dict[str, Any]:
        runtime, look = self._plan.made()
        done = await runtime.run(self.calls, self._plan.state)
        answers = {
            f"call {call_index}, {_told(call)}": f"{result.outcome.value}: {plain(result.content)!r}"
            + (f" ({result.error})" if result.error else "")
            for call_index, (call, result) in enumerate(zip(self.calls, done.results, strict=True))
        }
        return {**answers, "the state": plain(done.state.to_json()), "what is left": plain(look())}

    def _complaints(self, execution: sim.Execution, first: sim.Execution | None) -> Any:
        if self._plan.exploration.clock is not None:
            execution.trace.notes["time_moves_early"] = True
        found = [str(violation) for violation in invariants.check(execution.trace, self._plan.laws)]
        if first is not None and not _is_late(first) and not _is_late(execution):
            found += [
                f"timing decides {what}: {execution.value[what]!s}, and under another schedule {value!s}"
                for what, value in first.value.items()
                if execution.value[what] != value
            ]
        if found or self._plan.check is None:
            return found or execution.error is None
        return self._plan.check(execution)

    @overload
    def __getitem__(self, place: int) -> ToolCall: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[ToolCall, ...]: ...
    def __getitem__(self, place: int | slice) -> ToolCall | tuple[ToolCall, ...]:
        return self.calls[place]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self.calls)

    def __repr__(self) -> str:
        return f"BatchExample({', '.join(map(_told, self.calls))})"


_AGAIN = "this test (Hypothesis draws the batch first that failed), under the schedule"


def batches(
    registry: Maker,
    *,
    values: Values | None = None,
    min_calls: int = 1,
    max_calls: int = 5,
    state: State | None = None,
    laws: Mapping[str, invariants.Predicate] | None = None,
    check: Check | None = None,
    executions: int = 20,
    **options: Any,
) -> st.SearchStrategy[BatchExample]:
    """Batches of your own tools; `BatchExample.check` explores one.

    Inputs fit the tools' schemas, and the calls of one batch have few different values in them, so that they often
    claim the same.  Hypothesis shrinks the batch, the explorer the schedule.

    Args:
        registry: a registry, a runtime or a list of tools; or a function that makes one, which is called for each
            execution: tools that keep something between calls need that.  The function may give a pair: the tools, and
            a function without arguments that gives what a batch has left, such as the rows of a store.
        values: for a field's name the values that it may have, as a list or a strategy; the schema says what the
            other fields have.
        min_calls: of a batch, 0 or more.
        max_calls: of a batch, `min_calls` or more.
        state: the state that a batch starts from; the empty one by default.
        laws: by name, as `toolrt.invariants.check` takes them; the seventeen by default.
        check: asked about each execution that breaks no law, as `toolrt.sim.explore` takes it; ``execution.value`` has
            what came of each call, the state, and what is left.
        executions: how many schedules each batch is run under, 1 or more.
        options: `strategy`, `seed`, `step_limit`, `cancel_at`, `clock`, `clock_moves`, `order`, `seconds`, `track`, as
            `explored` takes them; the module of the function `registry` is tracked by default.

    Raises:
        DefinitionRefused: an argument cannot work; the text says which, and what is expected.
        MissingExtra: a tool's schema must be derived and the ``schema`` extra is not installed.

    Example:
        >>> import toolrt
        >>> from hypothesis import given, settings
        >>> from toolrt import testing
        >>> def shop():
        ...     stock = {"tea": 5}
        ...     @toolrt.tool(claims=[toolrt.Claim("stock", toolrt.WRITE)])
        ...     async def take(ctx, count: int) -> int:
        ...         stock["tea"] -= count
        ...         return stock["tea"]
        ...     return [take]
        >>> @settings(max_examples=20, deadline=None)
        ... @given(batch=testing.batches(shop))
        ... def test_shop(batch):
        ...     batch.check()
        >>> test_shop()

    Checkpoint: never.
    """
    plan = _Plan(
        registry,
        state,
        invariants.LAWS if laws is None else laws,
        check,
        _exploration(registry, executions, options),
    )
    if not isinstance(laws, Mapping | None):
        raise DefinitionRefused("testing.batches(laws)", "a mapping from names to laws", laws)
    if check is not None and not callable(check):
        raise DefinitionRefused("testing.batches(check)", "a function of an execution", check)
    if state is not None and not isinstance(state, State):
        raise DefinitionRefused("testing.batches(state)", "a toolrt.State, or None", state)
    for name, number, least in (("min_calls", min_calls, 0), ("max_calls", max_calls, max(1, _number(min_calls)))):
        if _number(number) < least:
            raise DefinitionRefused(f"testing.batches({name})", f"a whole number, {least} or more", number)
    tools = list(plan.made()[0].registry)
    if not tools:
        raise DefinitionRefused("testing.batches(registry)", "at least one tool", "no tool")
    calls = _calls(tools, _strategies(tools, values or {}), min_calls, max_calls)
    return calls.map(lambda drawn: BatchExample(drawn, plan))


def _exploration(maker: Any, executions: int, options: Mapping[str, Any]) -> ExplorationPlan:
    known = ("strategy", "seed", "step_limit", "cancel_at", "clock", "clock_moves", "order", "seconds", "track")
    if not options.keys() <= set(known):
        expected = f"keyword arguments besides its own: {', '.join(known)}"
        raise DefinitionRefused("testing.batches", expected, sorted(options.keys() - set(known)))
    plan = ExplorationPlan(executions=executions, **{"clock": "explored", **options})
    if _is_function(maker):
        plan = attrs.evolve(plan, track=names_tracked(plan.track, maker), tracks_unasked=plan.track is None)
    checked(plan, is_given=True)
    return plan


def _calls(
    tools: Sequence[Tool], inputs_of: Mapping[str, st.SearchStrategy[Any]], least: int, most: int
) -> st.SearchStrategy[tuple[ToolCall, ...]]:
    """Calls of two or three tools at a time: they meet more often than calls of any."""
    names = st.sampled_from([tool.name for tool in tools])
    some = st.shared(
        st.lists(names, min_size=min(2, len(tools)), max_size=_TOOLS, unique=True),
        key="toolrt.testing.batches: tools",
    )
    call = some.flatmap(lambda names: st.one_of([st.tuples(st.just(name), inputs_of[name]) for name in names]))
    return st.lists(call, min_size=least, max_size=most).map(
        lambda drawn: tuple(ToolCall(f"call-{index}", name, input) for index, (name, input) in enumerate(drawn))
    )


def _strategies(tools: Sequence[Tool], values: Values) -> dict[str, st.SearchStrategy[Any]]:
    if not isinstance(values, Mapping):
        raise DefinitionRefused("testing.batches(values)", "a mapping from names of fields to values", values)
    known = {name for tool in tools for name in _fields(tool.schema)}
    given: dict[str, st.SearchStrategy[Any]] = {}
    for name, each in values.items():
        if name not in known:
            expected = f"names of the tools' fields ({', '.join(sorted(known))})"
            raise DefinitionRefused("testing.batches(values)", expected, name)
        if not isinstance(each, st.SearchStrategy) and (isinstance(each, str) or not isinstance(each, Sequence)):
            raise DefinitionRefused(f"testing.batches(values): {name}", "a list of values or a strategy", each)
        given[name] = each if isinstance(each, st.SearchStrategy) else st.sampled_from(list(each))
    return {tool.name: inputs(tool.schema, given, _fits(tool)) for tool in tools}


def _fits(tool: Tool) -> Callable[[Any], bool]:
    return lambda input: not isinstance(tool.decode(input), list)


def _fields(schema: Any) -> Iterator[str]:
    """The names of all fields in a schema, at any depth."""
    if isinstance(schema, Mapping):
        yield from schema.get("properties", ())
        for part in schema.values():
            yield from _fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _fields(part)


def _is_late(execution: sim.Execution) -> bool:
    """Whether it has no ending to compare: it failed, or a call of it took too long."""
    return execution.error is not None or any(
        event.fields["outcome"] == Outcome.TIMED_OUT for event in execution.trace.of_kind(CallSettled)
    )


def _is_function(maker: object) -> bool:
    return inspect.isroutine(maker) or (callable(maker) and not isinstance(maker, Tool))


def _told(call: ToolCall) -> str:
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.input.items())})"


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def _nothing() -> None:
    return None

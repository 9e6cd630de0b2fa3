"""Parallel stateful tests: Hypothesis draws what tasks do with an object, the explorer draws when.

Rules.
    1. An example is a serial prefix and two or more branches; each branch is a task.  All use one new object.
    2. Each example runs under several schedules; its history is linearizable in each, or the test fails.
    3. An error that a command raises is an answer, which the model gives, too.  A command that waits when nothing can
       run any more has to wait in the model.
    4. A command drawn as cancelled runs beside a task that cancels it, at any time.
    5. What fails is made simpler by Hypothesis, then its schedule by the explorer; the text can be pasted and run.

Theory.  Claessen et al., *Finding race conditions in Erlang with QuickCheck and PULSE* (ICFP 2009).
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import Awaitable, Callable, Iterable
from types import FunctionType
from typing import Any, ClassVar

import attrs
import hypothesis
import trio
from hypothesis import strategies as st

from toolrt import sim
from toolrt._plain import stable_text
from toolrt.errors import DefinitionRefused
from toolrt.testing._explored import ExplorationPlan, explore
from toolrt.testing._saved import SavedSchedules


@attrs.frozen(repr=False)
class ParallelCall:
    """One call of a method of the subject."""

    #: The method's name.
    name: str
    #: What it is called with.
    args: tuple[Any, ...] = attrs.field(default=(), converter=tuple)
    #: What it is called with by name.
    kwargs: dict[str, Any] = attrs.Factory(dict)
    #: Whether a task beside it cancels it, at any time.
    cancelled: bool = False

    def __repr__(self) -> str:
        parts = [repr(self.name)]
        if self.args:
            parts.append(repr(self.args))
        if self.kwargs:
            parts.append(f"kwargs={self.kwargs!r}")
        if self.cancelled:
            parts.append("cancelled=True")
        return f"ParallelCall({', '.join(parts)})"


def _as_branches(branches: Iterable[Iterable[ParallelCall]]) -> tuple[tuple[ParallelCall, ...], ...]:
    return tuple(tuple(branch) for branch in branches)


@attrs.frozen
class ParallelCommands:
    """What tasks do with one object: a prefix, one call after the other, then branches side by side."""

    #: What is called first.
    prefix: tuple[ParallelCall, ...] = attrs.field(converter=tuple)
    #: What each task calls.
    branches: tuple[tuple[ParallelCall, ...], ...] = attrs.field(converter=_as_branches)

    def program(self, subject: Callable[[], Any]) -> Callable[[], Awaitable[sim.History]]:
        """Give the program that does this with a new object from `subject`, and returns the history."""

        async def parallel() -> sim.History:
            history = sim.History()
            recorded = sim.recorded(subject(), history)

            async def branch(calls: tuple[ParallelCall, ...]) -> None:
                for call in calls:
                    await _made(recorded, call)

            async def first() -> None:
                await branch(self.prefix)
                async with trio.open_nursery() as nursery:
                    for calls in self.branches:
                        nursery.start_soon(branch, calls)

            await history.run(first)
            return history

        return parallel


async def _made(recorded: Any, call: ParallelCall) -> None:
    method = getattr(recorded, call.name)
    try:
        if not call.cancelled:
            await _answered(method(*call.args, **call.kwargs))
            return
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel, scope)
                await _answered(method(*call.args, **call.kwargs))
    except Exception:
        # It is in the history, as an answer.
        return


async def _answered(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer


async def _cancel(scope: trio.CancelScope) -> None:  # noqa: ASYNC124  a task is one step
    scope.cancel()


@attrs.frozen
class ParallelCommand:
    """How the calls of one method are drawn; see `command`."""

    #: Draws the arguments.
    args: tuple[st.SearchStrategy[Any], ...]
    #: Draws those by name.
    kwargs: dict[str, st.SearchStrategy[Any]]
    #: Whether some are cancelled.
    cancellable: bool

    def calls(self, name: str) -> st.SearchStrategy[ParallelCall]:
        """Draw calls of the method `name`."""
        cancelled = st.booleans() if self.cancellable else st.just(False)
        return st.builds(
            ParallelCall, st.just(name), st.tuples(*self.args), st.fixed_dictionaries(self.kwargs), cancelled
        )


def command(
    *args: st.SearchStrategy[Any], cancellable: bool = False, **kwargs: st.SearchStrategy[Any]
) -> ParallelCommand:
    """Declare a method of the subject and the model that a `ParallelMachine` calls.

    Args:
        args: a strategy for each argument.
        cancellable: True: some calls are cancelled at any time.
        kwargs: a strategy for each argument by name.

    Returns:
        What the class body keeps under the method's name.
    """
    return ParallelCommand(args, kwargs, cancellable)


class ParallelMachine:
    """A parallel stateful test: a subclass says what is tested, by what model, and which methods are called.

    ``TestCase`` of a subclass is a unittest case, as that of Hypothesis's `RuleBasedStateMachine` is; `run_parallel`
    runs it as a function.

    Example:
        >>> import trio
        >>> from hypothesis import settings, strategies as st
        >>> from toolrt import sim, testing
        >>> class Stack:
        ...     def __init__(self):
        ...         self.items = []
        ...     def push(self, item):
        ...         self.items.append(item)
        ...     def pop(self):
        ...         return self.items.pop()
        >>> class Slow(Stack):
        ...     async def pop(self):
        ...         await trio.lowlevel.checkpoint()
        ...         return self.items.pop()
        >>> class Machine(testing.ParallelMachine):
        ...     subject = Slow
        ...     model = Stack
        ...     push = testing.command(st.integers(0, 3))
        ...     pop = testing.command()
        >>> testing.run_parallel(Machine, settings(max_examples=10, database=None))
    """

    #: Makes the object that is tested: a class, or a function or method without further arguments.
    subject: ClassVar[Any]
    #: Makes the sequential model, as `toolrt.sim.linearizable` takes it.
    model: ClassVar[Any]
    #: How many schedules each example runs under, 1 or more.
    executions: ClassVar[int] = 40
    #: A strategy of `toolrt.sim`, or its name; None: a portfolio.
    strategy: ClassVar[Any] = None
    #: The most branches, 2 or more, and the most calls in each and in the prefix, 1 or more.
    most_branches: ClassVar[int] = 3
    most_calls: ClassVar[int] = 3
    #: "either", "ever after" or "nothing", as `toolrt.sim.linearizable` takes it.
    cancelled: ClassVar[str] = "either"
    #: The unittest case.
    TestCase: ClassVar[type[unittest.TestCase]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)

        def run(case: Any) -> None:
            run_parallel(cls, case.settings)

        body = {"runTest": run, "settings": None, "__module__": cls.__module__, "__doc__": cls.__doc__}
        cls.TestCase = type(f"{cls.__name__}TestCase", (unittest.TestCase,), body)

    @classmethod
    def judge(cls, execution: sim.Execution) -> sim.HistoryJudgement:
        """Give the judgement of one execution of a `ParallelCommands.program`."""
        return sim.linearizable(execution, _factory(cls, "model"), cancelled=cls.cancelled)

    @classmethod
    def check(cls, commands: ParallelCommands) -> None:
        """Run `commands` under several schedules, and raise what is wrong with one.

        Raises:
            Wrong: a history is not linearizable.
            NotShown: nothing failed, and nothing was shown.
        """
        __tracebackhide__ = True
        plan = ExplorationPlan(strategy=cls.strategy, executions=cls.executions, check=cls.judge)
        program = commands.program(_factory(cls, "subject"))
        explore(program, plan, SavedSchedules(None, cls.__qualname__), functools.partial(_pasteable, cls, commands))

    @classmethod
    def replay(cls, commands: ParallelCommands, schedule: str) -> sim.HistoryJudgement:
        """Run `commands` under one schedule, and judge the history.

        Raises:
            ReplayDiverged: the schedule is none of `commands`.
        """
        return cls.judge(sim.replay(commands.program(_factory(cls, "subject")), schedule))


def _pasteable(machine: type[ParallelMachine], commands: ParallelCommands, schedule: str) -> str:
    name = machine.__name__
    lines = [
        "from toolrt.testing import ParallelCall, ParallelCommands",
        "commands = ParallelCommands(",
        f"    prefix={list(commands.prefix)!r},",
        "    branches=[",
        *(f"        {list(branch)!r}," for branch in commands.branches),
        "    ],",
        ")",
        f"print({name}.replay(commands, {schedule!r}))",
    ]
    return "\n    ".join(lines)


def _factory(machine: type[ParallelMachine], name: str) -> Callable[[], Any]:
    """Give what makes the machine's subject or model."""
    factory = inspect.getattr_static(machine, name)
    if not isinstance(factory, FunctionType):
        made: Callable[[], Any] = getattr(machine, name)
        return made
    if not inspect.signature(factory).parameters:
        return factory
    # The same function each time, so that a model's states are known again.
    known = machine.__dict__.get(f"_{name}_of_all")
    if known is None:
        known = functools.partial(factory, machine())
        setattr(machine, f"_{name}_of_all", known)
    return known


def parallel_commands(machine: type[ParallelMachine]) -> st.SearchStrategy[ParallelCommands]:
    """Draw what tasks do with the subject of `machine`.

    Raises:
        DefinitionRefused: it has no command.
    """
    rules = {name: rule for name in dir(machine) if isinstance(rule := getattr(machine, name), ParallelCommand)}
    if not rules:
        raise DefinitionRefused(machine.__name__, "a command: put = testing.command(st.integers())", stable_text(rules))
    calls = st.one_of([rule.calls(name) for name, rule in sorted(rules.items())])
    most = machine.most_calls
    branch = st.lists(calls, min_size=1, max_size=most)
    branches = st.lists(branch, min_size=2, max_size=machine.most_branches)
    # A prefix is not cancelled: that would be a branch of its own.
    prefix = st.lists(calls.map(lambda call: attrs.evolve(call, cancelled=False)), max_size=most)
    return st.builds(ParallelCommands, prefix, branches)


def run_parallel(machine: type[ParallelMachine], settings: hypothesis.settings | None = None) -> None:
    """Test `machine`: draw commands, run each example under several schedules, judge each history.

    Args:
        machine: the test.
        settings: Hypothesis's; None: those of the profile.

    Raises:
        DefinitionRefused: the machine has no subject, no model or no command.
        Wrong: a history is not linearizable; the text has the history, the schedule and a program to paste.
        NotShown: nothing failed, and nothing was shown.

    Checkpoint: never; call it outside Trio.
    """
    __tracebackhide__ = True
    for name in ("subject", "model"):
        if not hasattr(machine, name):
            raise DefinitionRefused(f"{machine.__name__}.{name}", "a class, or a function that makes one", None)

    @hypothesis.given(commands=parallel_commands(machine))
    def test(commands: ParallelCommands) -> None:
        __tracebackhide__ = True
        machine.check(commands)

    # Which parts of an example matter is what its simplest form shows; to try it takes longer than all else.
    own = settings or hypothesis.settings()
    phases = [phase for phase in own.phases if phase is not hypothesis.Phase.explain]
    test.__name__ = test.__qualname__ = machine.__qualname__
    test.__module__ = machine.__module__
    hypothesis.settings(own, phases=phases)(test)()
